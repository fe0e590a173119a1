/* SPDX-License-Identifier: Apache-2.0
 * Verifying a device. */
#include <tpucl/tools.h>
#include "api/handles.h"
#include "core/alloc.h"
#include "core/arena.h"
#include "device/device.h"
#include "verify/verify.h"

struct tpucl_verify_report {
    tp_arena *arena;
    tp_verify_report report;
    tpucl_verify_summary summary;
};

static const char *status_name(tp_check_status status)
{
    switch (status) {
    case TP_CHECK_PASSED:
        return "passed";
    case TP_CHECK_FAILED:
        return "failed";
    case TP_CHECK_SKIPPED:
        break;
    }
    return "skipped";
}

static tpucl_verify_check public_check(const tp_verify_check *check)
{
    const tp_check_outcome *outcome = &check->outcome;
    return (tpucl_verify_check){check->name, check->variant, status_name(outcome->status),
                                *outcome->reason ? outcome->reason : NULL, check->seconds};
}

/* The device that the selector means; of several equal sub-devices the first, as they are equal. */
static tpucl_status open_device(const char *selector, tp_device **out_device)
{
    tp_device_list *list = NULL;
    tp_device_choice choice;
    tp_device_options options = {0};
    tp_device *devices[256];
    TP_TRY(tp_device_list_create(&list));
    tpucl_status status = tp_device_list_select(list, selector, &choice);
    if (status == TPUCL_OK && choice.split > sizeof devices / sizeof *devices)
        status = TP_FAIL(TPUCL_UNSUPPORTED, "%u sub-devices, at most %zu are supported",
                         choice.split, sizeof devices / sizeof *devices);
    if (status == TPUCL_OK)
        status = tp_device_open_split(list, choice.index, choice.split, &options, devices);
    tp_device_list_destroy(list);
    TP_TRY(status);
    for (uint32_t i = 1; i < choice.split; i++)
        tp_device_close(devices[i]);
    *out_device = devices[0];
    return TPUCL_OK;
}

static void on_check(void *user, const tp_verify_check *check, int32_t done, int32_t total)
{
    const tpucl_verify_options *options = user;
    tpucl_verify_check public = public_check(check);
    options->progress(options->user, &public, done, total);
}

tpucl_status tpucl_verify(const tpucl_verify_options *options, tpucl_verify_report **out_report)
{
    TP_API_NEED(out_report);
    *out_report = NULL;
    tpucl_verify_options all;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_verify_options));
    tp_verify_options inner = {.quick = all.quick,
                               .variant = all.variant,
                               .progress = all.progress ? on_check : NULL,
                               .user = &all};
    tp_device *device = NULL;
    tpucl_verify_report *report = TP_NEW(tpucl_verify_report);
    if (!report) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_arena_create(0, &report->arena), failed);
    TP_TRY_GOTO(status, open_device(all.device, &device), failed);
    TP_TRY_GOTO(status, tp_verify_run(device, &inner, report->arena, &report->report), failed);
    report->summary = (tpucl_verify_summary){.checks = report->report.check_count,
                                             .passed = report->report.passed,
                                             .failed = report->report.failed,
                                             .skipped = report->report.skipped,
                                             .exact = report->report.is_exact};
    tp_api_device_info(tp_device_label(device), tp_device_get_caps(device), true, "",
                       &report->summary.device);
    tp_device_close(device);
    *out_report = report;
    return TPUCL_OK;
failed:
    tp_device_close(device);
    tpucl_verify_report_destroy(report);
    return status;
}

void tpucl_verify_report_destroy(tpucl_verify_report *report)
{
    if (!report) return;
    tp_arena_destroy(report->arena);
    tp_free(report);
}

const tpucl_verify_summary *tpucl_verify_report_summary(const tpucl_verify_report *report)
{
    return report ? &report->summary : NULL;
}

tpucl_verify_check tpucl_verify_report_check(const tpucl_verify_report *report, int32_t index)
{
    if (!report || index < 0 || index >= report->report.check_count)
        return (tpucl_verify_check){NULL, NULL, NULL, NULL, 0};
    return public_check(&report->report.checks[index]);
}

tpucl_status tpucl_verify_report_json(const tpucl_verify_report *report, char **out_text)
{
    TP_API_NEED(report);
    TP_API_NEED(out_text);
    tp_json_writer writer = {0};
    tp_api_begin_report(&writer, &report->summary.device);
    tp_json_put_bool(&writer, "exact", report->summary.exact);
    tp_json_put_int(&writer, "passed", report->summary.passed);
    tp_json_put_int(&writer, "failed", report->summary.failed);
    tp_json_put_int(&writer, "skipped", report->summary.skipped);
    tp_json_key(&writer, "checks");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; i < report->summary.checks; i++) {
        tpucl_verify_check check = tpucl_verify_report_check(report, i);
        tp_json_begin_object(&writer);
        tp_json_put_string(&writer, "name", check.name);
        tp_json_put_string(&writer, "variant", check.variant);
        tp_json_put_string(&writer, "status", check.status);
        tp_json_put_string(&writer, "reason", check.reason);
        tp_json_put_double(&writer, "seconds", check.seconds);
        tp_json_end_object(&writer);
    }
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    TP_TRY(tp_json_writer_finish(&writer, out_text));
    return TPUCL_OK;
}
