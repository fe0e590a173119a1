# SPDX-License-Identifier: Apache-2.0
add_library(tpucl_sanitizers INTERFACE)
if(TPUCL_SANITIZE STREQUAL "address")
    set(_flags -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
elseif(TPUCL_SANITIZE STREQUAL "thread")
    set(_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(TPUCL_SANITIZE STREQUAL "fuzzer")
    set(_flags -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer)
elseif(NOT TPUCL_SANITIZE STREQUAL "")
    message(FATAL_ERROR "TPUCL_SANITIZE is '${TPUCL_SANITIZE}'; expected empty, address, thread or fuzzer")
endif()
target_compile_options(tpucl_sanitizers INTERFACE ${_flags})
if(_flags AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # gcc's manual (-fsanitize=address): instrumented code gives false positives of warnings that follow values.
    target_compile_options(tpucl_sanitizers INTERFACE -Wno-format-truncation -Wno-maybe-uninitialized
        -Wno-stringop-overflow -Wno-array-bounds)
endif()
target_link_options(tpucl_sanitizers INTERFACE ${_flags})
