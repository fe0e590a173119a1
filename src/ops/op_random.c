/* SPDX-License-Identifier: Apache-2.0
 * Random numbers, recomputed wherever they are needed and never stored: a function of (seed,
 * stream, core, step, element), see num/philox.h.
 *
 *   uniform     dtype f32 or bf16, shape, stream: multiples of 2^-24 in [0, 1); as bf16 rounded,
 *               so that 1
 *               can occur
 *   normal      dtype f32 or bf16, shape, stream: mean 0, standard deviation 1
 *   bernoulli   shape, probability, stream: pred, true where uniform < probability
 *   random_bits shape, stream: u32, uniformly distributed words, the same on all cores (of Philox as
 *               core TP_RANDOM_ALL_CORES), so that what all cores keep can be rounded by them
 * stream: 0 or more, below 2^31; ops with equal streams draw equal numbers. */
#include "ops/op_random.h"

#include "core/arena.h"
#include "graph/attrs.h"
#include "num/philox.h"
#include "ops/op_util.h"

static uint32_t stream_id(const tp_node *node)
{
    return (uint32_t)tp_node_attr_int(node, "stream", 0);
}

static tpucl_status check_common(const tp_node *node, tp_shape *out_shape)
{
    const int64_t stream = tp_node_attr_int(node, "stream", 0);
    if (stream < 0 || stream > INT32_MAX)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "stream %lld, expected 0 to %d", (long long)stream,
                       INT32_MAX);
    TP_TRY(tp_node_attr_shape(node, "shape", out_shape));
    if (tp_shape_elems(out_shape) > ((int64_t)1 << 34))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%lld random elements, expected at most 2^34",
                       (long long)tp_shape_elems(out_shape));
    return TPUCL_OK;
}

static tpucl_status infer_float(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    (void)graph;
    TP_TRY(check_common(node, out_shape));
    return tp_node_attr_dtype(node, "dtype", out_dtype);
}

static tpucl_status infer_bernoulli(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                    tp_shape *out_shape)
{
    (void)graph;
    const double probability = tp_node_attr_float(node, "probability", 0);
    if (!(probability >= 0 && probability <= 1))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "probability %.9g, expected 0 to 1", probability);
    *out_dtype = TP_PRED;
    return check_common(node, out_shape);
}

static tp_random_stream make_stream(const tp_node *node, const tp_eval_context *context)
{
    return tp_random_stream_make((uint32_t)context->seed, (uint32_t)(context->seed >> 32),
                                 stream_id(node), context->core, context->step);
}

static tpucl_status uniform_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                     const tp_eval_context *context, tp_host_tensor *out)
{
    (void)inputs;
    const tp_random_stream stream = make_stream(node, context);
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t i = 0; i < elems; ++i) {
        const float value = tp_random_uniform(stream, (uint32_t)(i / 4), (uint32_t)(i % 4));
        tp_op_write(out, i, 1, &value);
    }
    return TPUCL_OK;
}

static tpucl_status normal_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                    const tp_eval_context *context, tp_host_tensor *out)
{
    (void)inputs;
    const tp_random_stream stream = make_stream(node, context);
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t i = 0; i < elems; ++i) {
        const float value = tp_random_normal(stream, (uint32_t)(i / 4), (uint32_t)(i % 4));
        tp_op_write(out, i, 1, &value);
    }
    return TPUCL_OK;
}

static uint32_t threshold_of(const tp_node *node)
{
    return tp_bernoulli_threshold((float)tp_node_attr_float(node, "probability", 0));
}

static tpucl_status bernoulli_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                       const tp_eval_context *context, tp_host_tensor *out)
{
    (void)inputs;
    const tp_random_stream stream = make_stream(node, context);
    const uint32_t threshold = threshold_of(node);
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t i = 0; i < elems; ++i)
        ((uint8_t *)out->data)[i] =
            tp_random_bernoulli(stream, (uint32_t)(i / 4), (uint32_t)(i % 4), threshold) != 0;
    return TPUCL_OK;
}

static tpucl_status infer_bits(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                               tp_shape *out_shape)
{
    (void)graph;
    *out_dtype = TP_U32;
    return check_common(node, out_shape);
}

static tpucl_status bits_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                  const tp_eval_context *context, tp_host_tensor *out)
{
    (void)inputs;
    const tp_random_stream stream =
        tp_random_stream_make((uint32_t)context->seed, (uint32_t)(context->seed >> 32),
                              stream_id(node), TP_RANDOM_ALL_CORES, context->step);
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t i = 0; i < elems; ++i)
        ((uint32_t *)out->data)[i] = tp_random_bits(stream, (uint32_t)(i / 4), (uint32_t)(i % 4));
    return TPUCL_OK;
}

static const char *bits_vpu(const tp_graph *graph, const tp_node *node)
{
    return tp_arena_printf(graph->arena, "VPU_RANDOM_SHARED_BITS(%uu)", stream_id(node));
}

static const char *uniform_vpu(const tp_graph *graph, const tp_node *node)
{
    return tp_arena_printf(graph->arena, "VPU_RANDOM_UNIFORM(%uu)", stream_id(node));
}

static const char *normal_vpu(const tp_graph *graph, const tp_node *node)
{
    return tp_arena_printf(graph->arena, "VPU_RANDOM_NORMAL(%uu)", stream_id(node));
}

static const char *bernoulli_vpu(const tp_graph *graph, const tp_node *node)
{
    return tp_arena_printf(graph->arena, "VPU_LT(VPU_RANDOM_BITS(%uu) >> (VU)(8u), (VU)(%uu))",
                           stream_id(node), threshold_of(node));
}

#define SHAPE_ATTR                                                                                 \
    {                                                                                              \
        "shape", TP_ATTR_INTS, false, NULL, "of the result"                                        \
    }
#define STREAM_ATTR                                                                                \
    {                                                                                              \
        "stream", TP_ATTR_INT, false, NULL, "which random numbers; equal streams, equal numbers"   \
    }

static const tp_attr_spec float_attrs[] = {
    {"dtype", TP_ATTR_TEXT, false, "f32|bf16", "of the result"}, SHAPE_ATTR, STREAM_ATTR, {0}};
static const tp_attr_spec bits_attrs[] = {SHAPE_ATTR, STREAM_ATTR, {0}};
static const tp_attr_spec bernoulli_attrs[] = {
    SHAPE_ATTR, {"probability", TP_ATTR_FLOAT, false, NULL, "of true, 0 to 1"}, STREAM_ATTR, {0}};

const tp_opdef tp_opdef_uniform = {.name = "uniform",
                                   .op_class = TP_OP_RANDOM,
                                   .doc = "Random numbers, evenly distributed in [0, 1).",
                                   .attrs = float_attrs,
                                   .infer = infer_float,
                                   .evaluate = uniform_evaluate,
                                   .vpu = uniform_vpu};
const tp_opdef tp_opdef_normal = {.name = "normal",
                                  .op_class = TP_OP_RANDOM,
                                  .doc =
                                      "Random numbers, normally distributed, mean 0, deviation 1.",
                                  .attrs = float_attrs,
                                  .infer = infer_float,
                                  .evaluate = normal_evaluate,
                                  .vpu = normal_vpu};
const tp_opdef tp_opdef_bernoulli = {.name = "bernoulli",
                                     .op_class = TP_OP_RANDOM,
                                     .doc = "pred: true with the given probability.",
                                     .attrs = bernoulli_attrs,
                                     .infer = infer_bernoulli,
                                     .evaluate = bernoulli_evaluate,
                                     .vpu = bernoulli_vpu};
const tp_opdef tp_opdef_random_bits = {.name = "random_bits",
                                       .op_class = TP_OP_RANDOM,
                                       .is_equal_on_cores = true,
                                       .doc = "Random words (u32), the same on all cores.",
                                       .attrs = bits_attrs,
                                       .infer = infer_bits,
                                       .evaluate = bits_evaluate,
                                       .vpu = bits_vpu};
