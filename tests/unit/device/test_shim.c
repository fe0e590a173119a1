/* SPDX-License-Identifier: Apache-2.0
 * The misbehaving OpenCL as a library in the loader's place, which is how commands are tested with
 * it. */
#include "device_test.h"

static uint32_t count_once(void)
{
    tp_device *device = open_default(NULL);
    tp_device_program *program = build_scale(device);
    tp_device_kernel *kernel;
    tp_buffer *cell;
    uint32_t value = 4;
    ASSERT_OK(tp_device_kernel_create(program, "count_up", &kernel));
    ASSERT_OK(tp_buffer_create(device, sizeof value, "cell", &cell));
    ASSERT_OK(tp_buffer_write(cell, 0, &value, sizeof value));
    ASSERT_OK(tp_device_kernel_set_buffer(kernel, 0, cell));
    ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){1, 1, 1}, NULL, NULL, 0, NULL));
    ASSERT_OK(tp_buffer_read(cell, 0, &value, sizeof value));
    tp_device_kernel_destroy(kernel);
    tp_device_program_release(program);
    tp_buffer_release(cell);
    tp_device_close(device);
    return value;
}

Test(shim, forwards)
{
    setenv("TPUCL_OPENCL_LIBRARY", FAKE_CL_PATH, 1);
    setenv("FAKE_CL", "", 1);
    cr_assert_eq(count_once(), 5);
}

Test(shim, corrupts)
{
    setenv("TPUCL_OPENCL_LIBRARY", FAKE_CL_PATH, 1);
    setenv("FAKE_CL", "corrupt=*", 1);
    cr_assert_eq(count_once(), 4);
}

Test(shim, fails)
{
    tp_device_list *list;
    setenv("TPUCL_OPENCL_LIBRARY", FAKE_CL_PATH, 1);
    setenv("FAKE_CL", "fail=clGetDeviceIDs:0:-6", 1);
    ASSERT_OK(tp_device_list_create(&list));
    cr_assert_eq(tp_device_list_count(list), 0);
    cr_assert(strstr(tp_device_list_note(list, 0), "CL_OUT_OF_HOST_MEMORY"));
    tp_device_list_destroy(list);
}
