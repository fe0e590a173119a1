/* SPDX-License-Identifier: Apache-2.0
 * Results of steps to means: the sums that the graphs give are added in double. */
#include <math.h>
#include <string.h>
#include "train/session_internal.h"

static double result_value(const tp_program *program, const unsigned char *record, const char *name)
{
    for (int32_t i = 0; i < program->result_count; i++) {
        if (strcmp(program->results[i].name, name) != 0) continue;
        float value;
        memcpy(&value, record + program->buffers[program->results[i].buffer].offset_bytes,
               sizeof value);
        return (double)value;
    }
    return 0;
}

tpucl_status tp_metrics_add(tp_session *session, tp_session_graph *graph, uint64_t ticket,
                            tp_metric_sums *sums)
{
    for (int32_t g = 0; g < tp_session_group_count(session); g++) {
        const void *record = NULL;
        TP_TRY(tp_loaded_result(graph->loaded, ticket, g, &record));
        sums->loss += result_value(graph->programs[0], record, "loss_sum");
        sums->weight += result_value(graph->programs[0], record, "weight_sum");
        sums->correct += result_value(graph->programs[0], record, "correct");
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
