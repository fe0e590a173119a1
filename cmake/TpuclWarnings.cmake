# SPDX-License-Identifier: Apache-2.0
# Warnings for our own code only: linked privately, so that users of the library never inherit them.
add_library(tpucl_warnings INTERFACE)
target_compile_options(tpucl_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
    -Wno-sign-conversion # indexes are int64_t and size_t side by side; -Wconversion keeps narrowing visible
    -Werror)
target_compile_options(tpucl_warnings INTERFACE -ffp-contract=off) # the numeric contract: no hidden fma
if(TPUCL_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # What sanitizers insert hides value ranges from gcc, which then warns about what cannot happen.
    target_compile_options(tpucl_warnings INTERFACE -Wno-format-truncation -Wno-maybe-uninitialized
        -Wno-stringop-overflow -Wno-array-bounds)
endif()
# Tables end with {NULL}, which gcc takes for what it is.
target_compile_options(tpucl_warnings INTERFACE $<$<C_COMPILER_ID:Clang>:-Wno-missing-field-initializers>)
