/* SPDX-License-Identifier: Apache-2.0
 * Opening, splitting, lanes, events, memory accounting. */
#include "device_test.h"

#include <stdio.h>
#include "device/slab.h"
#include "harness/fake_cl.h"

Test(device, opens_and_closes)
{
    tp_device *device = open_default(NULL);
    cr_assert_str_not_empty(tp_device_label(device));
    cr_assert(strstr(tp_device_identity(device), tp_device_get_caps(device)->name));
    cr_assert(strstr(tp_device_identity(device), tp_device_get_caps(device)->driver));
    cr_assert_not_null(tp_device_native_context(device));
    cr_assert_not_null(tp_device_native_id(device));
    if (!has_quirk(TP_QUIRK_ONE_LANE))
        cr_assert_neq(tp_device_native_queue(device, TP_LANE_COMPUTE),
                      tp_device_native_queue(device, TP_LANE_UPLOAD));
    ASSERT_OK(tp_device_finish(device));
    tp_device_close(device);
    tp_device_close(NULL);
}

Test(device, index_out_of_range)
{
    tp_device_list *list;
    tp_device *device;
    ASSERT_OK(tp_device_list_create(&list));
    ASSERT_FAILS(tp_device_open(list, 1000, NULL, &device), TPUCL_NO_DEVICE, "device index 1000");
    ASSERT_FAILS(tp_device_open_split(list, 0, 0, NULL, &device), TPUCL_INVALID_ARGUMENT, "into 0");
    tp_device_list_destroy(list);
}

Test(device, one_lane_is_one_queue)
{
    const tp_device_options options = {.one_lane = true};
    tp_device *device = open_default(&options);
    cr_assert_eq(tp_device_native_queue(device, TP_LANE_COMPUTE),
                 tp_device_native_queue(device, TP_LANE_UPLOAD));
    cr_assert_eq(tp_device_native_queue(device, TP_LANE_COMPUTE),
                 tp_device_native_queue(device, TP_LANE_DOWNLOAD));
    ASSERT_OK(tp_device_finish(device));
    tp_device_close(device);
}

/* Two sub-devices, both computing; each has its share of the memory and a name of its own. */
Test(device, split_in_two)
{
    tp_device_list *list;
    tp_device *devices[2];
    ASSERT_OK(tp_device_list_create(&list));
    if (!tp_device_list_count(list) || tp_device_list_entry(list, 0)->caps.max_sub_devices < 2)
        cr_skip_test("device 0 cannot be split in two");
    const tp_device_caps *parent = &tp_device_list_entry(list, 0)->caps;
    ASSERT_OK(tp_device_open_split(list, 0, 2, NULL, devices));
    cr_assert_str_eq(tp_device_label(devices[0]), "0:0/2#0");
    cr_assert_str_eq(tp_device_label(devices[1]), "0:0/2#1");
    cr_assert_str_eq(tp_device_identity(devices[0]), tp_device_identity(devices[1]));
    for (int i = 0; i < 2; i++) {
        const tp_device_caps *caps = tp_device_get_caps(devices[i]);
        cr_assert_eq(caps->compute_units, parent->compute_units / 2);
        cr_assert_eq(caps->memory_bytes, parent->memory_bytes / 2);
        float values[64], out[64];
        for (int j = 0; j < 64; j++)
            values[j] = (float)j;
        tp_buffer *src, *dst;
        tp_device_kernel *kernel;
        tp_device_program *program = build_scale(devices[i]);
        ASSERT_OK(tp_buffer_create(devices[i], sizeof values, "src", &src));
        ASSERT_OK(tp_buffer_create(devices[i], sizeof values, "dst", &dst));
        ASSERT_OK(tp_buffer_write(src, 0, values, sizeof values));
        ASSERT_OK(tp_device_kernel_create(program, "scale", &kernel));
        set_scale_args(kernel, dst, src, 2.0f, (float)i, 64, 0);
        ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){64, 1, 1}, (size_t[3]){16, 1, 1},
                                           NULL, 0, NULL));
        ASSERT_OK(tp_buffer_read(dst, 0, out, sizeof out));
        for (int j = 0; j < 64; j++)
            cr_assert_eq(out[j], (float)(2 * j + i));
        tp_device_kernel_destroy(kernel);
        tp_device_program_release(program);
        tp_buffer_release(src);
        tp_buffer_release(dst);
    }
    /* A buffer of one is no argument of a kernel of the other. */
    tp_buffer *foreign;
    tp_device_kernel *kernel;
    tp_device_program *program = build_scale(devices[0]);
    ASSERT_OK(tp_device_kernel_create(program, "scale", &kernel));
    ASSERT_OK(tp_buffer_create(devices[1], 64, "foreign", &foreign));
    ASSERT_FAILS(tp_device_kernel_set_buffer(kernel, 0, foreign), TPUCL_INVALID_ARGUMENT,
                 "'foreign' is on device 0:0/2#1");
    tp_buffer_release(foreign);
    tp_device_kernel_destroy(kernel);
    tp_device_program_release(program);
    tp_device_close(devices[0]);
    tp_device_close(devices[1]);
    tp_device_list_destroy(list);
}

Test(device, too_many_sub_devices_names_both_numbers)
{
    tp_device_list *list;
    tp_device *devices[4096];
    ASSERT_OK(tp_device_list_create(&list));
    if (!tp_device_list_count(list)) cr_skip_test("no OpenCL device");
    char units[64];
    snprintf(units, sizeof units, "has %u compute units",
             tp_device_list_entry(list, 0)->caps.compute_units);
    ASSERT_FAILS(tp_device_open_split(list, 0, 4096, NULL, devices), TPUCL_UNSUPPORTED, units);
    cr_assert(strstr(tpucl_last_error()->message, "into 4096"));
    if (strstr(tp_device_list_entry(list, 0)->caps.platform, "Portable Computing Language"))
        cr_assert(strstr(tpucl_last_error()->message, "POCL_MAX_PTHREAD_COUNT"));
    cr_assert_null(devices[0]);
    tp_device_list_destroy(list);
}

/* Uploads on one lane, computes on another, downloads on the third, in that order by events only.
 * */
static void pipeline(const tp_device_options *options)
{
    enum { COUNT = 1 << 16, STEPS = 20 };
    tp_device *device = open_default(options);
    tp_device_program *program = build_scale(device);
    tp_device_kernel *kernel;
    tp_buffer *src, *dst;
    tp_staging *in, *out;
    const size_t bytes = COUNT * sizeof(float);
    ASSERT_OK(tp_device_kernel_create(program, "scale", &kernel));
    ASSERT_OK(tp_buffer_create(device, bytes, "src", &src));
    ASSERT_OK(tp_buffer_create(device, bytes, "dst", &dst));
    ASSERT_OK(tp_staging_create(device, bytes, &in));
    ASSERT_OK(tp_staging_create(device, bytes, &out));
    cr_assert_eq(tp_staging_bytes(in), bytes);
    cr_assert_eq((uintptr_t)tp_staging_data(in) % 64, 0);
    set_scale_args(kernel, dst, src, 3.0f, 1.0f, COUNT, 0);
    tp_event *computed = NULL;
    for (int step = 0; step < STEPS; step++) {
        float *values = tp_staging_data(in);
        for (int i = 0; i < COUNT; i++)
            values[i] = (float)(i % 1000 + step);
        tp_event *uploaded, *downloaded;
        ASSERT_OK(tp_buffer_upload(src, 0, values, bytes, TP_LANE_UPLOAD, false, &computed,
                                   computed != NULL, &uploaded));
        tp_event_release(computed);
        ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){COUNT, 1, 1}, (size_t[3]){64, 1, 1},
                                           &uploaded, 1, &computed));
        ASSERT_OK(tp_buffer_download(dst, 0, tp_staging_data(out), bytes, TP_LANE_DOWNLOAD, false,
                                     &computed, 1, &downloaded));
        ASSERT_OK(tp_event_wait(&downloaded, 1));
        cr_assert(tp_event_is_done(downloaded));
        const float *results = tp_staging_data(out);
        for (int i = 0; i < COUNT; i++)
            cr_assert_eq(results[i], 3.0f * (float)(i % 1000 + step) + 1.0f);
        tp_event_release(uploaded);
        tp_event_release(downloaded);
    }
    tp_event_release(computed);
    tp_staging_destroy(in);
    tp_staging_destroy(out);
    tp_buffer_release(src);
    tp_buffer_release(dst);
    tp_device_kernel_destroy(kernel);
    tp_device_program_release(program);
    tp_device_close(device);
}

Test(device, lanes_are_ordered_by_events)
{
    pipeline(NULL);
}

Test(device, synchronous_and_one_lane_do_the_same)
{
    const tp_device_options synchronous = {.synchronous = true}, one_lane = {.one_lane = true};
    pipeline(&synchronous);
    pipeline(&one_lane);
}

Test(device, synchronous_finishes_after_every_command)
{
    fake_cl_install("");
    tp_device *device = open_default(NULL);
    tp_buffer *buffer;
    const float zero = 0;
    ASSERT_OK(tp_buffer_create(device, 4096, "x", &buffer));
    const int before = fake_cl_calls("clFinish");
    ASSERT_OK(tp_buffer_fill(buffer, 0, 4096, &zero, 4, TP_LANE_COMPUTE, NULL, 0, NULL));
    cr_assert_eq(fake_cl_calls("clFinish"), before);
    tp_device_set_synchronous(device, true);
    ASSERT_OK(tp_buffer_fill(buffer, 0, 4096, &zero, 4, TP_LANE_COMPUTE, NULL, 0, NULL));
    cr_assert_eq(fake_cl_calls("clFinish"), before + 1);
    tp_buffer_release(buffer);
    tp_device_close(device);
    cr_assert_eq(fake_cl_living_objects(), 0);
}

Test(device, marks_and_waits)
{
    tp_device *device = open_default(NULL);
    tp_event *mark = NULL;
    ASSERT_OK(tp_lane_mark(device, TP_LANE_COMPUTE, &mark));
    tp_event *again = tp_event_retain(mark);
    ASSERT_OK(tp_lane_wait(device, TP_LANE_DOWNLOAD, &mark, 1));
    ASSERT_OK(tp_lane_wait(device, TP_LANE_DOWNLOAD, NULL, 0));
    ASSERT_OK(tp_lane_finish(device, TP_LANE_DOWNLOAD));
    cr_assert(tp_event_is_done(again));
    tp_event_release(mark);
    ASSERT_OK(tp_event_wait(&again, 1));
    ASSERT_OK(tp_event_wait(NULL, 0));
    tp_event_release(again);
    tp_device_close(device);
}

Test(device, profiling)
{
    uint64_t start = 0, end = 0;
    tp_event *event;
    tp_buffer *buffer;
    const float one = 1;
    const tp_device_options options = {.profiling = true};
    tp_device *device = open_default(&options);
    ASSERT_OK(tp_buffer_create(device, 1 << 20, "x", &buffer));
    ASSERT_OK(tp_buffer_fill(buffer, 0, 1 << 20, &one, 4, TP_LANE_COMPUTE, NULL, 0, &event));
    ASSERT_OK(tp_event_wait(&event, 1));
    ASSERT_OK(tp_event_times(event, &start, &end));
    cr_assert_leq(start, end);
    tp_event_release(event);
    tp_buffer_release(buffer);
    tp_device_close(device);

    /* Without it a driver may refuse, or answer anyway, as Oclgrind does. */
    device = open_default(NULL);
    ASSERT_OK(tp_lane_mark(device, TP_LANE_COMPUTE, &event));
    ASSERT_OK(tp_event_wait(&event, 1));
    if (tp_event_times(event, &start, &end) != TPUCL_OK)
        cr_assert(strstr(tpucl_last_error()->message, "without profiling"));
    tp_event_release(event);
    tp_device_close(device);
}

/* Objects outlive the close of their device, in any order. */
Test(device, buffers_keep_their_device)
{
    fake_cl_install("");
    tp_device *device = open_default(NULL);
    tp_device_program *program = build_scale(device);
    tp_buffer *buffer;
    tp_device_kernel *kernel;
    ASSERT_OK(tp_buffer_create(device, 64, "x", &buffer));
    ASSERT_OK(tp_device_kernel_create(program, "count_up", &kernel));
    tp_device_close(device);
    tp_device_program_release(program);
    ASSERT_OK(tp_device_kernel_set_buffer(kernel, 0, buffer));
    ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){16, 1, 1}, NULL, NULL, 0, NULL));
    tp_buffer_release(buffer);
    cr_assert_neq(fake_cl_living_objects(), 0);
    tp_device_kernel_destroy(kernel);
    cr_assert_eq(fake_cl_living_objects(), 0);
}

Test(slab, segments_and_limits)
{
    tp_slab *slab;
    tp_device_memory memory;
    const tp_device_options options = {.memory_limit_bytes = 1 << 20};
    tp_device *device = open_default(&options);
    const uint64_t fits[] = {400000, 400000, 1}, too_much[] = {600000, 500000},
                   overflow[] = {UINT64_MAX, 2}, empty[] = {100, 0};
    ASSERT_OK(tp_slab_create(device, fits, 3, "core slab", &slab));
    cr_assert_eq(tp_slab_segment_count(slab), 3);
    cr_assert_eq(tp_slab_bytes(slab), 800001);
    cr_assert_eq(tp_buffer_bytes(tp_slab_segment(slab, 1)), 400000);
    cr_assert_str_eq(tp_buffer_label(tp_slab_segment(slab, 1)), "core slab[1]");
    cr_assert_null(tp_slab_segment(slab, 3));
    tp_device_get_memory(device, &memory);
    cr_assert_eq(memory.used_bytes, 800001);
    tp_slab *second;
    ASSERT_FAILS(tp_slab_create(device, fits, 1, "second", &second), TPUCL_OUT_OF_DEVICE_MEMORY,
                 "'second' needs 400000 bytes, but device");
    cr_assert(
        strstr(tpucl_last_error()->message, "has 248575 of 1048576 bytes left (800001 in use)"));
    tp_slab_destroy(slab);
    ASSERT_FAILS(tp_slab_create(device, too_much, 2, "slab", &slab), TPUCL_OUT_OF_DEVICE_MEMORY,
                 "1100000 bytes");
    ASSERT_FAILS(tp_slab_create(device, overflow, 2, "slab", &slab), TPUCL_OUT_OF_DEVICE_MEMORY,
                 "64 bits");
    ASSERT_FAILS(tp_slab_create(device, empty, 2, "slab", &slab), TPUCL_INVALID_ARGUMENT,
                 "0 bytes");
    ASSERT_OK(tp_slab_create(device, fits, 0, "nothing", &slab));
    cr_assert_eq(tp_slab_bytes(slab), 0);
    tp_slab_destroy(slab);
    tp_slab_destroy(NULL);
    tp_device_get_memory(device, &memory);
    cr_assert_eq(memory.used_bytes, 0);
    cr_assert_geq(memory.peak_bytes, 800001);
    tp_device_close(device);
}
