/* SPDX-License-Identifier: Apache-2.0
 * Results of steps to means and metrics: the sums that the graphs give are added in double. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "train/session_internal.h"

int32_t tp_session_output_count(const tp_session *session)
{
    return session->targets ? tp_model_output_count(session->model) : 0;
}

const char *tp_session_output_name(const tp_session *session, int32_t index)
{
    return tp_model_output_name(session->model, index);
}

/* "NAME/loss_sum" and so on. */
static void add_output_result(const tp_session *session, const char *name, double value,
                              tp_metric_sums *sums)
{
    const char *what = strrchr(name, '/');
    if (!what) return;
    for (int32_t i = 0; i < tp_session_output_count(session); i++) {
        const char *output = tp_session_output_name(session, i);
        const size_t length = strlen(output);
        if (length != (size_t)(what - name) || memcmp(output, name, length) != 0) continue;
        if (strcmp(what, "/loss_sum") == 0) sums->outputs[i].loss += value;
        if (strcmp(what, "/weight_sum") == 0) sums->outputs[i].weight += value;
        if (strcmp(what, "/correct") == 0) sums->outputs[i].correct += value;
    }
}

void tp_metrics_add_sums(tp_metric_sums *sums, const tp_metric_sums *more)
{
    sums->loss += more->loss;
    sums->weight += more->weight;
    sums->correct += more->correct;
    for (int32_t i = 0; i < TP_SESSION_MAX_OUTPUTS; i++) {
        sums->outputs[i].loss += more->outputs[i].loss;
        sums->outputs[i].weight += more->outputs[i].weight;
        sums->outputs[i].correct += more->outputs[i].correct;
    }
}

void tp_metrics_fill_outputs(const tp_session *session, const tp_metric_sums *sums,
                             tp_session_output *out_outputs)
{
    for (int32_t i = 0; i < tp_session_output_count(session); i++) {
        const double weight = sums->outputs[i].weight;
        const bool has_accuracy = tp_loss_has_accuracy(session->targets[i].loss);
        out_outputs[i].loss = weight > 0 ? sums->outputs[i].loss / weight : (double)NAN;
        out_outputs[i].accuracy =
            has_accuracy && weight > 0 ? sums->outputs[i].correct / weight : -1;
    }
}

void tp_metrics_choose(tp_session *session)
{
    const tp_config *config = session->config;
    tp_metric_layout *layout = &session->metrics;
    bool wants_accuracy = false;
    for (size_t i = 0; i < config->metrics.count && i < TP_SESSION_MAX_METRICS; i++) {
        tp_metric_kind kind = TP_METRIC_ACCURACY;
        if (!tp_metric_find(config->metrics.items[i], &kind)) continue;
        if (kind == TP_METRIC_ACCURACY)
            wants_accuracy = true;
        else
            layout->kinds[layout->metric_count++] = (int32_t)kind;
    }
    session->has_accuracy = wants_accuracy && tp_loss_has_accuracy(session->loss);
    session->metric_options =
        (tp_metric_options){.k = config->metric_options.k,
                            .threshold = config->metric_options.threshold,
                            .num_thresholds = config->metric_options.num_thresholds,
                            .curve = (tp_metric_curve)config->metric_options.curve,
                            .average = (tp_metric_average)config->metric_options.average,
                            .target_class_ids = config->metric_options.target_class_ids.items,
                            .target_count = (int64_t)config->metric_options.target_class_ids.count};
}

tpucl_status tp_metrics_lay_out(tp_session *session, const tp_graph *graph)
{
    tp_metric_layout *layout = &session->metrics;
    layout->value_count = 0;
    for (int32_t m = 0; m < layout->metric_count; m++) {
        layout->part_counts[m] = 0;
        for (int32_t i = 0; i < graph->output_count; i++) {
            char name[96];
            snprintf(name, sizeof name, "metric/%s/%d", tp_session_metric_name(session, m),
                     (int)layout->part_counts[m]);
            if (strcmp(graph->outputs[i].name, name) != 0) continue;
            const tp_shape *shape = &tp_graph_node(graph, graph->outputs[i].node)->shape;
            tp_metric_part *part = &layout->parts[m][layout->part_counts[m]++];
            *part = (tp_metric_part){tp_arena_strdup(session->arena, name), layout->value_count,
                                     tp_shape_elems(shape)};
            if (!part->output) return TPUCL_OUT_OF_MEMORY;
            layout->value_count += part->count;
        }
    }
    const size_t count = (size_t)layout->value_count + 1;
    session->train_values = TP_ARENA_NEW_ARRAY(session->arena, double, count);
    session->evaluate_values = TP_ARENA_NEW_ARRAY(session->arena, double, count);
    return session->train_values && session->evaluate_values ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
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
    for (int32_t m = 0; m < layout->metric_count; m++)
        for (int32_t i = 0; i < layout->part_counts[m]; i++) {
            const tp_metric_part *part = &layout->parts[m][i];
            if (strcmp(part->output, name) != 0) continue;
            for (int64_t j = 0; j < part->count; j++)
                values[part->offset + j] += (double)data[j];
            return;
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
    else if (strncmp(name, "metric/", 7) != 0)
        add_output_result(session, name, (double)*data, sums);
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
    for (int32_t m = 0; m < layout->metric_count; m++) {
        const double *parts[TP_METRIC_MAX_PARTS];
        int64_t counts[TP_METRIC_MAX_PARTS];
        for (int32_t i = 0; i < layout->part_counts[m]; i++) {
            parts[i] = sums->values + layout->parts[m][i].offset;
            counts[i] = layout->parts[m][i].count;
        }
        out_values[m] = tp_metric_finish((tp_metric_kind)layout->kinds[m], &session->metric_options,
                                         parts, counts);
    }
}

int32_t tp_session_metric_count(const tp_session *session)
{
    return session->metrics.metric_count;
}

const char *tp_session_metric_name(const tp_session *session, int32_t index)
{
    return tp_metric_name((tp_metric_kind)session->metrics.kinds[index]);
}
