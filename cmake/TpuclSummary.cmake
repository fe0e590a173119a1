# SPDX-License-Identifier: Apache-2.0
message(STATUS "tpucl ${PROJECT_VERSION}: ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}, build type '${CMAKE_BUILD_TYPE}', sanitizers '${TPUCL_SANITIZE}'")
message(STATUS "  OpenCL ${OPENCL_VERSION}, cJSON ${CJSON_VERSION}, zlib ${ZLIB_VERSION_STRING}")
message(STATUS "  CLBlast (K80-like baseline):  ${TPUCL_HAVE_CLBLAST}")
message(STATUS "  OpenBLAS (CPU baseline):      ${TPUCL_HAVE_OPENBLAS}")
message(STATUS "  libzip (.keras files):        ${TPUCL_HAVE_LIBZIP}")
message(STATUS "  libhdf5 (Keras weights):      ${TPUCL_HAVE_HDF5}")
message(STATUS "  libspng (PNG images):         ${TPUCL_HAVE_SPNG}")
message(STATUS "  command: ${TPUCL_BUILD_CLI}  tests: ${TPUCL_BUILD_TESTS}  examples: ${TPUCL_BUILD_EXAMPLES}  benches: ${TPUCL_BUILD_BENCHES}")
