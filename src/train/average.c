/* SPDX-License-Identifier: Apache-2.0
 * The end of a training with a moving average of weights (optimizer.use_ema): the weights become the average,
 * as in Keras' finalize_variable_values, which fit() calls after the last epoch. */
#include <string.h>
#include "num/bf16.h"
#include "train/session_internal.h"

/* The slot's elements in the dtype of the weights, f32 or bf16. */
static void copy_average(tp_dtype dtype, int64_t elems, const float *average, void *weights)
{
    if (dtype == TP_F32) {
        memcpy(weights, average, (size_t)elems * sizeof *average);
        return;
    }
    for (int64_t i = 0; i < elems; i++)
        ((tp_bf16 *)weights)[i] = tp_bf16_from_f32(average[i]);
}

static tpucl_status write_average(tp_session *session, int32_t weights, int32_t slot)
{
    tp_variables *variables = tp_session_variables(session);
    const tp_program_variable *info = tp_variables_info(variables, weights);
    const int64_t elems = tp_shape_elems(&info->shape);
    tpucl_status status = TPUCL_OK;
    float *average = TP_NEW_ARRAY(float, (size_t)elems);
    void *data = TP_NEW_ARRAY(char, (size_t)info->bytes);
    if (!average || !data) status = TPUCL_OUT_OF_MEMORY;
    for (int32_t g = 0; status == TPUCL_OK && g < tp_session_group_count(session); g++) {
        TP_TRY_GOTO(status, tp_variables_read(variables, slot, g, average), done);
        copy_average(info->dtype, elems, average, data);
        status = tp_variables_write(variables, weights, g, data);
    }
done:
    tp_free(average);
    tp_free(data);
    return status;
}

static void set_reference(tp_session *session, int32_t weights, int32_t slot)
{
    for (int32_t g = 0; g < tp_session_group_count(session); g++) {
        tp_host_tensor *to = tp_reference_variable(session->reference, g, weights);
        const tp_host_tensor *from = tp_reference_variable(session->reference, g, slot);
        copy_average(to->dtype, tp_shape_elems(&to->shape), from->data, to->data);
    }
}

tpucl_status tp_session_finish_average(tp_session *session)
{
    const tp_config *config = session->config;
    const tp_graph *graph = session->train.graph;
    if (!config->optimizer.use_ema || session->steps_done < session->steps_total) return TPUCL_OK;
    for (int32_t i = 0; i < graph->variable_count; i++) {
        char name[512];
        const char *own = graph->variables[i].name;
        if (!graph->variables[i].is_model) continue;
        if (!tp_optim_average_name((tp_optim_kind)config->optimizer.name, own, name, sizeof name))
            return TP_FAIL(TPUCL_UNSUPPORTED, "the name of variable '%.100s...' is too long", own);
        if (session->reference) {
            const int32_t slot = tp_graph_find_variable(graph, name);
            if (slot >= 0) set_reference(session, i, slot);
        } else {
            tp_variables *variables = tp_session_variables(session);
            const int32_t slot = tp_variables_find(variables, name);
            if (slot >= 0) TP_TRY(write_average(session, tp_variables_find(variables, own), slot));
        }
    }
    return TPUCL_OK;
}
