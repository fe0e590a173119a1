/* SPDX-License-Identifier: Apache-2.0
 * Buffers: transfers, ranges, limits, guard zones. */
#include "device_test.h"
#include "harness/fake_cl.h"

Test(buffer, write_read_copy_fill)
{
    tp_device *device = open_default(NULL);
    unsigned char data[1000], back[1000];
    for (int i = 0; i < 1000; i++)
        data[i] = (unsigned char)(i * 7);
    tp_buffer *a, *b;
    ASSERT_OK(tp_buffer_create(device, 1000, "a", &a));
    ASSERT_OK(tp_buffer_create(device, 1000, "b", &b));
    cr_assert_eq(tp_buffer_bytes(a), 1000);
    cr_assert_eq(tp_buffer_device(a), device);
    ASSERT_OK(tp_buffer_write(a, 0, data, 1000));
    ASSERT_OK(tp_buffer_read(a, 3, back, 500));
    cr_assert_arr_eq(back, data + 3, 500);

    const uint32_t pattern = 0x01020304;
    ASSERT_OK(tp_buffer_fill(b, 0, 1000, &pattern, 4, TP_LANE_COMPUTE, NULL, 0, NULL));
    ASSERT_OK(tp_buffer_copy(a, 10, b, 20, 100, TP_LANE_COMPUTE, NULL, 0, NULL));
    ASSERT_OK(tp_buffer_read(b, 0, back, 1000));
    cr_assert_eq(back[19], 0x01);
    cr_assert_arr_eq(back + 20, data + 10, 100);
    cr_assert_eq(back[120], 0x04);
    tp_buffer_retain(a);
    tp_buffer_release(a);
    ASSERT_OK(tp_buffer_read(a, 0, back, 1));
    tp_buffer_release(a);
    tp_buffer_release(b);
    tp_buffer_release(NULL);
    tp_device_close(device);
}

Test(buffer, ranges_are_checked)
{
    tp_device *device = open_default(NULL);
    char data[16] = {0};
    tp_buffer *buffer;
    ASSERT_FAILS(tp_buffer_create(device, 0, "nothing", &buffer), TPUCL_INVALID_ARGUMENT,
                 "'nothing' of 0 bytes");
    ASSERT_OK(tp_buffer_create(device, 10, "ten", &buffer));
    ASSERT_FAILS(tp_buffer_write(buffer, 5, data, 6), TPUCL_INVALID_ARGUMENT,
                 "6 bytes at offset 5 are outside buffer 'ten' of 10 bytes");
    ASSERT_FAILS(tp_buffer_read(buffer, 11, data, 0), TPUCL_INVALID_ARGUMENT, "outside");
    ASSERT_FAILS(tp_buffer_read(buffer, SIZE_MAX, data, 2), TPUCL_INVALID_ARGUMENT, "outside");
    ASSERT_FAILS(tp_buffer_read(buffer, 2, data, SIZE_MAX), TPUCL_INVALID_ARGUMENT, "outside");
    ASSERT_FAILS(tp_buffer_copy(buffer, 0, buffer, 8, 4, TP_LANE_COMPUTE, NULL, 0, NULL),
                 TPUCL_INVALID_ARGUMENT, "outside");
    ASSERT_FAILS(tp_buffer_fill(buffer, 0, 9, data, 4, TP_LANE_COMPUTE, NULL, 0, NULL),
                 TPUCL_INVALID_ARGUMENT, "pattern of 4");
    ASSERT_FAILS(tp_buffer_fill(buffer, 0, 9, data, 3, TP_LANE_COMPUTE, NULL, 0, NULL),
                 TPUCL_INVALID_ARGUMENT, "pattern of 3");
    ASSERT_FAILS(tp_buffer_fill(buffer, 0, 9, data, 0, TP_LANE_COMPUTE, NULL, 0, NULL),
                 TPUCL_INVALID_ARGUMENT, "pattern of 0");
    /* Nothing at all is fine, and gives an event when one is wanted. */
    tp_event *event = NULL;
    ASSERT_OK(tp_buffer_upload(buffer, 10, data, 0, TP_LANE_UPLOAD, false, NULL, 0, &event));
    ASSERT_OK(tp_event_wait(&event, 1));
    tp_event_release(event);
    ASSERT_OK(tp_buffer_read(buffer, 0, data, 0));
    tp_buffer_release(buffer);
    tp_device_close(device);
}

/* B10, B19: a device that allows 128 MB at once, the least that OpenCL 1.2 asks for. */
Test(buffer, larger_than_the_largest_allocation)
{
    fake_cl_install("max_alloc=134217728");
    tp_device *device = open_default(NULL);
    tp_buffer *buffer;
    cr_assert_eq(tp_device_get_caps(device)->max_allocation_bytes, 134217728);
    ASSERT_FAILS(
        tp_buffer_create(device, 134217729, "activations", &buffer), TPUCL_OUT_OF_DEVICE_MEMORY,
        "buffer 'activations' of 134217729 bytes is larger than the largest single allocation");
    cr_assert_eq(fake_cl_calls("clCreateBuffer"), 0, "OpenCL is not even asked");
    ASSERT_OK(tp_buffer_create(device, 134217728, "activations", &buffer));
    tp_buffer_release(buffer);
    tp_device_close(device);
}

Test(buffer, guard_zones)
{
    const tp_device_options options = {.guard_zones = true};
    tp_device *device = open_default(&options);
    tp_device_program *program = build_scale(device);
    tp_device_kernel *kernel;
    tp_buffer *src, *dst;
    float values[37], out[37];
    for (int i = 0; i < 37; i++)
        values[i] = (float)i;
    ASSERT_OK(tp_buffer_create(device, sizeof values, "src", &src));
    ASSERT_OK(tp_buffer_create(device, sizeof values, "dst", &dst));
    ASSERT_OK(tp_buffer_write(src, 0, values, sizeof values));
    ASSERT_OK(tp_device_kernel_create(program, "scale", &kernel));
    set_scale_args(kernel, dst, src, 2.0f, 0.0f, 37, 0);
    ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){64, 1, 1}, NULL, NULL, 0, NULL));
    ASSERT_OK(tp_buffer_read(dst, 0, out, sizeof out));
    for (int i = 0; i < 37; i++)
        cr_assert_eq(out[i], 2.0f * (float)i);
    ASSERT_OK(tp_buffer_check_guards(src));
    ASSERT_OK(tp_buffer_check_guards(dst));
    tp_device_memory memory;
    tp_device_get_memory(device, &memory);
    cr_assert_eq(memory.used_bytes, 2 * sizeof values, "guard zones are not counted");

    const uint32_t overrun = 1;
    ASSERT_OK(tp_device_kernel_set_bytes(kernel, 5, &overrun, sizeof overrun));
    ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){64, 1, 1}, NULL, NULL, 0, NULL));
    ASSERT_OK(tp_buffer_check_guards(src));
    /* 1.0f is 3F800000: all four bytes differ from A5, before and behind. */
    ASSERT_FAILS(
        tp_buffer_check_guards(dst), TPUCL_DEVICE_ERROR,
        "wrote outside buffer 'dst' of 148 bytes: 8 bytes changed, the first at offset -4");
    tp_device_kernel_destroy(kernel);
    tp_device_program_release(program);
    tp_buffer_release(src);
    tp_buffer_release(dst);
    tp_device_close(device);
}

Test(buffer, no_guards_without_the_option)
{
    tp_device *device = open_default(NULL);
    tp_buffer *buffer;
    ASSERT_OK(tp_buffer_create(device, 10, "x", &buffer));
    ASSERT_OK(tp_buffer_check_guards(buffer));
    tp_buffer_release(buffer);
    tp_device_close(device);
}

/* The wrong device: results are spoiled where told, and only there. */
Test(fake, corrupts_what_a_kernel_wrote)
{
    fake_cl_install("corrupt=count,corrupt_every=2");
    tp_device *device = open_default(NULL);
    tp_device_program *program = build_scale(device);
    tp_device_kernel *kernel;
    tp_buffer *cells;
    uint32_t values[8] = {0};
    ASSERT_OK(tp_buffer_create(device, sizeof values, "cells", &cells));
    ASSERT_OK(tp_buffer_write(cells, 0, values, sizeof values));
    ASSERT_OK(tp_device_kernel_create(program, "count_up", &kernel));
    ASSERT_OK(tp_device_kernel_set_buffer(kernel, 0, cells));
    static const uint32_t first[4] = {1, 3, 4, 4}; /* 1, 2^1, 3+1, 5^1 */
    for (uint32_t i = 0; i < 4; i++) {
        ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){8, 1, 1}, NULL, NULL, 0, NULL));
        ASSERT_OK(tp_buffer_read(cells, 0, values, sizeof values));
        cr_assert_eq(values[0], first[i], "launch %u gave %u", i, values[0]);
        cr_assert_eq(values[1], i + 1);
    }
    cr_assert_eq(fake_cl_strikes(), 2);
    tp_device_kernel_destroy(kernel);
    tp_device_program_release(program);
    tp_buffer_release(cells);
    tp_device_close(device);
}
