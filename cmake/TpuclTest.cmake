# SPDX-License-Identifier: Apache-2.0
# tpucl_add_test(NAME <layer/name> SOURCES <files> [LABELS <labels>] [TIMEOUT <s>]): one Criterion executable.
# It runs through tests/run_criterion, which turns the two cases that Criterion calls success (no test
# matched, leaks alone) into failures.
pkg_check_modules(CRITERION REQUIRED IMPORTED_TARGET criterion)
# Tests may call OpenCL themselves; the library loads it at run time.
function(tpucl_add_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "SOURCES;LABELS")
    string(REPLACE "/" "_" _target "test_${arg_NAME}")
    add_executable(${_target} ${arg_SOURCES})
    target_link_libraries(${_target} PRIVATE tpucl_internal tpucl_warnings PkgConfig::CRITERION PkgConfig::OPENCL)
    target_compile_options(${_target} PRIVATE -Wno-missing-prototypes -Wno-conversion)
    target_compile_definitions(${_target} PRIVATE TPUCL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_include_directories(${_target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    add_test(NAME ${arg_NAME} COMMAND ${PROJECT_SOURCE_DIR}/tests/run_criterion $<TARGET_FILE:${_target}>)
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 600) # against hanging; a loaded machine compiles kernels slowly
    endif()
    set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
