/* SPDX-License-Identifier: Apache-2.0
 * Fail on purpose: every OpenCL call and every allocation of a small run fails in turn. Whatever
 * fails, there is a message exactly when there is a failure, nothing of OpenCL's is left over, and
 * nothing crashes. */
#include <stdio.h>
#include "core/alloc.h"
#include "device/slab.h"
#include "device_test.h"
#include "harness/fake_cl.h"

static char folder[128];
static bool has_cache; /* the scenario's second build then comes from disk */

static tpucl_status compute(tp_device *device, tp_device_program *program, tp_buffer *src,
                            tp_buffer *dst)
{
    enum { COUNT = 256 };
    float values[COUNT], out[COUNT];
    const uint32_t n = COUNT, overrun = 0;
    const float two = 2.0f, one = 1.0f;
    tp_device_kernel *kernel = NULL;
    tp_event *uploaded = NULL, *computed = NULL, *downloaded = NULL;
    tpucl_status status = TPUCL_OK;
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    TP_TRY_GOTO(status, tp_device_kernel_create(program, "scale", &kernel), done);
    TP_TRY_GOTO(status, tp_device_kernel_set_buffer(kernel, 0, dst), done);
    TP_TRY_GOTO(status, tp_device_kernel_set_buffer(kernel, 1, src), done);
    TP_TRY_GOTO(status, tp_device_kernel_set_bytes(kernel, 2, &two, sizeof two), done);
    TP_TRY_GOTO(status, tp_device_kernel_set_bytes(kernel, 3, &one, sizeof one), done);
    TP_TRY_GOTO(status, tp_device_kernel_set_bytes(kernel, 4, &n, sizeof n), done);
    TP_TRY_GOTO(status, tp_device_kernel_set_bytes(kernel, 5, &overrun, sizeof overrun), done);
    TP_TRY_GOTO(
        status,
        tp_buffer_upload(src, 0, values, sizeof values, TP_LANE_UPLOAD, false, NULL, 0, &uploaded),
        done);
    TP_TRY_GOTO(status,
                tp_device_kernel_enqueue(kernel, (size_t[3]){COUNT, 1, 1}, (size_t[3]){32, 1, 1},
                                         &uploaded, 1, &computed),
                done);
    TP_TRY_GOTO(status, tp_lane_wait(device, TP_LANE_DOWNLOAD, &computed, 1), done);
    TP_TRY_GOTO(
        status,
        tp_buffer_download(dst, 0, out, sizeof out, TP_LANE_DOWNLOAD, false, NULL, 0, &downloaded),
        done);
    TP_TRY_GOTO(status, tp_event_wait(&downloaded, 1), done);
    TP_TRY_GOTO(status, tp_buffer_copy(dst, 0, src, 0, sizeof out, TP_LANE_COMPUTE, NULL, 0, NULL),
                done);
    TP_TRY_GOTO(status, tp_lane_finish(device, TP_LANE_COMPUTE), done);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(out[i], 2.0f * (float)i + 1.0f);
    TP_TRY_GOTO(status, tp_buffer_check_guards(dst), done);
done:
    if (status != TPUCL_OK) { /* this frame may be in use still; clearing up must not hide why */
        tpucl_error record;
        tp_error_capture(&record);
        (void)tp_device_finish(device);
        tp_error_restore(&record);
    }
    tp_event_release(uploaded);
    tp_event_release(computed);
    tp_event_release(downloaded);
    tp_device_kernel_destroy(kernel);
    return status;
}

static tpucl_status use(tp_device *device)
{
    tp_slab *slab = NULL;
    tp_staging *staging = NULL;
    tp_device_program *programs[2] = {0};
    const uint64_t segments[] = {1024, 1024};
    const tp_device_program_source sources[2] = {
        {.label = "scale", .source = scale_source},
        {.label = "scale x", .source = scale_source, .options = "-DX"}};
    tpucl_status status = TPUCL_OK;
    TP_TRY_GOTO(status, tp_slab_create(device, segments, 2, "slab", &slab), done);
    TP_TRY_GOTO(status, tp_staging_create(device, 4096, &staging), done);
    TP_TRY_GOTO(status, tp_device_program_build_many(device, sources, 2, 1, NULL, NULL, programs),
                done);
    TP_TRY_GOTO(status,
                compute(device, programs[0], tp_slab_segment(slab, 0), tp_slab_segment(slab, 1)),
                done);
done:
    for (int i = 0; i < 2; i++)
        tp_device_program_release(programs[i]);
    tp_staging_destroy(staging);
    tp_slab_destroy(slab);
    return status;
}

/* Enumerates, opens two sub-devices when there are two, and uses the first. */
static tpucl_status scenario(void)
{
    tp_device_list *list = NULL;
    tp_program_cache *cache = NULL;
    tp_device *devices[2] = {0};
    tp_device_choice choice;
    tpucl_status status = TPUCL_OK;
    if (has_cache) TP_TRY_GOTO(status, tp_program_cache_open(folder, 0, &cache), done);
    const tp_device_options options = {.guard_zones = true, .cache = cache};
    TP_TRY_GOTO(status, tp_device_list_create(&list), done);
    TP_TRY_GOTO(status, tp_device_list_select(list, NULL, &choice), done);
    const bool splits = tp_device_list_entry(list, choice.index)->caps.max_sub_devices >= 2;
    TP_TRY_GOTO(status, tp_device_open_split(list, choice.index, splits ? 2 : 1, &options, devices),
                done);
    TP_TRY_GOTO(status, use(devices[0]), done);
done:
    tp_device_close(devices[1]);
    tp_device_close(devices[0]);
    tp_device_list_destroy(list);
    tp_program_cache_close(cache);
    return status;
}

static void set_up(void)
{
    snprintf(folder, sizeof folder, "%s/tpucl-faults-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    cr_assert(mkdtemp(folder));
    tp_device_close(open_default(NULL));
}

static void tear_down(void)
{
    char command[160];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(faults, .init = set_up, .fini = tear_down);

static void check_outcome(tpucl_status status, const char *what, int nth)
{
    if (status != TPUCL_OK) {
        cr_assert_eq(tpucl_last_error()->status, status,
                     "%s number %d: the record is of another failure", what, nth);
        cr_assert_str_not_empty(tpucl_last_error()->message);
    }
    cr_assert_eq(fake_cl_living_objects(), 0, "%s number %d leaves %d objects", what, nth,
                 fake_cl_living_objects());
}

/* Calls whose failure a run survives, because the answer is optional, another way is tried, or a
 * device is being closed. */
static bool is_optional(const char *call)
{
    if (has_cache && strcmp(call, "clBuildProgram") == 0) return true;
    static const char *const prefixes[] = {
        "clRelease", "clFlush", "clGet", "clFinish", "clCreateProgramWithBinary", "clEnqueueUnmap"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(call, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

static int fail_each_call(void)
{
    enum { MAX_ENTRIES = 64 };
    int totals[MAX_ENTRIES], failures = 0;
    fake_cl_install("");
    ASSERT_OK(scenario());
    cr_assert_leq(fake_cl_entry_count(), MAX_ENTRIES);
    for (int entry = 0; entry < fake_cl_entry_count(); entry++)
        totals[entry] = fake_cl_calls(fake_cl_entry_name(entry));
    for (int entry = 0; entry < fake_cl_entry_count(); entry++) {
        const char *call = fake_cl_entry_name(entry);
        for (int nth = 1; nth <= totals[entry]; nth++) {
            char specification[96];
            snprintf(specification, sizeof specification, "fail=%s:%d:-5", call, nth);
            fake_cl_configure(specification);
            tp_error_clear();
            const tpucl_status status = scenario();
            check_outcome(status, call, nth);
            if (!is_optional(call) && fake_cl_strikes()) {
                cr_expect_neq(status, TPUCL_OK, "%s number %d failed and nobody noticed", call,
                              nth);
                cr_expect(strstr(tpucl_last_error()->message, "CL_OUT_OF_RESOURCES (-5)"),
                          "%s number %d: %s", call, nth, tpucl_last_error()->message);
            }
            failures += status != TPUCL_OK;
        }
    }
    return failures;
}

Test(faults, every_call_fails_once)
{
    cr_assert_gt(fail_each_call(), 20, "a test that fails nothing tests nothing");
}

Test(faults, every_call_fails_once_with_a_cache)
{
    has_cache = true;
    cr_assert_gt(fail_each_call(), 20);
}

Test(faults, every_allocation_fails_once)
{
    has_cache = true;
    fake_cl_install("");
    ASSERT_OK(scenario());
    tp_alloc_test_fail_after(-1);
    ASSERT_OK(scenario());
    const int64_t total = tp_alloc_test_count();
    int failures = 0;
    for (int64_t n = 0; n < total; n++) {
        fake_cl_configure("");
        tp_error_clear();
        tp_alloc_test_fail_after(n);
        const tpucl_status status = scenario();
        tp_alloc_test_fail_after(-1);
        check_outcome(status, "allocation", (int)n);
        if (status != TPUCL_OK) cr_assert_neq(status, TPUCL_INTERNAL);
        failures += status != TPUCL_OK;
    }
    cr_assert_gt(failures, 10);
}
