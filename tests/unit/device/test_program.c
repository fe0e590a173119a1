/* SPDX-License-Identifier: Apache-2.0
 * Building: errors, memory cache, disk cache, many at once. */
#include <stdio.h>
#include "device_test.h"
#include "harness/fake_cl.h"

static char folder[128];
static tp_program_cache *cache;

static void open_cache(void)
{
    snprintf(folder, sizeof folder, "%s/tpucl-program-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    cr_assert(mkdtemp(folder));
    ASSERT_OK(tp_program_cache_open(folder, 0, &cache));
}

static void close_cache(void)
{
    char command[160];
    tp_program_cache_close(cache);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
}

static tp_program_cache_counts counts(void)
{
    tp_program_cache_counts result;
    tp_program_cache_get_counts(cache, &result);
    return result;
}

static tp_build_stats stats(const tp_device *device)
{
    tp_build_stats result;
    tp_device_get_build_stats(device, &result);
    return result;
}

Test(program, options_follow_the_device)
{
    tp_device *device = open_default(NULL);
    const tp_device_caps *caps = tp_device_get_caps(device);
    const char *options = tp_device_build_options(device);
    cr_assert_eq(strncmp(options, "-cl-std=CL1.2", 13), 0);
    cr_assert_eq(strstr(options, "-DTP_SLOW_FMA=1") == NULL, caps->fma_is_fast);
    cr_assert_eq(strstr(options, "-DTP_CORRECT_DIVIDE=1") != NULL, caps->has_correct_divide_sqrt);
    tp_device_close(device);
}

Test(program, a_build_error_has_name_options_and_log)
{
    fake_cl_install("");
    tp_device *device = open_default(NULL);
    tp_device_program *program;
    const tp_device_program_source source = {
        .label = "broken one",
        .source = "__kernel void k(__global int *a) { a[0] = nonsense; }",
        .options = "-DWIDTH=3"};
    ASSERT_FAILS(tp_device_program_build(device, &source, &program), TPUCL_DEVICE_ERROR,
                 "clBuildProgram failed with CL_BUILD_PROGRAM_FAILURE (-11): program 'broken one' "
                 "with options '-cl-std=CL1.2");
    cr_assert(strstr(tpucl_last_error()->message, "-DWIDTH=3"));
    cr_assert(strstr(tpucl_last_error()->message, "nonsense"), "%s", tpucl_last_error()->message);
    cr_assert_null(program);
    /* And again: a failure is not remembered as success. */
    cr_assert_eq(tp_device_program_build(device, &source, &program), TPUCL_DEVICE_ERROR);
    tp_device_close(device);
    cr_assert_eq(fake_cl_living_objects(), 0);
}

Test(program, equal_sources_are_one_program)
{
    tp_device *device = open_default(NULL);
    tp_device_program *one = build_scale(device), *two = build_scale(device), *three;
    cr_assert_eq(one, two);
    const tp_device_program_source other = {
        .label = "scale", .source = scale_source, .options = "-DX"};
    ASSERT_OK(tp_device_program_build(device, &other, &three));
    cr_assert_neq(one, three);
    cr_assert_eq(stats(device).from_memory, 1);
    cr_assert_eq(stats(device).from_source, 2);
    tp_device_program_release(one);
    tp_device_program_release(two);
    tp_device_program_release(three);
    tp_device_program_release(NULL);
    tp_device_forget_programs(device);
    tp_device_program_release(build_scale(device));
    cr_assert_eq(stats(device).from_source, 3);
    tp_device_close(device);
}

/* Builds, launches, checks the result, closes; what was stored by the end. */
static tp_build_stats run_with_cache(void)
{
    const tp_device_options options = {.cache = cache};
    tp_device *device = open_default(&options);
    tp_device_program *program = build_scale(device);
    tp_device_kernel *kernel;
    tp_buffer *cells;
    uint32_t values[64] = {0};
    ASSERT_OK(tp_device_kernel_create(program, "count_up", &kernel));
    ASSERT_OK(tp_buffer_create(device, sizeof values, "cells", &cells));
    ASSERT_OK(tp_buffer_write(cells, 0, values, sizeof values));
    ASSERT_OK(tp_device_kernel_set_buffer(kernel, 0, cells));
    ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){64, 1, 1}, (size_t[3]){8, 1, 1}, NULL, 0,
                                       NULL));
    ASSERT_OK(tp_buffer_read(cells, 0, values, sizeof values));
    for (int i = 0; i < 64; i++)
        cr_assert_eq(values[i], 1);
    const tp_build_stats result = stats(device);
    tp_device_kernel_destroy(kernel);
    tp_device_program_release(program);
    tp_buffer_release(cells);
    tp_device_close(device);
    return result;
}

/* B20, B21: a second start takes the binary from disk. */
Test(program, disk_cache_serves_the_second_start)
{
    if (has_quirk(TP_QUIRK_NO_BINARIES)) cr_skip_test("binaries of this device are not kept");
    open_cache();
    cr_assert_eq(run_with_cache().from_source, 1);
    cr_assert_eq(counts().stores, 1);
    const tp_build_stats warm = run_with_cache();
    cr_assert_eq(warm.from_source, 0);
    cr_assert_eq(warm.from_disk, 1);
    cr_assert_eq(counts().stores, 1, "nothing new to store");
    close_cache();
}

/* B24: another driver means another key; a binary that the driver refuses is removed and built
 * anew. */
Test(program, disk_cache_misses_when_the_driver_changes)
{
    if (has_quirk(TP_QUIRK_NO_BINARIES)) cr_skip_test("binaries of this device are not kept");
    open_cache();
    fake_cl_install("");
    cr_assert_eq(run_with_cache().from_source, 1);
    fake_cl_configure("driver=99.9");
    cr_assert_eq(run_with_cache().from_source, 1);
    cr_assert_eq(counts().stores, 2);
    fake_cl_configure("");
    cr_assert_eq(run_with_cache().from_disk, 1);
    fake_cl_configure("refuse_binaries=1");
    cr_assert_eq(run_with_cache().from_source, 1);
    cr_assert_eq(counts().rejected, 1);
    cr_assert_eq(counts().stores, 3);
    fake_cl_configure("");
    cr_assert_eq(run_with_cache().from_disk, 1);
    cr_assert_eq(fake_cl_living_objects(), 0);
    close_cache();
}

typedef struct seen {
    uint32_t calls, last_done;
    bool is_ordered;
} seen;

static void note_progress(const tp_build_progress *progress, void *user)
{
    seen *s = user;
    s->calls++;
    s->is_ordered = s->is_ordered && progress->done == s->last_done + 1 && progress->total == 12;
    s->last_done = progress->done;
}

Test(program, many_at_once)
{
    enum { COUNT = 12 };
    fake_cl_install("");
    tp_device *device = open_default(NULL);
    tp_device_program_source sources[COUNT];
    tp_device_program *programs[COUNT];
    char texts[COUNT][96];
    for (int i = 0; i < COUNT; i++) {
        /* The last two are the same as the first two. */
        snprintf(texts[i], sizeof texts[i], "__kernel void k(__global int *a) { a[0] = %d; }",
                 i % 10);
        sources[i] = (tp_device_program_source){.label = texts[i], .source = texts[i]};
    }
    seen progress = {.is_ordered = true};
    ASSERT_OK(tp_device_program_build_many(device, sources, COUNT, 4, note_progress, &progress,
                                           programs));
    cr_assert_eq(progress.calls, COUNT);
    cr_assert(progress.is_ordered);
    cr_assert_eq(stats(device).from_source, 10, "equal ones are built once, whatever the timing");
    for (int i = 0; i < COUNT; i++) {
        tp_device_kernel *kernel;
        tp_buffer *cell;
        int32_t value = -1;
        ASSERT_OK(tp_device_kernel_create(programs[i], "k", &kernel));
        ASSERT_OK(tp_buffer_create(device, 4, "cell", &cell));
        ASSERT_OK(tp_device_kernel_set_buffer(kernel, 0, cell));
        ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){1, 1, 1}, (size_t[3]){1, 1, 1}, NULL,
                                           0, NULL));
        ASSERT_OK(tp_buffer_read(cell, 0, &value, 4));
        cr_assert_eq(value, i % 10);
        tp_device_kernel_destroy(kernel);
        tp_buffer_release(cell);
        tp_device_program_release(programs[i]);
    }
    ASSERT_OK(tp_device_program_build_many(device, sources, 0, 0, NULL, NULL, programs));

    /* One bad one: its error, and nothing handed out. */
    sources[7].source = "__kernel void k( { }";
    sources[7].label = "the bad one";
    tp_device_forget_programs(device);
    ASSERT_FAILS(tp_device_program_build_many(device, sources, COUNT, 3, NULL, NULL, programs),
                 TPUCL_DEVICE_ERROR, "'the bad one'");
    for (int i = 0; i < COUNT; i++)
        cr_assert_null(programs[i]);
    tp_device_close(device);
    cr_assert_eq(fake_cl_living_objects(), 0);
}
