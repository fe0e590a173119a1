/* SPDX-License-Identifier: Apache-2.0
 * dot_general: see op_dot.h. Both gradients are dot_general nodes again; they need a transpose only when
 * the operand's free and contracting dimensions do not already stand in the order that a product gives.
 */
#include "ops/op_dot.h"

#include "core/alloc.h"
#include "graph/attrs.h"
#include "graph/builder.h"
#include "graph/geometry.h"
#include "num/mxu.h"
#include "ops/host_values.h"
#include "ops/product.h"

static const tp_attr_spec attrs[] = {
    {"lhs_batching_dimensions", TP_ATTR_INTS, true, NULL, "lhs dimensions that are batch entries"},
    {"rhs_batching_dimensions", TP_ATTR_INTS, true, NULL, "their partners in rhs"},
    {"lhs_contracting_dimensions", TP_ATTR_INTS, true, NULL, "lhs dimensions that k runs over"},
    {"rhs_contracting_dimensions", TP_ATTR_INTS, true, NULL, "their partners in rhs"},
    TP_PRODUCT_PRECISION_SPEC,
    {0}};

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape)
{
    const tp_node *lhs = tp_graph_node(graph, node->inputs[0]);
    const tp_node *rhs = tp_graph_node(graph, node->inputs[1]);
    TP_TRY(tp_product_check_dtypes(node, lhs->dtype, rhs->dtype));
    tp_dot_geometry g;
    TP_TRY(tp_dot_geometry_read(node, &lhs->shape, &rhs->shape, &g));
    *out_dtype = TP_F32;
    *out_shape = g.result;
    return TPUCL_OK;
}

static double flops(const tp_graph *graph, const tp_node *node)
{
    tp_dot_geometry g;
    if (tp_dot_geometry_read(node, &tp_graph_node(graph, node->inputs[0])->shape,
                             &tp_graph_node(graph, node->inputs[1])->shape, &g) != TPUCL_OK)
        return 0;
    return 2.0 * (double)g.batch * (double)g.m * (double)g.n * (double)g.k;
}

/* ---- gradients ---- */

static void set_dims(int64_t *out, const int32_t *dims, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        out[i] = dims[i];
}

static void set_range(int64_t *out, int32_t first, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        out[i] = first + i;
}

/* Appends, to the list of where each axis of a product belongs in `operand`, the operand's contracting
 * dimensions in the order in which the product has them: by rising dimension of the other operand. */
static int32_t place_contracted(const int32_t *own, const int32_t *other, int32_t count,
                                int32_t *belongs, int32_t at)
{
    for (int32_t dim = 0; dim < TP_MAX_RANK; dim++)
        for (int32_t i = 0; i < count; i++)
            if (other[i] == dim) belongs[at++] = own[i];
    return at;
}

/* Axis p of `product` belongs at dimension belongs[p]. */
static tp_node_id arrange(tp_graph *graph, tp_node_id product, const int32_t *belongs, int32_t rank)
{
    int64_t axes[TP_MAX_RANK];
    bool is_identity = true;
    for (int32_t p = 0; p < rank; p++) {
        axes[belongs[p]] = p;
        is_identity = is_identity && belongs[p] == p;
    }
    return is_identity ? product : tp_op_transpose(graph, product, axes);
}

/* d_lhs[batch, free, contracted] = sum over rhs' free of d[batch, free, rhs free] * rhs[...] */
static tp_node_id lhs_gradient(tp_graph *graph, const tp_dot_geometry *g, tp_node_id d,
                               tp_node_id rhs, const char *precision)
{
    tp_dot_dims dims = {.batch_count = g->batch_count, .contract_count = g->b_free_count};
    set_range(dims.lhs_batch, 0, g->batch_count);
    set_dims(dims.rhs_batch, g->b_batch_dims, g->batch_count);
    set_range(dims.lhs_contract, g->batch_count + g->a_free_count, g->b_free_count);
    set_dims(dims.rhs_contract, g->b_free_dims, g->b_free_count);
    const tp_node_id product = tp_op_dot_general(graph, d, rhs, &dims, precision);

    int32_t belongs[TP_MAX_RANK], at = 0;
    for (int32_t i = 0; i < g->batch_count; i++)
        belongs[at++] = g->a_batch_dims[i];
    for (int32_t i = 0; i < g->a_free_count; i++)
        belongs[at++] = g->a_free_dims[i];
    at = place_contracted(g->a_contract_dims, g->b_contract_dims, g->contract_count, belongs, at);
    return arrange(graph, product, belongs, at);
}

/* d_rhs[batch, contracted, free] = sum over lhs' free of lhs[...] * d[batch, lhs free, free] */
static tp_node_id rhs_gradient(tp_graph *graph, const tp_dot_geometry *g, tp_node_id lhs,
                               tp_node_id d, const char *precision)
{
    tp_dot_dims dims = {.batch_count = g->batch_count, .contract_count = g->a_free_count};
    set_dims(dims.lhs_batch, g->a_batch_dims, g->batch_count);
    set_range(dims.rhs_batch, 0, g->batch_count);
    set_dims(dims.lhs_contract, g->a_free_dims, g->a_free_count);
    set_range(dims.rhs_contract, g->batch_count, g->a_free_count);
    const tp_node_id product = tp_op_dot_general(graph, lhs, d, &dims, precision);

    int32_t belongs[TP_MAX_RANK], at = 0;
    for (int32_t i = 0; i < g->batch_count; i++)
        belongs[at++] = g->b_batch_dims[i];
    at = place_contracted(g->b_contract_dims, g->a_contract_dims, g->contract_count, belongs, at);
    for (int32_t i = 0; i < g->b_free_count; i++)
        belongs[at++] = g->b_free_dims[i];
    return arrange(graph, product, belongs, at);
}

static void gradient(tp_graph *graph, tp_node_id id, tp_node_id d_result, tp_node_id *d_inputs)
{
    const tp_node node = *tp_graph_node(graph, id); /* a copy: adding nodes may move them */
    const tp_node_id lhs = node.inputs[0], rhs = node.inputs[1];
    const tp_dtype lhs_dtype = tp_graph_node(graph, lhs)->dtype;
    tp_dot_geometry g;
    if (tp_dot_geometry_read(&node, &tp_graph_node(graph, lhs)->shape,
                             &tp_graph_node(graph, rhs)->shape, &g) != TPUCL_OK) {
        tp_graph_keep_error(graph);
        return;
    }
    const char *precision = tp_precision_name(g.precision);
    const tp_node_id d = tp_product_operand(graph, d_result);
    d_inputs[0] = tp_op_convert(graph, lhs_gradient(graph, &g, d, rhs, precision), lhs_dtype);
    d_inputs[1] = rhs_gradient(graph, &g, lhs, d, precision);
}

/* ---- evaluation ---- */

static int64_t *offsets_new(const tp_index_map *map, int64_t count)
{
    int64_t *offsets = TP_NEW_ARRAY(int64_t, (size_t)count);
    for (int64_t i = 0; offsets && i < count; i++)
        offsets[i] = tp_index_map_offset(map, i);
    return offsets;
}

/* out[row][column] = tensor[base + rows[row] + columns[column]] */
static void gather(const tp_host_tensor *tensor, int64_t base, const int64_t *rows,
                   int64_t row_count, const int64_t *columns, int64_t column_count, float *out)
{
    for (int64_t row = 0; row < row_count; row++)
        for (int64_t column = 0; column < column_count; column++)
            *out++ = tp_host_load(tensor, base + rows[row] + columns[column]);
}

static tpucl_status evaluate(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    tp_dot_geometry g;
    TP_TRY(tp_dot_geometry_read(node, &inputs[0].shape, &inputs[1].shape, &g));
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    const int64_t step = tp_product_rows_at_once(g.m, g.k);
    int64_t *a_outer = offsets_new(&g.a_outer, g.m), *a_inner = offsets_new(&g.a_inner, g.k);
    int64_t *b_outer = offsets_new(&g.b_outer, g.n), *b_inner = offsets_new(&g.b_inner, g.k);
    float *a = TP_NEW_ARRAY(float, (size_t)(step * g.k));
    float *b = TP_NEW_ARRAY(float, (size_t)(g.k * g.n));
    if (!a_outer || !a_inner || !b_outer || !b_inner || !a || !b) goto done;

    status = TPUCL_OK;
    for (int64_t z = 0; z < g.batch; z++) {
        gather(&inputs[1], tp_index_map_offset(&g.b_batch, z), b_inner, g.k, b_outer, g.n, b);
        for (int64_t row = 0; row < g.m; row += step) {
            const int64_t rows = g.m - row < step ? g.m - row : step;
            gather(&inputs[0], tp_index_map_offset(&g.a_batch, z), a_outer + row, rows, a_inner,
                   g.k, a);
            float *c = (float *)out->data + (z * g.m + row) * g.n;
            TP_TRY_GOTO(status, tp_mxu_matmul(g.precision, rows, g.n, g.k, a, b, c), done);
        }
    }
done:
    tp_free(a_outer);
    tp_free(a_inner);
    tp_free(b_outer);
    tp_free(b_inner);
    tp_free(a);
    tp_free(b);
    return status;
}

const tp_opdef tp_opdef_dot_general = {
    .name = "dot_general",
    .op_class = TP_OP_MXU,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc = "MXU product over the contracting dimensions, for each entry of the batching ones; f32.",
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .flops = flops,
};
