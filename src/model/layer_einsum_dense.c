/* SPDX-License-Identifier: Apache-2.0
 * EinsumDense: activation(einsum(equation, x, kernel) + bias) for equations "ab,bc->ac", "...ab,bc->...ac" or
 * "ab...,bc->ac..." (keras/src/layers/core/einsum_dense.py), as one product: letters of the input and the
 * kernel alone are summed over, letters that all three have are batches of it.
 */
#include <string.h>

#include "model/layer.h"

typedef struct einsum_args {
    const char *equation, *bias_axes;
    tp_layer_ints output_shape;
    int32_t activation;
    tp_initializer kernel_initializer, bias_initializer;
    tp_regularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    tp_constraint kernel_constraint, bias_constraint;
    /* Found by infer. Terms have a letter for each axis, the batch included; elided axes have digits. */
    char input[TP_MAX_RANK + 1], kernel[TP_MAX_RANK + 1], output[TP_MAX_RANK + 1];
} einsum_args;

static const tp_layer_arg arguments[] = {
    {"equation", offsetof(einsum_args, equation), TP_LAYER_TEXT, TP_LAYER_REQUIRED},
    {"output_shape", offsetof(einsum_args, output_shape), TP_LAYER_INTS, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(-1, 1 << 30), .count = TP_MAX_RANK - 1},
    TP_LAYER_ROW_ACTIVATION(einsum_args, activation),
    {TP_LAYER_ROW(einsum_args, bias_axes, TP_LAYER_TEXT)},
    TP_LAYER_ROW_INITIALIZER(einsum_args, kernel_initializer),
    TP_LAYER_ROW_INITIALIZER(einsum_args, bias_initializer),
    TP_LAYER_ROW_REGULARIZER(einsum_args, kernel_regularizer),
    TP_LAYER_ROW_REGULARIZER(einsum_args, bias_regularizer),
    TP_LAYER_ROW_REGULARIZER(einsum_args, activity_regularizer),
    TP_LAYER_ROW_CONSTRAINT(einsum_args, kernel_constraint),
    TP_LAYER_ROW_CONSTRAINT(einsum_args, bias_constraint),
    {0},
};

static void set_defaults(void *args)
{
    einsum_args *einsum = args;
    einsum->kernel_initializer = tp_initializer_default("glorot_uniform");
    einsum->bias_initializer = tp_initializer_default("zeros");
}

/* ---- the equation ---- */

/* One term up to `end`: its letters, an ellipsis as `elided` digits. False for anything else, and for letters
 * that come twice. */
static bool read_term(const char *at, const char *end, int elided, char out[TP_MAX_RANK + 1],
                      int *out_ellipsis)
{
    int count = 0;
    *out_ellipsis = -1;
    while (at < end) {
        if (end - at >= 3 && strncmp(at, "...", 3) == 0 && *out_ellipsis < 0) {
            *out_ellipsis = count;
            for (int i = 0; i < elided; i++) {
                if (count == TP_MAX_RANK) return false;
                out[count++] = (char)('0' + i);
            }
            at += 3;
            continue;
        }
        const bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        if (!is_letter || count == TP_MAX_RANK || memchr(out, *at, (size_t)count)) return false;
        out[count++] = *at++;
    }
    out[count] = '\0';
    return count > 0;
}

static bool read_equation(einsum_args *einsum, int input_rank)
{
    const char *comma = strchr(einsum->equation, ',');
    const char *arrow = strstr(einsum->equation, "->");
    int left, middle, right, letters = 0;
    if (!comma || !arrow || arrow < comma) return false;
    for (const char *at = einsum->equation; at < comma; at++)
        letters += *at != '.';
    const bool is_elided = strstr(einsum->equation, "...") != NULL;
    const int elided = input_rank - letters;
    if (is_elided ? elided < 0 : elided != 0) return false;
    const char *end = arrow + strlen(arrow);
    if (!read_term(einsum->equation, comma, elided, einsum->input, &left) ||
        !read_term(comma + 1, arrow, elided, einsum->kernel, &middle) ||
        !read_term(arrow + 2, end, elided, einsum->output, &right) || middle >= 0 ||
        (left < 0) != (right < 0))
        return false;
    /* Every letter of the input and the kernel is in two of the three terms, those of the output in one. */
    bool is_fine = einsum->output[0] == einsum->input[0];
    for (const char *c = einsum->input; *c; c++)
        is_fine = is_fine && (strchr(einsum->kernel, *c) || strchr(einsum->output, *c));
    for (const char *c = einsum->kernel; *c; c++)
        is_fine = is_fine && (strchr(einsum->input, *c) || strchr(einsum->output, *c));
    for (const char *c = einsum->output; *c; c++)
        is_fine = is_fine && (strchr(einsum->input, *c) || strchr(einsum->kernel, *c));
    return is_fine && !strchr(einsum->kernel, einsum->input[0]);
}

/* ---- shapes and weights ---- */

/* Sizes of the output's axes but the batch: what output_shape says, else the input's. */
static bool find_output(const tp_layer *layer, tp_problems *problems, int64_t *out_dims)
{
    const einsum_args *einsum = layer->args;
    const tp_shape *input = tp_layer_input(layer, 0);
    int32_t given = 0;
    for (const char *c = einsum->output + 1; *c; c++) {
        const char *in = strchr(einsum->input, *c);
        const int64_t own = in ? input->dims[in - einsum->input - 1] : -1;
        int64_t size = -1;
        if (*c < '0' || *c > '9') {
            if (given < einsum->output_shape.count) size = einsum->output_shape.items[given];
            given++;
        }
        if (size == -1) size = own;
        if (size < 1 || (own != -1 && size != own)) {
            tp_problems_add(problems,
                            "'output_shape' does not say how long '%c' is, or not what "
                            "the input says",
                            *c);
            return false;
        }
        out_dims[c - einsum->output - 1] = size;
    }
    /* The batch has a letter or is the ellipsis' first axis: in neither case output_shape has it. */
    if (given == einsum->output_shape.count) return true;
    tp_problems_add(problems, "'output_shape' has %d sizes, the equation needs %d",
                    einsum->output_shape.count, given);
    return false;
}

static void add_bias(tp_layer *layer, const int64_t *output)
{
    einsum_args *einsum = layer->args;
    int64_t dims[TP_MAX_RANK];
    int rank = 0;
    for (const char *c = einsum->output + 1; *c; c++) {
        const bool has_bias = strchr(einsum->bias_axes, *c) != NULL;
        if (rank == 0 && !has_bias) continue;
        dims[rank++] = has_bias ? output[c - einsum->output - 1] : 1;
    }
    tp_layer_add_trained(layer, "bias", rank, dims, &einsum->bias_initializer,
                         &einsum->bias_regularizer, &einsum->bias_constraint);
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    einsum_args *einsum = layer->args;
    const tp_shape *input = tp_layer_input(layer, 0);
    int64_t output[TP_MAX_RANK], dims[TP_MAX_RANK];
    tp_shape fans = {.rank = 2, .dims = {1, 1}};
    if (!read_equation(einsum, input->rank + 1)) {
        tp_problems_add(
            problems,
            "the equation '%.64s' does not fit an input of %d dimensions and the batch; "
            "expected one like 'ab,bc->ac' or '...b,bc->...c'",
            einsum->equation, input->rank);
        return false;
    }
    if (!find_output(layer, problems, output) ||
        !tp_layer_add_output(layer, problems, (int)strlen(einsum->output) - 1, output))
        return false;
    for (const char *c = einsum->bias_axes ? einsum->bias_axes : ""; *c; c++)
        if (!strchr(einsum->output + 1, *c)) {
            tp_problems_add(problems, "'bias_axes' has '%c', which the output has not", *c);
            return false;
        }
    for (const char *c = einsum->kernel; *c; c++) {
        const char *out = strchr(einsum->output, *c), *in = strchr(einsum->input, *c);
        const int64_t size =
            out ? output[out - einsum->output - 1] : input->dims[in - einsum->input - 1];
        dims[c - einsum->kernel] = size;
        fans.dims[out != NULL] *= size;
    }
    tp_layer_weight *kernel = tp_layer_add_weight(layer, "kernel", (int)strlen(einsum->kernel),
                                                  dims, &einsum->kernel_initializer, true);
    kernel->fans = fans;
    kernel->regularizer = &einsum->kernel_regularizer;
    kernel->constraint = &einsum->kernel_constraint;
    if (einsum->bias_axes && einsum->bias_axes[0]) add_bias(layer, output);
    return true;
}

/* ---- nodes ---- */

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const einsum_args *einsum = layer->args;
    tp_graph *graph = context->graph;
    tp_dot_dims dims = {0};
    char product[2 * TP_MAX_RANK + 1]; /* letters of its axes: batches, input's own, kernel's own */
    int count = 0;
    int64_t axes[TP_MAX_RANK];
    for (const char *c = einsum->input; *c; c++) {
        const char *k = strchr(einsum->kernel, *c);
        if (!k) continue;
        if (strchr(einsum->output, *c)) {
            dims.lhs_batch[dims.batch_count] = c - einsum->input;
            dims.rhs_batch[dims.batch_count++] = k - einsum->kernel;
            product[count++] = *c;
        } else {
            dims.lhs_contract[dims.contract_count] = c - einsum->input;
            dims.rhs_contract[dims.contract_count++] = k - einsum->kernel;
        }
    }
    for (const char *c = einsum->input; *c; c++)
        if (!strchr(einsum->kernel, *c)) product[count++] = *c;
    for (const char *c = einsum->kernel; *c; c++)
        if (!strchr(einsum->input, *c)) product[count++] = *c;
    product[count] = '\0';
    for (const char *c = einsum->output; *c; c++)
        axes[c - einsum->output] = strchr(product, *c) - product;
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    tp_node_id y = tp_op_dot_general(graph, inputs[0], kernel, &dims, context->precision);
    y = tp_op_transpose(graph, y, axes);
    const bool has_bias = layer->weight_count > 1;
    const tp_node_id bias = has_bias ? context->variables[1] : TP_NO_NODE;
    outputs[0] = tp_layer_finish_product(context, y, bias, (tp_activation)einsum->activation);
    tp_layer_add_activity(context, &einsum->activity_regularizer, outputs[0]);
}

const tp_layer_type tp_layer_einsum_dense = {.name = "EinsumDense",
                                             .snake = "einsum_dense",
                                             .arguments = arguments,
                                             .args_bytes = sizeof(einsum_args),
                                             .mask = TP_LAYER_MASK_STOPS,
                                             .set_defaults = set_defaults,
                                             .infer = infer,
                                             .build = build};
