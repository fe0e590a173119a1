/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "device/cl_error.h"

static tpucl_status returns_code(int32_t code)
{
    TP_CL_TRY(code, "clFinish", "lane %d of '%s'", 1, "x");
    return TPUCL_OK;
}

static tpucl_status returns_handle(void *handle, int32_t code)
{
    TP_CL_TRY_OUT(handle, code, "clCreateBuffer", "%d bytes for '%s'", 4096, "weights");
    return TPUCL_OK;
}

Test(cl_error, message_names_call_code_object_and_hint)
{
    cr_assert_eq(returns_code(0), TPUCL_OK);
    cr_assert_eq(returns_code(-36), TPUCL_DEVICE_ERROR);
    const tpucl_error *error = tpucl_last_error();
    cr_assert_eq(error->foreign_code, -36);
    cr_assert_str_eq(error->message,
                     "clFinish failed with CL_INVALID_COMMAND_QUEUE (-36): lane 1 of 'x'; "
                     "after a crash in a kernel drivers answer like this");
}

Test(cl_error, handle_shape)
{
    int object;
    cr_assert_eq(returns_handle(&object, 0), TPUCL_OK);
    cr_assert_eq(returns_handle(NULL, -4), TPUCL_OUT_OF_DEVICE_MEMORY);
    cr_assert(strstr(tpucl_last_error()->message,
                     "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4): 4096 bytes for 'weights'"));
    cr_assert_eq(returns_handle(NULL, 0), TPUCL_DEVICE_ERROR,
                 "no object and no code is a failure too");
}

Test(cl_error, statuses_by_kind)
{
    cr_assert_eq(tp_cl_error_status(-4), TPUCL_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(tp_cl_error_status(-5), TPUCL_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(tp_cl_error_status(-61), TPUCL_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(tp_cl_error_status(-6), TPUCL_OUT_OF_MEMORY);
    cr_assert_eq(tp_cl_error_status(-1), TPUCL_NO_DEVICE);
    cr_assert_eq(tp_cl_error_status(-1001), TPUCL_NO_DEVICE);
    cr_assert_eq(tp_cl_error_status(-46), TPUCL_NOT_FOUND);
    cr_assert_eq(tp_cl_error_status(-11), TPUCL_DEVICE_ERROR);
    cr_assert_eq(tp_cl_error_status(-9999), TPUCL_DEVICE_ERROR);
}

/* Every code of OpenCL 1.2 (-1..-19 and -30..-68) has its name. */
Test(cl_error, every_code_has_a_name)
{
    for (int32_t code = -1; code >= -68; code--) {
        if (code < -19 && code > -30) continue;
        cr_expect(strncmp(tp_cl_error_name(code), "CL_", 3) == 0, "code %d", code);
    }
    cr_assert_str_eq(tp_cl_error_name(-9999), "an unknown OpenCL error");
}
