/* SPDX-License-Identifier: Apache-2.0
 * Compiling in processes of their own: with tpucl-compiler, and with ones that are not what they should be. */
#include <stdio.h>
#include <sys/stat.h>
#include "core/thread.h"
#include "device_test.h"

enum { COUNT = 3 };
static char folder[128], file[160];
static char texts[COUNT][96];
static tp_device_program_source sources[COUNT];

static void begin(void)
{
    if (!has_quirk(TP_QUIRK_ONE_COMPILER) || tp_thread_processor_count() < 2)
        cr_skip_test("programs are not compiled apart here");
    snprintf(folder, sizeof folder, "%s/tpucl-compiler-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    cr_assert(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/file", folder);
    for (int i = 0; i < COUNT; i++) { /* the last is the first once more */
        snprintf(texts[i], sizeof texts[i], "__kernel void k(__global int *a) { a[0] = %d; }",
                 40 + i % 2);
        sources[i] = (tp_device_program_source){.label = "forty", .source = texts[i]};
    }
}

static void end(void)
{
    char command[160];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
}

/* A program of two lines of shell instead of tpucl-compiler. */
static void use_script(const char *line)
{
    FILE *out = fopen(file, "w");
    cr_assert(out);
    fprintf(out, "#!/bin/sh\n%s\n", line);
    fclose(out);
    cr_assert_eq(chmod(file, 0700), 0);
    setenv("TPUCL_COMPILER", file, 1);
}

static int32_t result_of(tp_device *device, tp_device_program *program)
{
    tp_device_kernel *kernel;
    tp_buffer *cell;
    int32_t value = -1;
    ASSERT_OK(tp_device_kernel_create(program, "k", &kernel));
    ASSERT_OK(tp_buffer_create(device, 4, "cell", &cell));
    ASSERT_OK(tp_device_kernel_set_buffer(kernel, 0, cell));
    ASSERT_OK(tp_device_kernel_enqueue(kernel, (size_t[3]){1, 1, 1}, (size_t[3]){1, 1, 1}, NULL, 0,
                                       NULL));
    ASSERT_OK(tp_buffer_read(cell, 0, &value, 4));
    tp_device_kernel_destroy(kernel);
    tp_buffer_release(cell);
    return value;
}

typedef struct seen {
    uint32_t calls;
    bool is_ordered;
} seen;

static void note(const tp_build_progress *progress, void *user)
{
    seen *s = user;
    s->is_ordered = progress->done == ++s->calls && progress->total == COUNT && s->is_ordered;
}

/* Opens the device, builds all three, checks what they compute, and closes. */
static tp_build_stats build_all(const char *cache_folder)
{
    tp_program_cache *cache;
    ASSERT_OK(tp_program_cache_open(cache_folder, 0, &cache));
    const tp_device_options options = {.cache = cache};
    tp_device *device = open_default(&options);
    tp_device_program *programs[COUNT];
    tp_build_stats stats;
    seen progress = {.is_ordered = true};
    ASSERT_OK(tp_device_program_build_many(device, sources, COUNT, 0, note, &progress, programs));
    cr_assert_eq(progress.calls, COUNT);
    cr_assert(progress.is_ordered);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(result_of(device, programs[i]), 40 + i % 2);
        tp_device_program_release(programs[i]);
    }
    tp_device_get_build_stats(device, &stats);
    tp_device_close(device);
    tp_program_cache_close(cache);
    return stats;
}

Test(compiler, new_programs_are_compiled_apart_and_come_from_disk)
{
    begin();
    const tp_build_stats cold = build_all(folder);
    cr_assert_eq(cold.apart, 2, "equal ones once, not %u", cold.apart);
    cr_assert_eq(cold.from_disk, 2);
    cr_assert_eq(cold.from_source, 0);
    const tp_build_stats warm = build_all(folder);
    cr_assert_eq(warm.apart, 0);
    cr_assert_eq(warm.from_disk, 2);
    end();
}

static tpucl_status prepare(void *device)
{
    tp_device_programs_prepare(device, sources, COUNT, NULL, NULL);
    return TPUCL_OK;
}

/* Two devices with a cache each in one folder, as two processes have them. */
Test(compiler, two_may_fill_one_cache)
{
    begin();
    tp_program_cache *caches[2];
    tp_device *devices[2];
    tp_thread *thread;
    tp_build_stats stats[2];
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(tp_program_cache_open(folder, 0, &caches[i]));
        devices[i] = open_default(&(tp_device_options){.cache = caches[i]});
    }
    ASSERT_OK(tp_thread_create("other", prepare, devices[1], &thread));
    ASSERT_OK(prepare(devices[0]));
    ASSERT_OK(tp_thread_join(thread));
    for (int i = 0; i < 2; i++) {
        tp_device_get_build_stats(devices[i], &stats[i]);
        tp_device_close(devices[i]);
        tp_program_cache_close(caches[i]);
    }
    cr_assert(stats[0].apart + stats[1].apart >= 2);
    cr_assert_eq(build_all(folder).from_disk, 2);
    end();
}

/* Nothing can be made in a folder that is a file; a full disk looks the same from here. */
Test(compiler, a_cache_that_takes_nothing_leaves_building_to_us)
{
    begin();
    FILE *out = fopen(file, "w");
    cr_assert(out);
    fclose(out);
    const tp_build_stats stats = build_all(file);
    cr_assert_eq(stats.from_source, 2);
    cr_assert_eq(stats.from_disk, 0);
    end();
}

Test(compiler, one_that_does_not_start_leaves_building_to_us)
{
    begin();
    use_script("exit 1");
    const tp_build_stats stats = build_all(folder);
    cr_assert_eq(stats.from_source, 2);
    cr_assert_eq(stats.apart, 0);
    end();
}

/* By the system, for want of memory, or by a person: no fault of the driver, so nothing is held against it. */
Test(compiler, one_that_is_killed_leaves_building_to_us)
{
    static const char *const signals[] = {"KILL", "TERM"};
    for (int i = 0; i < 2; i++) {
        begin();
        char line[160];
        snprintf(line, sizeof line,
                 "printf 'tpc1\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000' "
                 ">&0\nhead -c 1 >/dev/null\nkill -%s $$",
                 signals[i]);
        use_script(line);
        const tp_build_stats stats = build_all(folder);
        cr_assert_eq(stats.from_source, 2, "%s", signals[i]);
        cr_assert_eq(stats.apart, 0);
        end();
    }
}

/* A compiler that ends its process. The message of a process that is ready, then the crash. */
Test(compiler, one_that_crashes_costs_the_program_not_the_process)
{
    begin();
    use_script("printf 'tpc1\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000' >&0\n"
               "head -c 1 >/dev/null\nkill -SEGV $$");
    tp_program_cache *cache;
    ASSERT_OK(tp_program_cache_open(folder, 0, &cache));
    const tp_device_options options = {.cache = cache};
    tp_device *device = open_default(&options);
    tp_device_program *programs[COUNT];
    ASSERT_FAILS(tp_device_program_build_many(device, sources, COUNT, 0, NULL, NULL, programs),
                 TPUCL_DEVICE_ERROR, "crashes on program 'forty'");
    for (int i = 0; i < COUNT; i++)
        cr_assert_null(programs[i]);
    tp_device_close(device);
    tp_program_cache_close(cache);
    end();
}
