/* SPDX-License-Identifier: Apache-2.0
 * The report, the table of rules, and what rules share.
 */
#include "check/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "check/rules.h"
#include "graph/attention.h"
#include "graph/geometry.h"
#include "graph/opdef.h"

static const struct {
    tp_check_rule find;
    bool needs_graph;
} rules[] = {
    {tp_rule_batch, false},
    {tp_rule_last_batch, false},
    {tp_rule_mxu_padding, true} /* fills the summary */,
    {tp_rule_input_link, true},
    {tp_rule_hbm_padding, true},
    {tp_rule_slow_ops, true},
    {tp_rule_precision, false},
    {tp_rule_logits, false},
    {tp_rule_bfloat16_weights, true},
    {tp_rule_bfloat16_moments, true},
    {tp_rule_bfloat16_gradients, true},
    {tp_rule_batch_normalization, true},
};

const char *tp_severity_name(tp_severity severity)
{
    static const char *const names[] = {"error", "warning", "note"};
    return names[severity];
}

tpucl_status tp_check_create(tp_check_report **out_report)
{
    tp_check_report *report = TP_NEW(tp_check_report);
    if (!report) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = tp_arena_create(0, &report->arena);
    if (status != TPUCL_OK) {
        tp_free(report);
        return status;
    }
    *out_report = report;
    return TPUCL_OK;
}

void tp_check_destroy(tp_check_report *report)
{
    if (!report) return;
    tp_findings_deinit(&report->findings);
    tp_check_states_deinit(&report->states);
    tp_arena_destroy(report->arena);
    tp_free(report);
}

/* ---- findings ---- */

static tpucl_status push(tp_check_report *report, tp_severity severity, const char *rule,
                         const char *where, const char *remedy, const char *text)
{
    const tp_finding finding = {.severity = severity,
                                .rule = rule,
                                .where = tp_arena_strdup(report->arena, where),
                                .text = tp_arena_strdup(report->arena, text),
                                .remedy = tp_arena_strdup(report->arena, remedy)};
    if (!finding.where || !finding.text || !finding.remedy) return TPUCL_OUT_OF_MEMORY;
    return tp_findings_push(&report->findings, finding);
}

tpucl_status tp_check_add(tp_check_report *report, tp_severity severity, const char *rule,
                          const char *where, const char *remedy, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return push(report, severity, rule, where, remedy, text);
}

/* Behind a problem: the lines that show its place, deeper than the problems themselves. */
static char *end_of_problem(char *line)
{
    char *next = strchr(line, '\n');
    while (next && strncmp(next, "\n    ", 5) == 0)
        next = strchr(next + 1, '\n');
    return next;
}

tpucl_status tp_check_add_error(tp_check_report *report, const char *rule)
{
    static const char head[] = " problems:\n";
    char text[sizeof tpucl_last_error()->message];
    snprintf(text, sizeof text, "%s", tpucl_last_error()->message);
    char *line = text, *next = strstr(text, head);
    if (next) line = next + sizeof head - 1; /* "<what> has 3 problems:" comes first */
    for (; line && *line; line = next) {
        next = end_of_problem(line);
        if (next) *next++ = '\0';
        TP_TRY(push(report, TP_SEVERITY_ERROR, rule, "", "", line + strspn(line, " -")));
    }
    return TPUCL_OK;
}

/* Stable: one pass per severity. */
tpucl_status tp_check_sort(tp_check_report *report)
{
    tp_findings sorted = {0};
    tpucl_status status = tp_findings_reserve(&sorted, report->findings.count + 1);
    for (int severity = TP_SEVERITY_ERROR; severity <= TP_SEVERITY_NOTE; severity++)
        for (size_t i = 0; i < report->findings.count && status == TPUCL_OK; i++)
            if ((int)report->findings.items[i].severity == severity)
                status = tp_findings_push(&sorted, report->findings.items[i]);
    if (status != TPUCL_OK) {
        tp_findings_deinit(&sorted);
        return status;
    }
    tp_findings_deinit(&report->findings);
    report->findings = sorted;
    return TPUCL_OK;
}

tpucl_status tp_check_run(const tp_check_input *input, tp_check_report *report)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (input->train || !rules[i].needs_graph) TP_TRY(rules[i].find(input, report));
    if (input->train) TP_TRY(tp_check_list_state(input->train, report));
    return tp_check_sort(report);
}

tpucl_status tp_check_run_hazards(const tp_check_input *input, tp_check_report *report)
{
    TP_TRY(tp_rule_bfloat16_weights(input, report));
    TP_TRY(tp_rule_bfloat16_moments(input, report));
    TP_TRY(tp_rule_bfloat16_gradients(input, report));
    return tp_check_sort(report);
}

/* ---- what rules share ---- */

/* Attention multiplies queries by keys and probabilities by values, its gradient five times: taken as so many
 * products of the first one's size. */
static bool read_attention(const tp_graph *graph, const tp_node *node,
                           tp_check_product *out_product)
{
    tp_attention_geometry g;
    if (tp_attention_geometry_read(node, &tp_graph_node(graph, node->inputs[0])->shape,
                                   &tp_graph_node(graph, node->inputs[1])->shape,
                                   &tp_graph_node(graph, node->inputs[2])->shape, NULL,
                                   &g) != TPUCL_OK)
        return false;
    const double products = tp_node_is(node, "attention_grad") ? 5 : 2;
    *out_product = (tp_check_product){products * (double)(g.batch * g.heads), (double)g.queries,
                                      (double)g.keys, (double)g.depth};
    return true;
}

bool tp_check_read_product(const tp_graph *graph, tp_node_id id, tp_check_product *out_product)
{
    static const char *const kinds[] = {"convolution", "convolution_input_grad",
                                        "convolution_filter_grad"};
    const tp_node *node = tp_graph_node(graph, id);
    if (tp_node_is(node, "attention") || tp_node_is(node, "attention_grad"))
        return read_attention(graph, node, out_product);
    if (node->def->op_class != TP_OP_MXU) return false;
    const tp_shape *a = &tp_graph_node(graph, node->inputs[0])->shape;
    const tp_shape *b = &tp_graph_node(graph, node->inputs[1])->shape;
    for (int kind = 0; kind < 3; kind++) {
        tp_conv_geometry conv;
        if (!tp_node_is(node, kinds[kind])) continue;
        if (tp_conv_geometry_read(node, (tp_conv_kind)kind, a, b, &conv) != TPUCL_OK) return false;
        *out_product = (tp_check_product){1, (double)conv.m, (double)conv.n, (double)conv.k};
        return true;
    }
    tp_dot_geometry dot;
    if (!tp_node_is(node, "dot_general") || tp_dot_geometry_read(node, a, b, &dot) != TPUCL_OK)
        return false;
    *out_product =
        (tp_check_product){(double)dot.batch, (double)dot.m, (double)dot.n, (double)dot.k};
    return true;
}

const char *tp_check_layer_of(const tp_graph *graph, tp_node_id id, tp_arena *arena)
{
    static const char gradient[] = "gradient/";
    const char *name = tp_graph_node(graph, id)->name;
    while (!strncmp(name, gradient, sizeof gradient - 1))
        name += sizeof gradient - 1;
    const char *slash = strrchr(name, '/');
    return slash ? tp_arena_printf(arena, "%.*s", (int)(slash - name), name) : "";
}
