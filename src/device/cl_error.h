/* SPDX-License-Identifier: Apache-2.0
 * OpenCL's error codes as names, hints and tpucl_status, and the two macros for its two calling
 * shapes:
 *
 *   TP_CL_TRY(cl->Finish(queue), "clFinish", "compute lane of '%s'", name);
 *       the call returns a cl_int
 *   cl_int code;
 *   cl_mem mem = cl->CreateBuffer(context, flags, bytes, NULL, &code);
 *   TP_CL_TRY_OUT(mem, code, "clCreateBuffer", "%zu bytes for '%s'", bytes, label);
 *       the call returns a handle and fills in a cl_int
 *
 * Both return from the function on failure. The message reads
 *   clCreateBuffer failed with CL_OUT_OF_RESOURCES (-5): 123 bytes for 'w'; the device ran out of
 *   ...
 * and the error record's foreign code is the cl_int. TP_CL_FAIL is the same for cleanup paths.
 */
#ifndef TP_DEVICE_CL_ERROR_H
#define TP_DEVICE_CL_ERROR_H

#include "core/status.h"

/* "CL_OUT_OF_RESOURCES"; "unknown OpenCL error" for other numbers. Never NULL. */
const char *tp_cl_error_name(int32_t code);

/* What the code usually means here and what to do; "" when the name says it all. Never NULL. */
const char *tp_cl_error_hint(int32_t code);

/* The three out-of-memory codes of a device give TPUCL_OUT_OF_DEVICE_MEMORY, CL_OUT_OF_HOST_MEMORY
 * TPUCL_OUT_OF_MEMORY, missing devices and platforms TPUCL_NO_DEVICE, all others
 * TPUCL_DEVICE_ERROR. */
tpucl_status tp_cl_error_status(int32_t code);

/* Fills the error record for a failed call; `format` names the object and its numbers. */
tpucl_status tp_cl_error_set(int32_t code, const char *call, const char *function, const char *file,
                             int line, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

#define TP_CL_FAIL(code, call, ...)                                                                \
    tp_cl_error_set((code), (call), __func__, __FILE__, __LINE__, __VA_ARGS__)

#define TP_CL_TRY(expression, call, ...)                                                           \
    do {                                                                                           \
        int32_t tp_cl_code_ = (expression);                                                        \
        if (tp_cl_code_ != 0) return TP_CL_FAIL(tp_cl_code_, (call), __VA_ARGS__);                 \
    } while (0)

#define TP_CL_TRY_OUT(handle, code, call, ...)                                                     \
    do {                                                                                           \
        if (!(handle) || (code) != 0) return TP_CL_FAIL((code), (call), __VA_ARGS__);              \
    } while (0)

#endif
