/* SPDX-License-Identifier: Apache-2.0
 * Benchmarks. */
#include <tpucl/tools.h>
#include "api/handles.h"
#include "bench/bench.h"
#include "core/alloc.h"

struct tpucl_bench_report {
    tp_bench_report *report;
};

tpucl_status tpucl_bench(const tpucl_bench_options *options, tpucl_bench_report **out_report)
{
    TP_API_NEED(out_report);
    *out_report = NULL;
    tpucl_bench_options all;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_bench_options));
    tp_bench_options inner = {.selector = all.device,
                              .suite = all.suite,
                              .quick = all.quick,
                              .progress = all.progress,
                              .user = all.user};
    tpucl_bench_report *report = TP_NEW(tpucl_bench_report);
    if (!report) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_bench_run(&inner, &report->report), failed);
    *out_report = report;
    return TPUCL_OK;
failed:
    tp_free(report);
    return status;
}

void tpucl_bench_report_destroy(tpucl_bench_report *report)
{
    if (!report) return;
    tp_bench_report_destroy(report->report);
    tp_free(report);
}

const char *tpucl_bench_report_machine(const tpucl_bench_report *report)
{
    return report->report->machine;
}

tpucl_bench_row tpucl_bench_report_row(const tpucl_bench_report *report, int32_t index)
{
    const tp_bench_suites *suites = &report->report->suites;
    size_t left = index < 0 ? SIZE_MAX : (size_t)index;
    for (size_t s = 0; s < suites->count; s++) {
        const tp_bench_suite *suite = &suites->items[s];
        if (left < suite->rows.count) {
            const tp_bench_row *row = &suite->rows.items[left];
            return (tpucl_bench_row){suite->name, row->name,  row->side, row->seconds,
                                     row->spread, row->value, row->unit, row->is_projected,
                                     row->note,   row->share};
        }
        left -= suite->rows.count;
    }
    return (tpucl_bench_row){0};
}

tpucl_bench_ratio tpucl_bench_report_ratio(const tpucl_bench_report *report, int32_t index)
{
    const tp_bench_suites *suites = &report->report->suites;
    size_t left = index < 0 ? SIZE_MAX : (size_t)index;
    for (size_t s = 0; s < suites->count; s++) {
        const tp_bench_suite *suite = &suites->items[s];
        if (left < suite->ratios.count)
            return (tpucl_bench_ratio){suite->name, suite->ratios.items[left].name,
                                       suite->ratios.items[left].value};
        left -= suite->ratios.count;
    }
    return (tpucl_bench_ratio){0};
}

const char *tpucl_bench_report_sentence(const tpucl_bench_report *report, const char *suite)
{
    const tp_bench_suites *suites = &report->report->suites;
    for (size_t s = 0; s < suites->count; s++)
        if (!strcmp(suites->items[s].name, suite)) return suites->items[s].sentence;
    return NULL;
}

const char *tpucl_bench_report_note(const tpucl_bench_report *report, int32_t index)
{
    const tp_bench_notes *notes = &report->report->notes;
    return index < 0 || (size_t)index >= notes->count ? NULL : notes->items[index];
}

const char *tpucl_bench_suite_name(int32_t index)
{
    return index < 0 ? NULL : tp_bench_suite_name((size_t)index);
}

/* ---- JSON ---- */

static void write_row(tp_json_writer *writer, const tp_bench_row *row)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "case", row->name);
    tp_json_put_string(writer, "side", row->side);
    tp_json_put_double(writer, "seconds", row->seconds);
    tp_json_put_double(writer, "spread", row->spread);
    tp_json_put_double(writer, "value", row->value);
    tp_json_put_string(writer, "unit", row->unit);
    tp_json_put_string(writer, "kind", row->is_projected ? "projected" : "measured");
    tp_json_key(writer, "share");
    if (row->share > 0)
        tp_json_write_double(writer, row->share);
    else
        tp_json_write_null(writer);
    tp_json_put_string(writer, "note", row->note);
    tp_json_end_object(writer);
}

static void write_suite(tp_json_writer *writer, const tp_bench_suite *suite)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "name", suite->name);
    tp_json_key(writer, "rows");
    tp_json_begin_array(writer);
    for (size_t i = 0; i < suite->rows.count; i++)
        write_row(writer, &suite->rows.items[i]);
    tp_json_end_array(writer);
    tp_json_key(writer, "ratios");
    tp_json_begin_object(writer);
    for (size_t i = 0; i < suite->ratios.count; i++)
        tp_json_put_double(writer, suite->ratios.items[i].name, suite->ratios.items[i].value);
    tp_json_end_object(writer);
    tp_json_put_string(writer, "sentence", suite->sentence);
    tp_json_end_object(writer);
}

tpucl_status tpucl_bench_report_json(const tpucl_bench_report *report, char **out_text)
{
    TP_API_NEED(report);
    TP_API_NEED(out_text);
    const tp_bench_report *inner = report->report;
    tpucl_device_info device;
    tp_json_writer writer = {0};
    tp_api_device_info(tp_device_label(inner->device), tp_device_get_caps(inner->device), true, "",
                       &device);
    tp_api_begin_report(&writer, &device);
    tp_json_key(&writer, "host");
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "processor", inner->processor);
    tp_json_put_int(&writer, "processors", inner->processor_count);
    tp_json_put_string(&writer, "time", inner->time);
    tp_json_end_object(&writer);
    tp_json_key(&writer, "suites");
    tp_json_begin_array(&writer);
    for (size_t i = 0; i < inner->suites.count; i++)
        write_suite(&writer, &inner->suites.items[i]);
    tp_json_end_array(&writer);
    tp_json_key(&writer, "notes");
    tp_json_begin_array(&writer);
    for (size_t i = 0; i < inner->notes.count; i++)
        tp_json_write_string(&writer, inner->notes.items[i]);
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    TP_TRY(tp_json_writer_finish(&writer, out_text));
    return TPUCL_OK;
}
