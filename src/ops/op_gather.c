/* SPDX-License-Identifier: Apache-2.0
 * gather(operand, start_indices): StableHLO's, any dtype. Where StableHLO always clamps an index so that
 * its slice fits (out_of_range "clamp", the default), "zero" gives zeros for elements outside instead:
 * it is what the gradient of a scatter that skips needs, and what padding tokens of -1 want.
 *
 * The gradient is the scatter-add of the same dimension numbers into zeros, in rising order of the
 * result's elements. */
#include "ops/op_gather.h"

#include <string.h>

#include "graph/builder.h"
#include "ops/op_util.h"

/* ---- where elements lie ---- */

static int64_t read_index(const tp_host_tensor *indices, int64_t offset)
{
    return indices->dtype == TP_U32 ? (int64_t)((const uint32_t *)indices->data)[offset]
                                    : (int64_t)((const int32_t *)indices->data)[offset];
}

bool tp_indexing_locate(const tp_indexing *ix, const tp_host_tensor *indices, bool clamps,
                        const int64_t *at, int64_t *out_offset)
{
    int64_t offset = 0, vector = 0;
    for (int32_t d = 0; d < ix->rank; ++d) {
        offset += at[d] * ix->operand_strides[d];
        vector += at[d] * ix->index_strides[d];
    }
    for (int32_t k = 0; k < ix->components; ++k) {
        int64_t place = read_index(indices, vector + k * ix->component_stride);
        if (clamps) {
            place = place < 0 ? 0 : place > ix->limits[k] ? ix->limits[k] : place;
        } else {
            const int64_t cell = place + (ix->window_dims[k] < 0 ? 0 : at[ix->window_dims[k]]);
            if (cell < 0 || cell >= ix->extents[k]) return false;
        }
        offset += place * ix->steps[k];
    }
    *out_offset = offset;
    return true;
}

bool tp_indexing_advance(const tp_indexing *ix, int64_t *at)
{
    for (int32_t d = ix->rank - 1; d >= 0; --d) {
        if (++at[d] < ix->sizes[d]) return true;
        at[d] = 0;
    }
    return false;
}

bool tp_indexing_clamps(const tp_node *node)
{
    return strcmp(tp_node_attr_text(node, "out_of_range", "clamp"), "clamp") == 0;
}

tpucl_status tp_indexing_check_indices(const tp_graph *graph, const tp_node *node, int32_t index)
{
    return tp_op_check_dtype(graph, node, index, TP_DTYPES_INT);
}

/* How many elements in a row of the dense tensor lie at equal distances, wherever the row begins. */
static int64_t run_length(const tp_indexing *ix, bool clamps)
{
    const int32_t last = ix->rank - 1;
    if (last < 0 || ix->index_strides[last] != 0) return 1;
    for (int32_t k = 0; k < ix->components && !clamps; ++k)
        if (ix->window_dims[k] == last) return 1;
    return ix->sizes[last];
}

void tp_indexing_copy(const tp_indexing *ix, const tp_host_tensor *indices, bool clamps,
                      size_t size, void *indexed, void *dense, bool is_store)
{
    if (tp_shape_elems(&ix->dense) == 0) return;
    const int64_t run = run_length(ix, clamps);
    const int32_t last = ix->rank - 1;
    const int64_t step = run > 1 ? ix->operand_strides[last] * (int64_t)size : 0;
    int64_t at[TP_MAX_RANK] = {0};
    char *row = dense;
    do {
        int64_t offset = 0;
        const bool has_place = tp_indexing_locate(ix, indices, clamps, at, &offset);
        char *place = (char *)indexed + offset * (int64_t)size;
        for (int64_t i = 0; i < run; ++i, row += size, place += step) {
            if (!is_store && has_place) memcpy(row, place, size);
            if (!is_store && !has_place) memset(row, 0, size);
            if (is_store && has_place) memcpy(place, row, size);
        }
        if (run > 1) at[last] = run - 1;
    } while (tp_indexing_advance(ix, at));
}

/* ---- gather ---- */

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape)
{
    const tp_node *operand = tp_op_input(graph, node, 0), *indices = tp_op_input(graph, node, 1);
    tp_indexing ix;
    TP_TRY(tp_indexing_check_indices(graph, node, 1));
    TP_TRY(tp_indexing_read(node, &operand->shape, &indices->shape, NULL, &ix));
    *out_dtype = operand->dtype;
    *out_shape = ix.dense;
    return TPUCL_OK;
}

static tpucl_status evaluate(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    tp_indexing ix;
    TP_TRY(tp_indexing_read(node, &inputs[0].shape, &inputs[1].shape, NULL, &ix));
    tp_indexing_copy(&ix, &inputs[1], tp_indexing_clamps(node), tp_dtype_size(out->dtype),
                     inputs[0].data, out->data, false);
    return TPUCL_OK;
}

static void gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node node = g->nodes[y]; /* a copy: adding nodes may move them */
    const tp_shape shape = tp_op_input(g, &node, 0)->shape;
    tp_index_dims dims;
    if (tp_index_dims_read(&node, &dims) != TPUCL_OK) {
        tp_graph_keep_error(g);
        return;
    }
    const tp_node_id zeros = tp_op_fill(g, g->nodes[d].dtype, shape, 0);
    d_inputs[0] = tp_op_scatter(g, zeros, node.inputs[1], d, &dims, "add",
                                tp_indexing_clamps(&node) ? "clamp" : "skip");
}

/* Nothing is computed. */
static double flops(const tp_graph *graph, const tp_node *node)
{
    (void)graph;
    (void)node;
    return 0;
}

static const tp_attr_spec attrs[] = {
    {"offset_dims", TP_ATTR_INTS, false, NULL, "result dims that run through the slices"},
    {"collapsed_slice_dims", TP_ATTR_INTS, false, NULL, "operand dims that the result lacks"},
    {"operand_batching_dims", TP_ATTR_INTS, true, NULL,
     "operand dims that go with dims of the indices"},
    {"start_indices_batching_dims", TP_ATTR_INTS, true, NULL, "those dims of the indices"},
    {"start_index_map", TP_ATTR_INTS, false, NULL, "operand dim of each component of an index"},
    {"index_vector_dim", TP_ATTR_INT, false, NULL,
     "dim of the indices that holds the components; their rank: one component"},
    {"slice_sizes", TP_ATTR_INTS, false, NULL, "elements of a slice in each operand dim"},
    {"out_of_range", TP_ATTR_TEXT, true, "clamp|zero", "indices outside, default clamp"},
    {0}};

const tp_opdef tp_opdef_gather = {
    .name = "gather",
    .op_class = TP_OP_MEMORY,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc = "Slices of the operand at the places that the indices (s32 or u32) say: embedding "
           "look-up, take along an axis.",
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .flops = flops,
};
