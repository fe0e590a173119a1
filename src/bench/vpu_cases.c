/* SPDX-License-Identifier: Apache-2.0
 * See vpu_cases.h. Activations are bf16 in memory and f32 in arithmetic, as under mixed_bfloat16. */
#include "bench/vpu_cases.h"

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "model/loss.h"
#include "optim/cross_shard.h"

static tp_shape shape_of(int64_t rows, int64_t columns)
{
    return (tp_shape){.rank = columns > 0 ? 2 : 1, .dims = {rows, columns}};
}

static tp_node_id input(tp_graph *g, const char *name, int64_t rows, int64_t columns)
{
    return tp_graph_add_input(g, name, TP_BF16, shape_of(rows, columns));
}

static tp_node_id wide(tp_graph *g, tp_node_id x)
{
    return tp_op_convert(g, x, TP_F32);
}

static void output(tp_graph *g, const char *name, tp_node_id value)
{
    tp_graph_add_output(g, name, tp_op_convert(g, value, TP_BF16));
}

static tp_node_id weight(tp_graph *g, const char *name, int64_t count, double value)
{
    const tp_variable variable = {.name = name,
                                  .dtype = TP_F32,
                                  .shape = shape_of(count, 0),
                                  .init = TP_INIT_CONSTANT,
                                  .init_a = value,
                                  .is_trainable = true,
                                  .is_model = true};
    return tp_graph_add_variable(g, &variable);
}

/* ---- normalisations ---- */

/* Mean over an axis, kept as one of size 1. */
static tp_node_id mean(tp_graph *g, tp_node_id x, int64_t axis, int64_t rows, int64_t columns)
{
    const double count = (double)(axis == 0 ? rows : columns);
    const tp_node_id sum = tp_op_reduce(g, x, "add", &axis, 1);
    const tp_shape kept = axis == 0 ? shape_of(1, columns) : shape_of(rows, 1);
    return tp_op_reshape(g, tp_op_multiply_scalar(g, sum, 1 / count), kept);
}

/* gamma * (x - mean) / sqrt(variance + epsilon) + beta: over features (axis 1, Ba et al. 2016) or over
 * examples (axis 0, Ioffe and Szegedy 2015). */
static tp_node_id normalise(tp_graph *g, tp_node_id x, int64_t axis, int64_t rows, int64_t columns)
{
    const tp_node_id middle = mean(g, x, axis, rows, columns);
    const tp_node_id centred = tp_op_subtract(g, x, middle);
    const tp_node_id variance = mean(g, tp_op_multiply(g, centred, centred), axis, rows, columns);
    const tp_node_id scale = tp_op_rsqrt(g, tp_op_add_scalar(g, variance, 1e-3));
    const tp_node_id unit = tp_op_multiply(g, centred, scale);
    return tp_op_add(g, tp_op_multiply(g, unit, weight(g, "gamma", columns, 1)),
                     weight(g, "beta", columns, 0));
}

static void forward(tp_graph *g, int64_t axis, int64_t rows, int64_t columns)
{
    const tp_node_id x = wide(g, input(g, "x", rows, columns));
    output(g, "y", normalise(g, x, axis, rows, columns));
}

/* The gradients of x, gamma and beta from that of y. */
static void backward(tp_graph *g, int64_t axis, int64_t rows, int64_t columns)
{
    const tp_node_id x = input(g, "x", rows, columns), dy = input(g, "dy", rows, columns);
    const tp_node_id y = normalise(g, wide(g, x), axis, rows, columns);
    const tp_node_id loss = tp_op_reduce(g, tp_op_multiply(g, y, wide(g, dy)), "add", NULL, 0);
    const tp_node_id wrt[] = {x, g->variables[0].node, g->variables[1].node};
    tp_node_id gradients[3];
    tp_graph_gradients(g, loss, wrt, 3, gradients);
    output(g, "dx", gradients[0]);
    tp_graph_add_output(g, "dgamma", gradients[1]);
    tp_graph_add_output(g, "dbeta", gradients[2]);
}

static void build_layer_norm(tp_graph *g, int64_t rows, int64_t columns)
{
    forward(g, 1, rows, columns);
}

static void build_layer_norm_backward(tp_graph *g, int64_t rows, int64_t columns)
{
    backward(g, 1, rows, columns);
}

static void build_batch_norm(tp_graph *g, int64_t rows, int64_t columns)
{
    forward(g, 0, rows, columns);
}

static void build_batch_norm_backward(tp_graph *g, int64_t rows, int64_t columns)
{
    backward(g, 0, rows, columns);
}

/* ---- loss ---- */

static void build_softmax(tp_graph *g, int64_t rows, int64_t columns)
{
    const tp_node_id x = wide(g, input(g, "x", rows, columns));
    const int64_t axis = 1;
    const tp_shape kept = shape_of(rows, 1);
    const tp_node_id most = tp_op_reshape(g, tp_op_reduce(g, x, "max", &axis, 1), kept);
    const tp_node_id power = tp_op_exponential(g, tp_op_subtract(g, x, most));
    const tp_node_id sum = tp_op_reshape(g, tp_op_reduce(g, power, "add", &axis, 1), kept);
    output(g, "y", tp_op_divide(g, power, sum));
}

static void build_loss(tp_graph *g, int64_t rows, int64_t columns)
{
    const tp_node_id logits = input(g, "x", rows, columns);
    const tp_loss_input loss = {.kind = TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
                                .result = wide(g, logits),
                                .logits = TP_NO_NODE,
                                .from_logits = true,
                                .label = tp_graph_add_input(g, "label", TP_S32, shape_of(rows, 0))};
    const tp_node_id each = tp_loss_per_example(g, &loss);
    tp_node_id gradient;
    tp_graph_gradients(g, tp_op_reduce(g, each, "add", NULL, 0), &logits, 1, &gradient);
    tp_graph_add_output(g, "loss", each);
    output(g, "dx", gradient);
}

/* ---- element-wise ---- */

static void build_dropout(tp_graph *g, int64_t rows, int64_t columns)
{
    const tp_node_id x = wide(g, input(g, "x", rows, columns));
    const tp_node_id keeps = tp_op_bernoulli(g, shape_of(rows, columns), 0.9, 1);
    const tp_node_id scaled = tp_op_multiply_scalar(g, x, 1 / 0.9);
    output(g, "y", tp_op_select(g, keeps, scaled, tp_op_scalar(g, TP_F32, 0)));
}

static void build_residual(tp_graph *g, int64_t rows, int64_t columns)
{
    const tp_node_id a = wide(g, input(g, "a", rows, columns));
    const tp_node_id b = wide(g, input(g, "b", rows, columns));
    output(g, "y", tp_op_maximum(g, tp_op_add(g, a, b), tp_op_scalar(g, TP_F32, 0)));
}

/* ---- optimizers ---- */

static void build_optimizer(tp_graph *g, tp_optim_kind kind, int64_t rows, int64_t columns)
{
    tp_optim_config config = tp_optim_defaults(kind);
    if (kind == TP_OPTIM_SGD) config.momentum = 0.9;
    const tp_variable variable = {.name = "w",
                                  .dtype = TP_F32,
                                  .shape = shape_of(rows, columns),
                                  .init = TP_INIT_CONSTANT,
                                  .init_a = 0.5,
                                  .is_trainable = true,
                                  .is_model = true};
    tp_graph_add_variable(g, &variable);
    const tp_optim_gradient gradient = {
        0, tp_graph_add_input(g, "g", TP_F32, shape_of(rows, columns))};
    tp_cross_shard_apply(g, &config, &gradient, 1);
}

static void build_adam(tp_graph *g, int64_t rows, int64_t columns)
{
    build_optimizer(g, TP_OPTIM_ADAM, rows, columns);
}

static void build_momentum(tp_graph *g, int64_t rows, int64_t columns)
{
    build_optimizer(g, TP_OPTIM_SGD, rows, columns);
}

static const tp_vpu_case cases[] = {
    {"layer normalization", build_layer_norm, 1024, 4, "x read, y written"},
    {"layer normalization, gradient", build_layer_norm_backward, 1024, 6, "x, dy read, dx written"},
    {"batch normalization", build_batch_norm, 256, 6, "x read twice, y written"},
    {"batch normalization, gradient", build_batch_norm_backward, 256, 10,
     "x, dy read twice, dx written"},
    {"softmax", build_softmax, 1024, 4, "x read, y written"},
    {"softmax, cross-entropy, gradient", build_loss, 1000, 4, "x read, dx written"},
    {"dropout", build_dropout, 1024, 4, "x read, y written"},
    {"residual and relu", build_residual, 1024, 6, "a, b read, y written"},
    {"Adam", build_adam, 1024, 28, "weights, both moments read and written, gradient read"},
    {"SGD with momentum", build_momentum, 1024, 20,
     "weights, momentum read and written, gradient read"},
};

const tp_vpu_case *tp_vpu_cases(size_t *out_count)
{
    *out_count = sizeof cases / sizeof *cases;
    return cases;
}
