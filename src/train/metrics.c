/* SPDX-License-Identifier: Apache-2.0
 * Results of steps to means and metrics: the sums that the graphs give are added in double. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/str.h"
#include "train/session_internal.h"

/* ---- which there are ---- */

static tpucl_status add_item(tp_session *session, int32_t output, const char *key,
                             tp_metric_kind kind, const char *sums, tp_session_metric **out_item)
{
    tp_metric_layout *layout = &session->metrics;
    const bool is_one = tp_model_output_count(session->model) == 1;
    if (layout->count == TP_SESSION_MAX_METRICS)
        return TP_FAIL(TPUCL_UNSUPPORTED, "more than %d losses and metrics of all outputs",
                       TP_SESSION_MAX_METRICS);
    tp_session_metric *item = &layout->items[layout->count++];
    *item = (tp_session_metric){
        .name = key, .key = key, .output = is_one ? -1 : output, .kind = kind, .sums = sums};
    if (!is_one)
        item->name = tp_arena_printf(session->arena, "%s/%s",
                                     tp_model_output_name(session->model, output), key);
    *out_item = item;
    return item->name ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tp_metric_options options_of(const tp_config *config, const tp_config_metric *metric)
{
    return (tp_metric_options){.k = config->metric_options.k,
                               .threshold = config->metric_options.threshold,
                               .num_thresholds = config->metric_options.num_thresholds,
                               .curve = (tp_metric_curve)config->metric_options.curve,
                               .average = (tp_metric_average)config->metric_options.average,
                               .target_class_ids = config->metric_options.target_class_ids.items,
                               .target_count =
                                   (int64_t)config->metric_options.target_class_ids.count,
                               .expression = metric->expression,
                               .weight = metric->weight,
                               .path = metric->path};
}

/* The accuracy of an output: the loss's own, whose sum the graph has anyway, unless it is to have another
 * name; of a loss that is an expression that of class numbers. */
static tpucl_status add_accuracy(tp_session *session, int32_t output, const char *label,
                                 tp_metric_kind *inout_kind, bool *out_is_done)
{
    const tp_model_target *target = &session->targets[output];
    tp_session_metric *item;
    *out_is_done = true;
    if (tp_loss_has_accuracy(target->loss)) {
        *out_is_done = strcmp(label, "accuracy") == 0;
        if (!*out_is_done)
            *inout_kind = tp_loss_least_classes(target->loss) < 2 ? TP_METRIC_BINARY_ACCURACY
                                                                  : TP_METRIC_CATEGORICAL_ACCURACY;
        if (!*out_is_done) return TPUCL_OK;
        if (tp_model_output_count(session->model) > 1)
            return add_item(session, output, "accuracy", *inout_kind, "correct", &item);
        session->has_accuracy = true;
        return TPUCL_OK;
    }
    *out_is_done =
        target->loss != TP_MODEL_LOSS_EXPRESSION || target->label_dtype != TP_S32 ||
        target->label_shape.rank + 1 != tp_model_output_shape(session->model, output)->rank;
    *inout_kind = TP_METRIC_SPARSE_CATEGORICAL_ACCURACY;
    return TPUCL_OK;
}

static tpucl_status add_metric(tp_session *session, int32_t output, const tp_config_metric *metric)
{
    tp_metric_layout *layout = &session->metrics;
    tp_metric_kind kind = (tp_metric_kind)metric->name; /* the same list */
    tp_session_metric *item;
    if (kind == TP_METRIC_ACCURACY) {
        bool is_done;
        TP_TRY(add_accuracy(session, output, metric->label, &kind, &is_done));
        if (is_done) return TPUCL_OK;
    }
    TP_TRY(add_item(session, output, metric->label, kind, NULL, &item));
    item->options = options_of(session->config, metric);
    layout->asked[layout->asked_count++] = (tp_model_metric){
        .output = output, .kind = (int32_t)kind, .name = item->name, .options = &item->options};
    return TPUCL_OK;
}

static void check_outputs(const tp_session *session, tp_problems *problems)
{
    const tp_config_metrics *metrics = &session->config->metrics;
    const char *names[TP_SESSION_MAX_OUTPUTS];
    const int32_t count = tp_model_output_count(session->model);
    for (int32_t i = 0; i < count; i++)
        names[i] = tp_model_output_name(session->model, i);
    for (size_t i = 0; i < metrics->count; i++) {
        const char *output = metrics->items[i].output;
        bool is_known = !output;
        for (int32_t j = 0; j < count && output; j++)
            is_known = is_known || strcmp(names[j], output) == 0;
        if (is_known) continue;
        const char *nearest = tp_str_nearest(output, names, (size_t)count);
        tp_problems_add(problems, "'%s' names no output of the model%s%s%s", metrics->items[i].path,
                        nearest ? ", did you mean '" : "", nearest ? nearest : "",
                        nearest ? "'?" : "");
    }
}

tpucl_status tp_metrics_choose(tp_session *session)
{
    const tp_config_metrics *metrics = &session->config->metrics;
    tp_metric_layout *layout = &session->metrics;
    const int32_t outputs = tp_model_output_count(session->model);
    tp_problems problems = {0};
    check_outputs(session, &problems);
    for (int32_t i = 0; i < outputs; i++) {
        tp_session_metric *item;
        const char *name = tp_model_output_name(session->model, i);
        if (outputs > 1)
            TP_TRY(add_item(session, i, "loss", TP_METRIC_ACCURACY, "loss_sum", &item));
        for (size_t m = 0; m < metrics->count; m++)
            if (!metrics->items[m].output || strcmp(metrics->items[m].output, name) == 0)
                TP_TRY(add_metric(session, i, &metrics->items[m]));
    }
    session->score.metrics = layout->asked;
    session->score.metric_count = layout->asked_count;
    return tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "the metrics");
}

/* ---- where their sums are ---- */

/* The graph's output with part `index` of a metric, in `out`. */
static void part_name(const tp_session *session, const tp_session_metric *item, int32_t index,
                      char out[256])
{
    if (!item->sums)
        snprintf(out, 256, "metric/%s/%d", item->name, (int)index);
    else
        snprintf(out, 256, "%s/%s", tp_model_output_name(session->model, item->output),
                 index == 0 ? item->sums : "weight_sum");
}

static tpucl_status lay_out_part(tp_session *session, const tp_graph *graph,
                                 tp_session_metric *item)
{
    tp_metric_layout *layout = &session->metrics;
    char name[256];
    part_name(session, item, item->part_count, name);
    for (int32_t i = 0; i < graph->output_count; i++) {
        if (strcmp(graph->outputs[i].name, name) != 0) continue;
        const tp_shape *shape = &tp_graph_node(graph, graph->outputs[i].node)->shape;
        tp_metric_part *part = &item->parts[item->part_count++];
        *part = (tp_metric_part){tp_arena_strdup(session->arena, name), layout->value_count,
                                 tp_shape_elems(shape)};
        layout->value_count += part->count;
        return part->output ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    }
    return TPUCL_OK;
}

tpucl_status tp_metrics_lay_out(tp_session *session, const tp_graph *graph)
{
    tp_metric_layout *layout = &session->metrics;
    layout->value_count = 0;
    for (int32_t m = 0; m < layout->count; m++) {
        tp_session_metric *item = &layout->items[m];
        item->part_count = 0;
        for (int32_t i = 0; i < (item->sums ? 2 : TP_METRIC_MAX_PARTS); i++)
            TP_TRY(lay_out_part(session, graph, item));
    }
    const size_t count = (size_t)layout->value_count + 1;
    session->train_values = TP_ARENA_NEW_ARRAY(session->arena, double, count);
    session->evaluate_values = TP_ARENA_NEW_ARRAY(session->arena, double, count);
    return session->train_values && session->evaluate_values ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

/* ---- sums ---- */

void tp_metrics_add_sums(tp_metric_sums *sums, const tp_metric_sums *more)
{
    sums->loss += more->loss;
    sums->weight += more->weight;
    sums->correct += more->correct;
}

tp_metric_sums tp_metrics_begin(const tp_session *session, double *values)
{
    for (int64_t i = 0; values && i < session->metrics.value_count; i++)
        values[i] = 0;
    return (tp_metric_sums){.values = values};
}

static void add_values(const tp_session *session, const char *name, const float *data,
                       double *values)
{
    const tp_metric_layout *layout = &session->metrics;
    for (int32_t m = 0; m < layout->count; m++)
        for (int32_t i = 0; i < layout->items[m].part_count; i++) {
            const tp_metric_part *part = &layout->items[m].parts[i];
            if (strcmp(part->output, name) != 0) continue;
            for (int64_t j = 0; j < part->count; j++)
                values[part->offset + j] += (double)data[j];
        }
}

void tp_metrics_add_output(const tp_session *session, const char *name, const float *data,
                           tp_metric_sums *sums)
{
    if (strcmp(name, "loss_sum") == 0)
        sums->loss += (double)*data;
    else if (strcmp(name, "weight_sum") == 0)
        sums->weight += (double)*data;
    else if (strcmp(name, "correct") == 0)
        sums->correct += (double)*data;
    else if (sums->values)
        add_values(session, name, data, sums->values);
}

tpucl_status tp_metrics_add(tp_session *session, tp_session_graph *graph, uint64_t ticket,
                            tp_metric_sums *sums)
{
    const tp_program *program = graph->programs[0];
    for (int32_t g = 0; g < tp_session_group_count(session); g++) {
        const void *record = NULL;
        TP_TRY(tp_loaded_result(graph->loaded, ticket, g, &record));
        for (int32_t i = 0; i < program->result_count; i++) {
            const tp_program_port *port = &program->results[i];
            const char *data = (const char *)record + program->buffers[port->buffer].offset_bytes;
            tp_metrics_add_output(session, port->name, (const float *)(const void *)data, sums);
        }
    }
    return TPUCL_OK;
}

double tp_metrics_loss(const tp_metric_sums *sums)
{
    return sums->weight > 0 ? sums->loss / sums->weight : (double)NAN;
}

double tp_metrics_accuracy(const tp_session *session, const tp_metric_sums *sums)
{
    return session->has_accuracy && sums->weight > 0 ? sums->correct / sums->weight : -1;
}

void tp_metrics_finish(const tp_session *session, const tp_metric_sums *sums,
                       double out_values[TP_SESSION_MAX_METRICS])
{
    const tp_metric_layout *layout = &session->metrics;
    for (int32_t m = 0; m < layout->count; m++) {
        const tp_session_metric *item = &layout->items[m];
        const double *parts[TP_METRIC_MAX_PARTS];
        int64_t counts[TP_METRIC_MAX_PARTS];
        for (int32_t i = 0; i < item->part_count; i++) {
            parts[i] = sums->values + item->parts[i].offset;
            counts[i] = item->parts[i].count;
        }
        out_values[m] = tp_metric_finish(item->kind, &item->options, parts, counts);
    }
}

int32_t tp_session_metric_count(const tp_session *session)
{
    return session->metrics.count;
}

const char *tp_session_metric_name(const tp_session *session, int32_t index)
{
    return session->metrics.items[index].name;
}

const char *tp_session_metric_key(const tp_session *session, int32_t index)
{
    return session->metrics.items[index].key;
}

const char *tp_session_metric_output(const tp_session *session, int32_t index)
{
    const int32_t output = session->metrics.items[index].output;
    return output < 0 ? NULL : tp_model_output_name(session->model, output);
}
