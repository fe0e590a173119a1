/* SPDX-License-Identifier: Apache-2.0
 * Metrics of a configuration: see config_metrics.h. */
#include "topo/config_metrics.h"

#include <string.h>
#include "core/arena.h"
#include "topo/config_choices.h"

enum { MOST_METRICS = 64, LONGEST_LABEL = 64 };

#define NAME(id, symbol, name) name,
static const char *const names[] = {TP_METRIC_LIST(NAME)};
#undef NAME
enum { NAME_COUNT = sizeof names / sizeof *names };

typedef struct metric_reader {
    tp_arena *arena;
    tp_problems *problems;
    tp_config_metric *items; /* [MOST_METRICS] */
    size_t count;
    bool is_out_of_memory;
} metric_reader;

/* ---- reading ---- */

static const char *keep(metric_reader *r, const char *text)
{
    const char *kept = tp_arena_strdup(r->arena, text);
    r->is_out_of_memory = r->is_out_of_memory || !kept;
    return kept;
}

static void read_text(metric_reader *r, const tp_json *value, const char *key,
                      const char **inout_text)
{
    const char *text = NULL;
    if (tp_problems_add_failed(r->problems, tp_json_get_string(value, key, &text)) && text)
        *inout_text = keep(r, text);
}

/* Labels are keys of the results, beside these. */
static void check_label(metric_reader *r, const tp_json *value, const tp_config_metric *metric)
{
    static const char *const taken[] = {"loss", "accuracy", "outputs", "seconds"};
    char where[TP_JSON_WHERE_BYTES];
    bool is_taken = false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        is_taken = is_taken || (metric->name != TP_CONFIG_METRIC_ACCURACY &&
                                strcmp(metric->label, taken[i]) == 0);
    const size_t length = strlen(metric->label);
    if (is_taken || !length || length > LONGEST_LABEL)
        tp_problems_add(r->problems,
                        "expected a label of 1 to %d characters that is none of loss, accuracy, "
                        "outputs, seconds, found '%.80s' at %s",
                        LONGEST_LABEL, metric->label, tp_json_where(value, where));
    for (size_t i = 0; i < r->count; i++) {
        const tp_config_metric *other = &r->items[i];
        const bool is_same_output =
            metric->output == other->output ||
            (metric->output && other->output && strcmp(metric->output, other->output) == 0);
        if (is_same_output && strcmp(metric->label, other->label) == 0)
            tp_problems_add(r->problems, "'%s' is listed twice at %s; 'label' tells metrics apart",
                            metric->label, tp_json_where(value, where));
    }
}

static void read_members(metric_reader *r, const tp_json *value, tp_config_metric *metric)
{
    static const char *const keys[] = {"name", "label", "expression", "weight"};
    char where[TP_JSON_WHERE_BYTES];
    tp_json_report_unknown(value, keys, sizeof keys / sizeof *keys, r->problems);
    read_text(r, value, "label", &metric->label);
    read_text(r, value, "expression", &metric->expression);
    read_text(r, value, "weight", &metric->weight);
    const bool is_expression = metric->name == TP_CONFIG_METRIC_EXPRESSION;
    if (!is_expression && (metric->expression || metric->weight))
        tp_problems_add(r->problems,
                        "'expression' and 'weight' belong to the metric 'expression', but this is "
                        "'%s' at %s",
                        names[metric->name], tp_json_where(value, where));
}

static void read_metric(metric_reader *r, const tp_json *value, const char *output, size_t index)
{
    const tp_json *name = value;
    char where[TP_JSON_WHERE_BYTES];
    size_t kind;
    if (r->count == MOST_METRICS) {
        tp_problems_add(r->problems, "more than %d metrics at %s", MOST_METRICS,
                        tp_json_where(value, where));
        return;
    }
    if (value->kind == TP_JSON_OBJECT &&
        !tp_problems_add_failed(r->problems, tp_json_require(value, "name", TP_JSON_STRING, &name)))
        return;
    if (!tp_problems_add_failed(r->problems, tp_json_as_choice(name, names, NAME_COUNT, &kind)))
        return;
    tp_config_metric *metric = &r->items[r->count];
    *metric = (tp_config_metric){.output = output, .label = names[kind], .name = (int32_t)kind};
    metric->path = output ? tp_arena_printf(r->arena, "metrics.%s[%zu]", output, index)
                          : tp_arena_printf(r->arena, "metrics[%zu]", index);
    r->is_out_of_memory = r->is_out_of_memory || !metric->path;
    if (value->kind == TP_JSON_OBJECT) read_members(r, value, metric);
    if (r->is_out_of_memory) return;
    if (kind == TP_CONFIG_METRIC_EXPRESSION && !metric->expression)
        tp_problems_add(r->problems, "the metric 'expression' needs an 'expression' at %s",
                        tp_json_where(value, where));
    check_label(r, value, metric);
    r->count++;
}

static void read_list(metric_reader *r, const tp_json *value, const char *output)
{
    for (size_t i = 0; i < value->count && !r->is_out_of_memory; i++)
        read_metric(r, &value->items[i], output, i);
}

/* Of one output: a list, or a metric alone. */
static void read_output(metric_reader *r, const tp_json *value)
{
    const char *output = keep(r, value->key);
    if (!output) return;
    if (value->kind == TP_JSON_ARRAY)
        read_list(r, value, output);
    else
        read_metric(r, value, output, 0);
}

tpucl_status tp_config_read_metrics(tp_config *config, const tp_json *value, tp_problems *problems,
                                    tp_config_metrics *out)
{
    metric_reader r = {.arena = config->store->arena, .problems = problems};
    const bool is_by_output = value->kind == TP_JSON_OBJECT;
    if (!is_by_output && !tp_problems_add_failed(problems, tp_json_expect(value, TP_JSON_ARRAY)))
        return TPUCL_OK;
    r.items = TP_ARENA_NEW_ARRAY(r.arena, tp_config_metric, (size_t)MOST_METRICS);
    if (!r.items) return TPUCL_OUT_OF_MEMORY;
    if (!is_by_output) read_list(&r, value, NULL);
    for (size_t i = 0; is_by_output && i < value->count && !r.is_out_of_memory; i++)
        read_output(&r, &value->items[i]);
    if (r.is_out_of_memory) return TPUCL_OUT_OF_MEMORY;
    *out = (tp_config_metrics){r.items, r.count, is_by_output};
    return TPUCL_OK;
}

/* ---- writing ---- */

static void write_metric(const tp_config_metric *metric, tp_json_writer *writer)
{
    if (metric->name != TP_CONFIG_METRIC_EXPRESSION &&
        strcmp(metric->label, names[metric->name]) == 0) {
        tp_json_write_string(writer, names[metric->name]);
        return;
    }
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "name", names[metric->name]);
    tp_json_put_string(writer, "label", metric->label);
    if (metric->expression) tp_json_put_string(writer, "expression", metric->expression);
    if (metric->weight) tp_json_put_string(writer, "weight", metric->weight);
    tp_json_end_object(writer);
}

void tp_config_write_metrics(const tp_config_metrics *metrics, tp_json_writer *writer)
{
    const char *output = NULL;
    if (metrics->is_by_output) tp_json_begin_object(writer);
    if (!metrics->is_by_output) tp_json_begin_array(writer);
    for (size_t i = 0; i < metrics->count; i++) {
        const tp_config_metric *metric = &metrics->items[i];
        if (metric->output && (!output || strcmp(output, metric->output) != 0)) {
            if (output) tp_json_end_array(writer);
            output = metric->output;
            tp_json_key(writer, output);
            tp_json_begin_array(writer);
        }
        write_metric(metric, writer);
    }
    if (output || !metrics->is_by_output) tp_json_end_array(writer);
    if (metrics->is_by_output) tp_json_end_object(writer);
}

/* ---- schema ---- */

static void write_type(tp_json_writer *writer, const char *type)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "type", type);
}

/* A name, or an object with one. */
static void write_metric_schema(tp_json_writer *writer)
{
    static const char *const texts[] = {"label", "expression", "weight"};
    tp_json_begin_object(writer);
    tp_json_key(writer, "anyOf");
    tp_json_begin_array(writer);
    for (int is_object = 0; is_object <= 1; is_object++) {
        if (is_object) {
            write_type(writer, "object");
            tp_json_put_bool(writer, "additionalProperties", false);
            tp_json_key(writer, "required");
            tp_json_begin_inline_array(writer);
            tp_json_write_string(writer, "name");
            tp_json_end_array(writer);
            tp_json_key(writer, "properties");
            tp_json_begin_object(writer);
            tp_json_key(writer, "name");
        }
        tp_json_begin_object(writer);
        tp_json_key(writer, "enum");
        tp_json_begin_inline_array(writer);
        for (size_t i = 0; i < NAME_COUNT; i++)
            tp_json_write_string(writer, names[i]);
        tp_json_end_array(writer);
        tp_json_end_object(writer);
        if (!is_object) continue;
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            tp_json_key(writer, texts[i]);
            write_type(writer, "string");
            tp_json_end_object(writer);
        }
        tp_json_end_object(writer);
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
    tp_json_end_object(writer);
}

static void write_list_schema(tp_json_writer *writer)
{
    write_type(writer, "array");
    tp_json_key(writer, "items");
    write_metric_schema(writer);
    tp_json_end_object(writer);
}

tpucl_status tp_config_write_metrics_schema(tp_json_writer *writer)
{
    tp_json_key(writer, "anyOf");
    tp_json_begin_array(writer);
    write_list_schema(writer);
    write_type(writer, "object");
    tp_json_key(writer, "additionalProperties");
    tp_json_begin_object(writer);
    tp_json_key(writer, "anyOf");
    tp_json_begin_array(writer);
    write_metric_schema(writer);
    write_list_schema(writer);
    tp_json_end_array(writer);
    tp_json_end_object(writer);
    tp_json_end_object(writer);
    tp_json_end_array(writer);
    return TPUCL_OK;
}
