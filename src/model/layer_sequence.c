/* SPDX-License-Identifier: Apache-2.0
 * Permute, RepeatVector, Masking and ActivityRegularization.
 */
#include "model/layer.h"

/* ---- Permute ---- */

typedef struct permute_args {
    tp_layer_ints dims; /* from 1: axes of the example */
} permute_args;

static const tp_layer_arg permute_arguments[] = {
    {"dims", offsetof(permute_args, dims), TP_LAYER_INTS, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, TP_MAX_RANK), .count = TP_MAX_RANK - 1},
    {0},
};

static bool infer_permute(tp_layer *layer, tp_problems *problems)
{
    const tp_layer_ints *dims = &((const permute_args *)layer->args)->dims;
    const tp_shape *input = tp_layer_input(layer, 0);
    int64_t output[TP_MAX_RANK];
    bool is_used[TP_MAX_RANK + 1] = {false};
    bool is_fine = dims->count == input->rank;
    for (int32_t i = 0; i < dims->count && is_fine; i++) {
        const int64_t axis = dims->items[i];
        is_fine = axis <= input->rank && !is_used[axis];
        if (!is_fine) break;
        is_used[axis] = true;
        output[i] = input->dims[axis - 1];
    }
    if (is_fine) return tp_layer_add_output(layer, problems, input->rank, output);
    tp_problems_add(problems,
                    "'dims' must have each of 1 to %d once, as the input has %d dimensions",
                    input->rank, input->rank);
    return false;
}

static void build_permute(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    const tp_layer_ints *dims = &((const permute_args *)layer->args)->dims;
    int64_t axes[TP_MAX_RANK] = {0};
    for (int32_t i = 0; i < dims->count; i++)
        axes[i + 1] = dims->items[i];
    outputs[0] = tp_op_transpose(context->graph, inputs[0], axes);
}

/* ---- RepeatVector ---- */

typedef struct repeat_args {
    int64_t n;
} repeat_args;

static const tp_layer_arg repeat_arguments[] = {
    {"n", offsetof(repeat_args, n), TP_LAYER_INT, TP_LAYER_REQUIRED, TP_LAYER_RANGE(1, 1 << 30)},
    {0},
};

static bool infer_repeat(tp_layer *layer, tp_problems *problems)
{
    const int64_t n = ((const repeat_args *)layer->args)->n;
    if (!tp_layer_need_rank(layer, 1, "[features]", problems)) return false;
    return tp_layer_add_output(layer, problems, 2,
                               (const int64_t[]){n, tp_layer_input(layer, 0)->dims[0]});
}

static void build_repeat(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                         tp_node_id *outputs)
{
    static const int64_t axes[] = {0, 2};
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    outputs[0] = tp_op_broadcast_in_dim(context->graph, inputs[0], shape, axes);
}

/* ---- Masking ---- */

typedef struct masking_args {
    double mask_value;
} masking_args;

static const tp_layer_arg masking_arguments[] = {
    TP_LAYER_ROW_NUMBER(masking_args, mask_value, -1e30, 1e30),
    {0},
};

static bool infer_masking(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_need_rank(layer, 2, "[time,features]", problems) &&
           tp_layer_same_output(layer, problems);
}

/* A step whose features all equal mask_value does not count, and becomes 0. */
static void build_masking(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    static const int64_t features_axis = 2, step_axes[] = {0, 1};
    tp_graph *graph = context->graph;
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    const tp_node_id value =
        tp_op_scalar(graph, context->dtype, ((const masking_args *)layer->args)->mask_value);
    const tp_node_id differs = tp_op_compare(graph, "NE", inputs[0], value);
    const tp_node_id mask = tp_op_reduce(graph, differs, "or", &features_axis, 1);
    const tp_node_id counts = tp_op_broadcast_in_dim(graph, mask, shape, step_axes);
    const tp_node_id zero = tp_op_scalar(graph, context->dtype, 0);
    outputs[0] = tp_op_select(graph, counts, inputs[0], zero);
    context->output_masks[0] = mask;
}

/* ---- ActivityRegularization ---- */

static const tp_layer_arg activity_arguments[] = {
    TP_LAYER_ROW_NUMBER(tp_regularizer, l1, 0, 1e30),
    TP_LAYER_ROW_NUMBER(tp_regularizer, l2, 0, 1e30),
    {0},
};

static void build_activity(tp_layer_context *context, const tp_layer *layer,
                           const tp_node_id *inputs, tp_node_id *outputs)
{
    outputs[0] = inputs[0];
    tp_layer_add_activity(context, layer->args, outputs[0]);
}

const tp_layer_type tp_layer_permute = {.name = "Permute",
                                        .snake = "permute",
                                        .arguments = permute_arguments,
                                        .args_bytes = sizeof(permute_args),
                                        .infer = infer_permute,
                                        .build = build_permute};
const tp_layer_type tp_layer_repeat_vector = {.name = "RepeatVector",
                                              .snake = "repeat_vector",
                                              .arguments = repeat_arguments,
                                              .args_bytes = sizeof(repeat_args),
                                              .infer = infer_repeat,
                                              .build = build_repeat};
const tp_layer_type tp_layer_masking = {.name = "Masking",
                                        .snake = "masking",
                                        .arguments = masking_arguments,
                                        .args_bytes = sizeof(masking_args),
                                        .infer = infer_masking,
                                        .mask = TP_LAYER_MASK_OWN,
                                        .build = build_masking};
const tp_layer_type tp_layer_activity_regularization = {.name = "ActivityRegularization",
                                                        .snake = "activity_regularization",
                                                        .arguments = activity_arguments,
                                                        .args_bytes = sizeof(tp_regularizer),
                                                        .mask = TP_LAYER_MASK_PASSES,
                                                        .infer = tp_layer_same_output,
                                                        .build = build_activity};
