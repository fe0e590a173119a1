/* SPDX-License-Identifier: Apache-2.0
 * Checking a run without running it. */
#include <stdio.h>
#include <string.h>
#include "api/check_internal.h"
#include "core/alloc.h"

static double share(double useful, double spent)
{
    return spent > 0 ? useful / spent : 0;
}

tpucl_status tp_api_check_input(const tp_check_input *input, tpucl_check_report *report)
{
    const tp_config *config = input->config;
    TP_TRY(tp_check_run(input, report->report));
    const tp_check_summary *found = &report->report->summary;
    report->summary.name = tp_arena_strdup(report->report->arena, config->name);
    report->summary.topology = tp_arena_strdup(report->report->arena, input->topology->name);
    if (!report->summary.name || !report->summary.topology) return TPUCL_OUT_OF_MEMORY;
    report->summary.cores = input->topology->cores;
    report->summary.per_core_batch = config->per_core_batch;
    report->summary.global_batch = config->global_batch;
    report->summary.mxu_share = share(found->flops, found->mxu_flops);
    report->summary.hbm_share = share(found->tensor_bytes, found->padded_bytes);
    report->summary.flops_per_core_step = found->flops;
    return TPUCL_OK;
}

tpucl_status tp_api_check_session(const tp_session *session, int64_t train_examples,
                                  tpucl_check_report *report)
{
    const tp_config *config = tp_session_config(session);
    tp_graph *train = NULL, *evaluate = NULL;
    TP_TRY(tp_session_build_graphs(session, config->per_core_batch, &train, &evaluate));
    const tp_check_input input = {.train = train,
                                  .config = config,
                                  .topology = tp_session_topology(session),
                                  .train_examples = train_examples};
    const tpucl_status status = tp_api_check_input(&input, report);
    tp_graph_destroy(train);
    tp_graph_destroy(evaluate);
    return status;
}

static tpucl_status check(const tpucl_run_options *options, tpucl_check_report *report)
{
    tp_session_options settings = {.plan_only = true};
    tp_session *session = NULL;
    tpucl_status status = tp_api_read_config(options, &settings.config);
    if (status == TPUCL_INVALID_ARGUMENT) return status;
    if (status == TPUCL_OK) status = tp_session_create(&settings, &session);
    if (status == TPUCL_OK)
        status =
            tp_api_check_session(session, tp_session_train_source(session)->example_count, report);
    tp_session_destroy(session);
    if (status == TPUCL_OK || status == TPUCL_OUT_OF_MEMORY) return status;
    return tp_check_add_error(report->report, "refused");
}

void tp_api_check_count(tpucl_check_report *report)
{
    for (size_t i = 0; i < report->report->findings.count; i++) {
        const tp_severity severity = report->report->findings.items[i].severity;
        report->summary.errors += severity == TP_SEVERITY_ERROR;
        report->summary.warnings += severity == TP_SEVERITY_WARNING;
        report->summary.notes += severity == TP_SEVERITY_NOTE;
    }
}

tpucl_status tp_api_check_create(tpucl_check_report **out_report)
{
    tpucl_check_report *report = TP_NEW(tpucl_check_report);
    if (!report) return TPUCL_OUT_OF_MEMORY;
    report->summary.name = report->summary.topology = "";
    const tpucl_status status = tp_check_create(&report->report);
    if (status != TPUCL_OK) {
        tp_free(report);
        return status;
    }
    *out_report = report;
    return TPUCL_OK;
}

tpucl_status tpucl_check(const tpucl_run_options *options, tpucl_check_report **out_report)
{
    TP_API_NEED(out_report);
    *out_report = NULL;
    tpucl_run_options all;
    tpucl_check_report *report = NULL;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_run_options));
    TP_TRY(tp_api_check_create(&report));
    const tpucl_status status = check(&all, report);
    if (status != TPUCL_OK) {
        tpucl_check_report_destroy(report);
        return status;
    }
    tp_api_check_count(report);
    *out_report = report;
    return TPUCL_OK;
}

void tpucl_check_report_destroy(tpucl_check_report *report)
{
    if (!report) return;
    tp_check_destroy(report->report);
    tp_free(report);
}

const tpucl_check_summary *tpucl_check_report_summary(const tpucl_check_report *report)
{
    return report ? &report->summary : NULL;
}

tpucl_finding tpucl_check_report_finding(const tpucl_check_report *report, int32_t index)
{
    if (!report || index < 0 || (size_t)index >= report->report->findings.count)
        return (tpucl_finding){NULL, NULL, NULL, NULL, NULL};
    const tp_finding *finding = &report->report->findings.items[index];
    return (tpucl_finding){tp_severity_name(finding->severity), finding->rule, finding->where,
                           finding->text, finding->remedy};
}

const char *tpucl_check_state_kind(int32_t index)
{
    return tp_check_state_kind(index);
}

tpucl_check_state tpucl_check_report_state(const tpucl_check_report *report, int32_t index)
{
    if (!report || index < 0 || (size_t)index >= report->report->states.count)
        return (tpucl_check_state){NULL, NULL, NULL, NULL, NULL, 0, 0};
    const tp_check_state *state = &report->report->states.items[index];
    return (tpucl_check_state){state->name,  state->kind,  state->of,   state->dtype,
                               state->shape, state->elems, state->bytes};
}

/* Bytes of each kind, then all variables. */
static void write_state(tp_json_writer *writer, const tp_check_states *states)
{
    const char *kind;
    int64_t total = 0;
    tp_json_key(writer, "state");
    tp_json_begin_object(writer);
    for (int32_t k = 0; (kind = tp_check_state_kind(k)) != NULL; k++) {
        char key[48];
        int64_t bytes = 0;
        for (size_t i = 0; i < states->count; i++)
            bytes += strcmp(states->items[i].kind, kind) == 0 ? states->items[i].bytes : 0;
        snprintf(key, sizeof key, "%s_bytes", kind);
        tp_json_put_int(writer, key, bytes);
        total += bytes;
    }
    tp_json_put_int(writer, "bytes", total);
    tp_json_key(writer, "variables");
    tp_json_begin_array(writer);
    for (size_t i = 0; i < states->count; i++) {
        const tp_check_state *state = &states->items[i];
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "name", state->name);
        tp_json_put_string(writer, "kind", state->kind);
        tp_json_put_string(writer, "of", state->of);
        tp_json_put_string(writer, "dtype", state->dtype);
        tp_json_put_string(writer, "shape", state->shape);
        tp_json_put_int(writer, "elements", state->elems);
        tp_json_put_int(writer, "bytes", state->bytes);
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
    tp_json_end_object(writer);
}

void tp_api_write_finding(tp_json_writer *writer, const tpucl_finding *finding)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "severity", finding->severity);
    tp_json_put_string(writer, "rule", finding->rule);
    tp_json_put_string(writer, "where", finding->where);
    tp_json_put_string(writer, "text", finding->text);
    tp_json_put_string(writer, "remedy", finding->remedy);
    tp_json_end_object(writer);
}

tpucl_status tpucl_check_report_json(const tpucl_check_report *report, char **out_text)
{
    TP_API_NEED(report);
    TP_API_NEED(out_text);
    const tpucl_check_summary *summary = &report->summary;
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "version", tpucl_version_string());
    tp_json_put_string(&writer, "name", summary->name);
    tp_json_put_string(&writer, "topology", summary->topology);
    tp_json_put_int(&writer, "cores", summary->cores);
    tp_json_put_int(&writer, "per_core_batch", summary->per_core_batch);
    tp_json_put_int(&writer, "global_batch", summary->global_batch);
    tp_json_put_double(&writer, "mxu_share", summary->mxu_share);
    tp_json_put_double(&writer, "hbm_share", summary->hbm_share);
    tp_json_put_double(&writer, "flops_per_core_step", summary->flops_per_core_step);
    tp_json_put_int(&writer, "errors", summary->errors);
    tp_json_put_int(&writer, "warnings", summary->warnings);
    tp_json_put_int(&writer, "notes", summary->notes);
    tp_json_key(&writer, "findings");
    tp_json_begin_array(&writer);
    tpucl_finding finding;
    for (int32_t i = 0; (finding = tpucl_check_report_finding(report, i)).text; i++)
        tp_api_write_finding(&writer, &finding);
    tp_json_end_array(&writer);
    write_state(&writer, &report->report->states);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}
