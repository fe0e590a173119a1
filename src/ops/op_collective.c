/* SPDX-License-Identifier: Apache-2.0
 * Ops across the cores of a replica group. Names are StableHLO's; a graph is one core's, so its shapes hold for
 * groups of `cores` cores, and whoever runs it refuses groups of another size.
 *
 *   all_reduce           kind add; f32. The sum by the balanced tree over core ids, flushed once at its end;
 *                        replicated
 *   all_gather           the cores' operands one after the other along all_gather_dim; replicated
 *   reduce_scatter       kind add; f32. Of the all_reduce, each core gets its part of scatter_dimension: part p
 *                        goes to the core at position p
 *   collective_permute   the operand of the core that source_target_pairs (source, target, source, ...) name for
 *                        this one; zeros where none is named. No core is named twice as source or as target
 *   cross_replica_sum    f32. The sum over the core's own neighbours: positions p - p mod group .. + group - 1,
 *                        by the balanced tree over all cores in which the others' operands are left out, flushed
 *                        once at its end. Named after tf.tpu.cross_replica_sum; for
 *                        statistics that are normalised with (batch normalisation over several cores)
 *   replica_id           u32 scalar: the core's position in its group
 *
 * Whoever holds all cores evaluates them (exec, reference), so there is no evaluation here; and no gradient but
 * cross_replica_sum's: whether the gradient of a sum over cores is again to be summed depends on what the
 * losses of the cores mean. There they are parts of one loss, their sum, as in training (optim/cross_shard.h):
 * what a core puts in reaches the losses of all of its group, so its gradient is the sum of theirs. */
#include "ops/op_collective.h"

#include "graph/builder.h"
#include "ops/op_util.h"

static tpucl_status all_reduce_infer(const tp_graph *graph, const tp_node *node,
                                     tp_dtype *out_dtype, tp_shape *out_shape)
{
    return tp_op_infer_same(graph, node, TP_DTYPE_BIT(TP_F32), out_dtype, out_shape);
}

/* The operand's type, the dim that attribute `name` says, and how many cores there are. */
static tpucl_status read_split(const tp_graph *graph, const tp_node *node, const char *name,
                               uint32_t dtypes, tp_shape *out_shape, int64_t *out_dim,
                               int64_t *out_cores)
{
    TP_TRY(tp_op_check_dtype(graph, node, 0, dtypes));
    *out_shape = tp_op_input(graph, node, 0)->shape;
    *out_dim = tp_node_attr_int(node, name, 0);
    *out_cores = tp_node_attr_int(node, "cores", 0);
    if (*out_cores < 1 || *out_cores > INT32_MAX)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s over %lld cores, expected 1 or more",
                       node->def->name, (long long)*out_cores);
    if (*out_dim < 0 || *out_dim >= out_shape->rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s along dim %lld of a tensor of rank %d",
                       node->def->name, (long long)*out_dim, out_shape->rank);
    return TPUCL_OK;
}

static tpucl_status all_gather_infer(const tp_graph *graph, const tp_node *node,
                                     tp_dtype *out_dtype, tp_shape *out_shape)
{
    tp_shape shape;
    int64_t dim, cores;
    TP_TRY(read_split(graph, node, "all_gather_dim", TP_DTYPES_FLOAT, &shape, &dim, &cores));
    if (!tp_size_multiply(shape.dims[dim], cores, &shape.dims[dim]))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "all_gather of %lld elements from %lld cores",
                       (long long)shape.dims[dim], (long long)cores);
    *out_dtype = tp_op_input(graph, node, 0)->dtype;
    return tp_shape_init(out_shape, shape.rank, shape.dims);
}

static tpucl_status reduce_scatter_infer(const tp_graph *graph, const tp_node *node,
                                         tp_dtype *out_dtype, tp_shape *out_shape)
{
    int64_t dim, cores;
    TP_TRY(read_split(graph, node, "scatter_dimension", TP_DTYPE_BIT(TP_F32), out_shape, &dim,
                      &cores));
    if (out_shape->dims[dim] % cores != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "reduce_scatter of %lld elements to %lld cores, expected equal parts",
                       (long long)out_shape->dims[dim], (long long)cores);
    out_shape->dims[dim] /= cores;
    *out_dtype = TP_F32;
    return TPUCL_OK;
}

static tpucl_status collective_permute_infer(const tp_graph *graph, const tp_node *node,
                                             tp_dtype *out_dtype, tp_shape *out_shape)
{
    int32_t count;
    const int64_t *pairs = tp_node_attr_ints(node, "source_target_pairs", &count);
    const int64_t cores = tp_node_attr_int(node, "cores", 0);
    if (count % 2 != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "'source_target_pairs' has %d numbers, expected pairs", count);
    for (int32_t i = 0; i < count; ++i) {
        if (pairs[i] < 0 || pairs[i] >= cores)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "collective_permute names core %lld of %lld",
                           (long long)pairs[i], (long long)cores);
        for (int32_t k = i % 2; k < i; k += 2)
            if (pairs[k] == pairs[i])
                return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                               "collective_permute names core %lld twice as %s",
                               (long long)pairs[i], i % 2 ? "target" : "source");
    }
    return tp_op_infer_same(graph, node, TP_DTYPES_FLOAT, out_dtype, out_shape);
}

static tpucl_status cross_replica_sum_infer(const tp_graph *graph, const tp_node *node,
                                            tp_dtype *out_dtype, tp_shape *out_shape)
{
    const int64_t group = tp_node_attr_int(node, "group", 0);
    const int64_t cores = tp_node_attr_int(node, "cores", 0);
    if (cores < 1 || cores > INT32_MAX || group < 1 || cores % group != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "cross_replica_sum over groups of %lld of %lld cores, expected a divisor",
                       (long long)group, (long long)cores);
    return tp_op_infer_same(graph, node, TP_DTYPE_BIT(TP_F32), out_dtype, out_shape);
}

static void cross_replica_sum_gradient(tp_graph *graph, tp_node_id id, tp_node_id d_result,
                                       tp_node_id *d_inputs)
{
    const tp_node *node = tp_graph_node(graph, id);
    d_inputs[0] = tp_op_cross_replica_sum(graph, d_result, tp_node_attr_int(node, "group", 1),
                                          tp_node_attr_int(node, "cores", 1));
}

static tpucl_status replica_id_infer(const tp_graph *graph, const tp_node *node,
                                     tp_dtype *out_dtype, tp_shape *out_shape)
{
    (void)graph;
    (void)node;
    *out_dtype = TP_U32;
    *out_shape = (tp_shape){.rank = 0};
    return TPUCL_OK;
}

static tpucl_status replica_id_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                        const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)inputs;
    *(uint32_t *)out->data = context->position;
    return TPUCL_OK;
}

#define CORES_ATTR                                                                                 \
    {                                                                                              \
        "cores", TP_ATTR_INT, false, NULL, "of a replica group"                                    \
    }
static const tp_attr_spec all_reduce_attrs[] = {
    {"kind", TP_ATTR_TEXT, false, "add", "how the cores' values are combined"}, {0}};
static const tp_attr_spec all_gather_attrs[] = {
    {"all_gather_dim", TP_ATTR_INT, false, NULL, "along which the operands follow each other"},
    CORES_ATTR,
    {0}};
static const tp_attr_spec reduce_scatter_attrs[] = {
    {"kind", TP_ATTR_TEXT, false, "add", "how the cores' values are combined"},
    {"scatter_dimension", TP_ATTR_INT, false, NULL, "which is divided among the cores"},
    CORES_ATTR,
    {0}};
static const tp_attr_spec permute_attrs[] = {
    {"source_target_pairs", TP_ATTR_INTS, false, NULL, "source, target, source, target, ..."},
    CORES_ATTR,
    {0}};
static const tp_attr_spec sum_attrs[] = {
    {"group", TP_ATTR_INT, false, NULL, "neighbouring cores that are summed over"},
    CORES_ATTR,
    {0}};
static const tp_attr_spec replica_id_attrs[] = {CORES_ATTR, {0}};

const tp_opdef tp_opdef_all_reduce = {.name = "all_reduce",
                                      .op_class = TP_OP_COLLECTIVE,
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .doc = "Sum over the cores of the replica group.",
                                      .attrs = all_reduce_attrs,
                                      .infer = all_reduce_infer};
const tp_opdef tp_opdef_all_gather = {
    .name = "all_gather",
    .op_class = TP_OP_COLLECTIVE,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "The operands of the replica group's cores, one after the other.",
    .attrs = all_gather_attrs,
    .infer = all_gather_infer};
const tp_opdef tp_opdef_reduce_scatter = {
    .name = "reduce_scatter",
    .op_class = TP_OP_COLLECTIVE,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Of the sum over the cores of the replica group, each core's part.",
    .attrs = reduce_scatter_attrs,
    .infer = reduce_scatter_infer,
    .depends_on_core = true};
const tp_opdef tp_opdef_collective_permute = {.name = "collective_permute",
                                              .op_class = TP_OP_COLLECTIVE,
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .doc = "The operand of another core, or zeros.",
                                              .attrs = permute_attrs,
                                              .infer = collective_permute_infer,
                                              .depends_on_core = true};
const tp_opdef tp_opdef_cross_replica_sum = {
    .name = "cross_replica_sum",
    .op_class = TP_OP_COLLECTIVE,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Sum over the group of neighbouring cores that the core is in.",
    .attrs = sum_attrs,
    .infer = cross_replica_sum_infer,
    .gradient = cross_replica_sum_gradient,
    .depends_on_core = true};
const tp_opdef tp_opdef_replica_id = {.name = "replica_id",
                                      .op_class = TP_OP_MEMORY,
                                      .doc =
                                          "u32 scalar: position of the core in its replica group.",
                                      .attrs = replica_id_attrs,
                                      .infer = replica_id_infer,
                                      .evaluate = replica_id_evaluate,
                                      .depends_on_core = true};
