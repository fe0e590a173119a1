/* SPDX-License-Identifier: Apache-2.0
 * Kernels: arguments, work sizes, limits. */
#include <stdio.h>
#include "device_test.h"
#include "harness/fake_cl.h"

typedef struct fixture {
    tp_device *device;
    tp_device_program *program;
    tp_device_kernel *kernel;
    tp_buffer *cells;
} fixture;

static fixture set_up(const char *entry)
{
    fixture f = {.device = open_default(NULL)};
    const uint32_t zero = 0;
    f.program = build_scale(f.device);
    ASSERT_OK(tp_device_kernel_create(f.program, entry, &f.kernel));
    ASSERT_OK(tp_buffer_create(f.device, 4096 * 4, "cells", &f.cells));
    ASSERT_OK(tp_buffer_fill(f.cells, 0, 4096 * 4, &zero, 4, TP_LANE_COMPUTE, NULL, 0, NULL));
    ASSERT_OK(tp_device_kernel_set_buffer(f.kernel, 0, f.cells));
    return f;
}

static void tear_down(fixture *f)
{
    tp_buffer_release(f->cells);
    tp_device_kernel_destroy(f->kernel);
    tp_device_program_release(f->program);
    tp_device_close(f->device);
}

static tpucl_status launch(const fixture *f, size_t global, size_t local)
{
    return tp_device_kernel_enqueue(f->kernel, (size_t[3]){global, 1, 1},
                                    (size_t[3]){local, local ? 1 : 0, local ? 1 : 0}, NULL, 0,
                                    NULL);
}

Test(launch, limits_are_known)
{
    fixture f = set_up("count_up");
    tp_device_kernel_limits limits;
    tp_device_kernel_get_limits(f.kernel, &limits);
    cr_assert_geq(limits.max_work_group_size, 1);
    cr_assert_eq(limits.arg_count, 1);
    cr_assert_eq(limits.required_work_group_size[0], 0);
    tear_down(&f);
}

Test(launch, sizes)
{
    fixture f = set_up("count_up");
    uint32_t cells[4096];
    ASSERT_OK(launch(&f, 4096, 64));
    ASSERT_OK(launch(&f, 100, 0)); /* the driver's choice */
    ASSERT_OK(tp_device_kernel_enqueue(f.kernel, (size_t[3]){7, 1, 1}, NULL, NULL, 0, NULL));
    ASSERT_OK(launch(&f, 0, 64)); /* nothing to do */
    ASSERT_OK(tp_buffer_read(f.cells, 0, cells, sizeof cells));
    for (int i = 0; i < 4096; i++)
        cr_assert_eq(cells[i], i < 7 ? 3u : i < 100 ? 2u : 1u);
    ASSERT_FAILS(
        launch(&f, 100, 64), TPUCL_INVALID_ARGUMENT,
        "kernel 'count_up': local size must divide global size: global 100x1x1, local 64x1x1");
    tear_down(&f);
}

Test(launch, an_empty_launch_still_orders)
{
    fixture f = set_up("count_up");
    tp_event *first, *second = NULL;
    ASSERT_OK(tp_lane_mark(f.device, TP_LANE_UPLOAD, &first));
    ASSERT_OK(tp_device_kernel_enqueue(f.kernel, (size_t[3]){0, 1, 1}, NULL, &first, 1, &second));
    ASSERT_OK(tp_event_wait(&second, 1));
    cr_assert(tp_event_is_done(first));
    tp_event_release(first);
    tp_event_release(second);
    tear_down(&f);
}

Test(launch, required_work_group_size)
{
    fixture f = set_up("eights");
    tp_device_kernel_limits limits;
    tp_device_kernel_get_limits(f.kernel, &limits);
    cr_assert_eq(limits.required_work_group_size[0], 8);
    ASSERT_OK(launch(&f, 64, 8));
    ASSERT_FAILS(launch(&f, 64, 16), TPUCL_INVALID_ARGUMENT,
                 "requires local size 8 in dimension 0");
    tear_down(&f);
}

/* B38: devices that take 64, 128, 256 work-items: a clear refusal before the driver is asked. */
Test(launch, small_devices)
{
    static const size_t limits[] = {64, 128, 256};
    for (int i = 0; i < 3; i++) {
        char specification[32], expected[64];
        snprintf(specification, sizeof specification, "max_group=%zu", limits[i]);
        snprintf(expected, sizeof expected, "takes work-groups of at most %zu", limits[i]);
        fake_cl_install(specification);
        fixture f = set_up("count_up");
        ASSERT_OK(launch(&f, 4096, limits[i]));
        ASSERT_FAILS(launch(&f, 4096, 2 * limits[i]), TPUCL_UNSUPPORTED, expected);
        cr_assert_eq(fake_cl_calls("clEnqueueNDRangeKernel"), 1);
        tear_down(&f);
        cr_assert_eq(fake_cl_living_objects(), 0);
    }
}

Test(launch, wrong_arguments_are_named)
{
    fixture f = set_up("count_up");
    const uint32_t value = 1;
    ASSERT_FAILS(tp_device_kernel_set_bytes(f.kernel, 5, &value, 4), TPUCL_DEVICE_ERROR,
                 "argument 5 (a value, 4 bytes) of kernel 'count_up', which has 1 arguments");
    ASSERT_FAILS(tp_device_kernel_set_local(f.kernel, 0, SIZE_MAX), TPUCL_UNSUPPORTED,
                 "local memory");
    tp_device_kernel *other;
    ASSERT_FAILS(tp_device_kernel_create(f.program, "no_such_entry", &other), TPUCL_NOT_FOUND,
                 "kernel 'no_such_entry' of program 'scale'");
    cr_assert_null(other);
    ASSERT_OK(tp_device_kernel_create(f.program, "scale", &other));
    ASSERT_FAILS(
        tp_device_kernel_enqueue(other, (size_t[3]){8, 1, 1}, (size_t[3]){8, 1, 1}, NULL, 0, NULL),
        TPUCL_DEVICE_ERROR, "CL_INVALID_KERNEL_ARGS");
    cr_assert(strstr(tpucl_last_error()->message, "kernel 'scale', global 8x1x1, local 8x1x1"));
    tp_device_kernel_destroy(other);
    tear_down(&f);
}

/* Each kernel object has arguments of its own. */
Test(launch, two_kernels_of_one_entry)
{
    fixture f = set_up("count_up");
    tp_device_kernel *other;
    tp_buffer *other_cells;
    uint32_t zero = 0, first = 9, second = 9;
    ASSERT_OK(tp_device_kernel_create(f.program, "count_up", &other));
    ASSERT_OK(tp_buffer_create(f.device, 4, "other", &other_cells));
    ASSERT_OK(tp_buffer_write(other_cells, 0, &zero, 4));
    ASSERT_OK(tp_device_kernel_set_buffer(other, 0, other_cells));
    for (int i = 0; i < 3; i++)
        ASSERT_OK(launch(&f, 1, 1));
    ASSERT_OK(
        tp_device_kernel_enqueue(other, (size_t[3]){1, 1, 1}, (size_t[3]){1, 1, 1}, NULL, 0, NULL));
    ASSERT_OK(tp_buffer_read(f.cells, 0, &first, 4));
    ASSERT_OK(tp_buffer_read(other_cells, 0, &second, 4));
    cr_assert_eq(first, 3);
    cr_assert_eq(second, 1);
    tp_device_kernel_destroy(other);
    tp_buffer_release(other_cells);
    tear_down(&f);
}
