/* SPDX-License-Identifier: Apache-2.0
 * Results of steps to means: the sums that the graphs give are added in double. */
#include <math.h>
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

void tp_metrics_add_result(const tp_session *session, const char *name, double value,
                           tp_metric_sums *sums)
{
    if (strcmp(name, "loss_sum") == 0)
        sums->loss += value;
    else if (strcmp(name, "weight_sum") == 0)
        sums->weight += value;
    else if (strcmp(name, "correct") == 0)
        sums->correct += value;
    else
        add_output_result(session, name, value, sums);
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

tpucl_status tp_metrics_add(tp_session *session, tp_session_graph *graph, uint64_t ticket,
                            tp_metric_sums *sums)
{
    const tp_program *program = graph->programs[0];
    for (int32_t g = 0; g < tp_session_group_count(session); g++) {
        const void *record = NULL;
        TP_TRY(tp_loaded_result(graph->loaded, ticket, g, &record));
        for (int32_t i = 0; i < program->result_count; i++) {
            float value;
            memcpy(&value,
                   (const unsigned char *)record +
                       program->buffers[program->results[i].buffer].offset_bytes,
                   sizeof value);
            tp_metrics_add_result(session, program->results[i].name, (double)value, sums);
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
