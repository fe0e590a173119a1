/* SPDX-License-Identifier: Apache-2.0
 * Rewrites that change no bit. Nodes are visited in order; each is folded, replaced by something
 * simpler, merged with an equal one, or copied.
 *
 *   identities        reshape, broadcast, transpose, slice, pad, reverse, convert, concatenate that do
 *                     nothing; a reshape of a reshape; bf16 -> f32 -> bf16
 *   constants         element-wise ops of constants of one value are computed; a constant with all
 *                     elements equal becomes a broadcast scalar
 *   relu              x > 0 is asked of what is kept anyway: with m = maximum(x, 0), x > 0 exactly when
 *                     m > 0, and, if m is rounded to bf16, exactly when that is > 0, since no positive
 *                     normal number rounds to zero and subnormals do not occur. So x itself can die
 *   gather            of a table widened from bf16 to f32: rows are widened instead
 *   equal nodes       same op, operands and attributes: one node
 */
#include "compile/pass.h"

#include <string.h>
#include "core/alloc.h"
#include "graph/attrs.h"
#include "graph/builder.h"
#include "graph/opdef.h"
#include "graph/rewrite.h"

typedef struct canonical {
    const tp_graph *from;
    tp_graph *to;
    tp_rewrite *rewrite;
    /* Of the new graph, by hash of op and operands: last node in the bucket, and the one before. */
    tp_node_id buckets[1024];
    tp_node_id *previous;
    int32_t previous_count;
} canonical;

static const tp_node *new_node(const canonical *c, tp_node_id id)
{
    return tp_graph_node(c->to, id);
}

static bool is_op(const tp_node *node, const char *name)
{
    return strcmp(node->def->name, name) == 0;
}

/* Operand i of an old node, in the new graph. */
static tp_node_id operand(const canonical *c, const tp_node *node, int32_t i)
{
    return tp_rewrite_of(c->rewrite, node->inputs[i]);
}

/* ---- identities ---- */

static bool is_rising(const int64_t *axes, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (axes[i] != i) return false;
    return true;
}

static bool all_equal(const tp_node *node, const char *name, int64_t value)
{
    int32_t count;
    const int64_t *ints = tp_node_attr_ints(node, name, &count);
    for (int32_t i = 0; i < count; i++)
        if (ints[i] != value) return false;
    return true;
}

/* Does the node give its first operand back as it is? (A slice that keeps the shape takes everything.) */
static bool is_identity(const canonical *c, const tp_node *node)
{
    if (node->input_count == 0) return false;
    const tp_node *in = new_node(c, operand(c, node, 0));
    if (in->dtype != node->dtype || !tp_shape_equal(&in->shape, &node->shape)) return false;
    int32_t count;
    if (is_op(node, "reshape") || is_op(node, "convert") || is_op(node, "slice") ||
        is_op(node, "stop_gradient"))
        return true;
    if (is_op(node, "broadcast_in_dim") || is_op(node, "transpose"))
        return is_rising(tp_node_attr_ints(node, "axes", &count), node->shape.rank);
    if (is_op(node, "concatenate")) return node->input_count == 1;
    if (is_op(node, "pad")) return all_equal(node, "low", 0) && all_equal(node, "interior", 0);
    if (is_op(node, "reverse")) {
        tp_node_attr_ints(node, "axes", &count);
        return count == 0;
    }
    return false;
}

/* ---- simpler forms ---- */

static tp_node_id simplify_reshape(canonical *c, const tp_node *node)
{
    tp_node_id in = operand(c, node, 0);
    if (new_node(c, in)->def->op_class != TP_OP_RESHAPE) return TP_NO_NODE;
    while (new_node(c, in)->def->op_class == TP_OP_RESHAPE)
        in = new_node(c, in)->inputs[0];
    if (tp_shape_equal(&new_node(c, in)->shape, &node->shape)) return in;
    return tp_op_reshape(c->to, in, node->shape);
}

/* bf16 -> f32 -> bf16 is nothing. */
static tp_node_id simplify_convert(const canonical *c, const tp_node *node)
{
    const tp_node *in = new_node(c, operand(c, node, 0));
    if (!is_op(in, "convert") || in->dtype != TP_F32 || node->dtype != TP_BF16) return TP_NO_NODE;
    const tp_node_id first = in->inputs[0];
    return new_node(c, first)->dtype == TP_BF16 ? first : TP_NO_NODE;
}

/* Rows of a table that was widened are widened themselves, so that no f32 table is stored. */
static tp_node_id simplify_gather(const canonical *c, const tp_node *node)
{
    const tp_node *in = new_node(c, operand(c, node, 0));
    if (node->loop || !is_op(in, "convert") || in->dtype != TP_F32) return TP_NO_NODE;
    const tp_node_id inputs[] = {in->inputs[0], operand(c, node, 1)};
    if (new_node(c, inputs[0])->dtype != TP_BF16) return TP_NO_NODE;
    const tp_node_id rows = tp_graph_add(c->to, "gather", inputs, 2, node->attrs, node->attr_count);
    return tp_op_convert(c->to, rows, TP_F32);
}

/* A scalar constant behind broadcasts and reshapes; NULL when it is not one. */
static const tp_node *splat_of(const canonical *c, tp_node_id id)
{
    const tp_node *node = new_node(c, id);
    while (node->def->op_class == TP_OP_BROADCAST || node->def->op_class == TP_OP_RESHAPE)
        node = new_node(c, node->inputs[0]);
    const bool is_scalar = is_op(node, "constant") && tp_shape_elems(&node->shape) == 1;
    return is_scalar ? node : NULL;
}

static bool is_zero(const canonical *c, tp_node_id id)
{
    const tp_node *node = splat_of(c, id);
    if (!node || !tp_dtype_is_float(node->dtype)) return false;
    const unsigned char *bytes = tp_node_attr(node, "value")->data;
    for (size_t i = 0; i < tp_dtype_size(node->dtype); i++)
        if (bytes[i] != 0) return false;
    return true;
}

static bool is_relu_of(const canonical *c, tp_node_id id, tp_node_id x)
{
    const tp_node *node = new_node(c, id);
    if (!is_op(node, "maximum")) return false;
    return (node->inputs[0] == x && is_zero(c, node->inputs[1])) ||
           (node->inputs[1] == x && is_zero(c, node->inputs[0]));
}

/* maximum(x, 0) in the new graph, among nodes made so far: x itself when it is one; TP_NO_NODE. */
static tp_node_id find_relu(const canonical *c, tp_node_id x)
{
    const tp_node *node = new_node(c, x);
    if (is_op(node, "maximum") &&
        (is_relu_of(c, x, node->inputs[0]) || is_relu_of(c, x, node->inputs[1])))
        return x;
    for (tp_node_id id = c->to->node_count - 1; id > x; id--)
        if (is_relu_of(c, id, x)) return id;
    return TP_NO_NODE;
}

static tp_node_id find_bf16(const canonical *c, tp_node_id x)
{
    for (tp_node_id id = c->to->node_count - 1; id > x; id--) {
        const tp_node *node = new_node(c, id);
        if (is_op(node, "convert") && node->dtype == TP_BF16 && node->inputs[0] == x) return id;
    }
    return TP_NO_NODE;
}

/* compare GT(x, 0), or LT(0, x). */
static tp_node_id simplify_compare(canonical *c, const tp_node *node)
{
    const char *direction = tp_node_attr_text(node, "direction", "");
    const bool is_gt = strcmp(direction, "GT") == 0, is_lt = strcmp(direction, "LT") == 0;
    if (!is_gt && !is_lt) return TP_NO_NODE;
    const tp_node_id x = operand(c, node, is_gt ? 0 : 1), zero = operand(c, node, is_gt ? 1 : 0);
    if (new_node(c, x)->dtype != TP_F32 || !is_zero(c, zero)) return TP_NO_NODE;
    const tp_node_id relu = find_relu(c, x);
    if (relu == TP_NO_NODE) return TP_NO_NODE;
    const tp_node_id rounded = find_bf16(c, relu);
    if (rounded == TP_NO_NODE)
        return relu == x ? TP_NO_NODE : tp_op_compare(c->to, "GT", relu, zero);
    return tp_op_compare(c->to, "GT", rounded, tp_op_fill(c->to, TP_BF16, node->shape, 0));
}

/* ---- constants ---- */

static tp_node_id simplify_constant(canonical *c, const tp_node *node)
{
    const int64_t elems = tp_shape_elems(&node->shape);
    if (elems < 2) return TP_NO_NODE;
    const unsigned char *bytes = tp_node_attr(node, "value")->data;
    const size_t size = tp_dtype_size(node->dtype);
    if (memcmp(bytes, bytes + size, size * (size_t)(elems - 1)) != 0) return TP_NO_NODE;
    const tp_shape scalar = {0};
    const tp_node_id value = tp_op_constant(c->to, node->dtype, scalar, bytes);
    if (value == TP_NO_NODE) return TP_NO_NODE;
    return tp_op_broadcast_in_dim(c->to, value, node->shape, NULL);
}

/* Computes an element-wise op whose operands are all one value, with the op's own evaluation. */
static tpucl_status fold(canonical *c, const tp_node *node, tp_node_id *out_new)
{
    *out_new = TP_NO_NODE;
    if (node->def->op_class != TP_OP_ELEMENTWISE || !node->def->evaluate) return TPUCL_OK;
    const tp_shape scalar = {0};
    tp_host_tensor inputs[TP_MAX_INPUTS];
    uint32_t value = 0;
    for (int32_t i = 0; i < node->input_count; i++) {
        const tp_node *in = splat_of(c, operand(c, node, i));
        if (!in) return TPUCL_OK;
        union {
            const void *from;
            void *to;
        } data = {.from = tp_node_attr(in, "value")->data}; /* evaluation only reads it */
        inputs[i] = (tp_host_tensor){.dtype = in->dtype, .shape = scalar, .data = data.to};
    }
    tp_host_tensor out = {.dtype = node->dtype, .shape = scalar, .data = &value};
    const tp_eval_context context = {0};
    TP_TRY(node->def->evaluate(node, inputs, &context, &out));
    const tp_node_id folded = tp_op_constant(c->to, node->dtype, scalar, &value);
    TP_TRY(tp_graph_check(c->to));
    *out_new =
        node->shape.rank == 0 ? folded : tp_op_broadcast_in_dim(c->to, folded, node->shape, NULL);
    return TPUCL_OK;
}

/* ---- equal nodes ---- */

static uint32_t hash_node(const tp_node *node)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *p = node->def->name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    for (int32_t i = 0; i < node->input_count; i++)
        hash = (hash ^ (uint32_t)node->inputs[i]) * 16777619u;
    return hash % 1024u;
}

static bool are_equal(const tp_node *a, const tp_node *b)
{
    return a->def == b->def && a->dtype == b->dtype && a->input_count == b->input_count &&
           memcmp(a->inputs, b->inputs, (size_t)a->input_count * sizeof a->inputs[0]) == 0 &&
           tp_shape_equal(&a->shape, &b->shape) &&
           tp_attrs_equal(a->attrs, a->attr_count, b->attrs, b->attr_count);
}

/* Takes notice of all nodes added since the last call; for the last of them, an equal earlier one. */
static tpucl_status merge_equal(canonical *c, tp_node_id id, tp_node_id *out_id)
{
    *out_id = id;
    const int32_t count = c->to->node_count;
    if (count > c->previous_count) {
        tp_node_id *grown = tp_alloc_grow(c->previous, (size_t)c->previous_count,
                                          (size_t)count + 256, sizeof *grown);
        if (!grown) return TPUCL_OUT_OF_MEMORY;
        c->previous = grown;
    }
    for (tp_node_id n = c->previous_count; n < count; n++) {
        const tp_node *node = new_node(c, n);
        const uint32_t bucket = hash_node(node);
        if (is_op(node, "input") || is_op(node, "variable")) continue;
        tp_node_id equal = c->buckets[bucket];
        while (equal != TP_NO_NODE && !are_equal(new_node(c, equal), node))
            equal = c->previous[equal];
        if (equal != TP_NO_NODE) {
            if (n == id) *out_id = equal;
            continue; /* the later one is not offered again */
        }
        c->previous[n] = c->buckets[bucket];
        c->buckets[bucket] = n;
    }
    c->previous_count = count;
    return TPUCL_OK;
}

/* ---- the walk ---- */

static tpucl_status simplify(canonical *c, const tp_node *node, tp_node_id *out_new)
{
    *out_new = TP_NO_NODE;
    if (is_identity(c, node))
        *out_new = operand(c, node, 0);
    else if (is_op(node, "reshape"))
        *out_new = simplify_reshape(c, node);
    else if (is_op(node, "convert"))
        *out_new = simplify_convert(c, node);
    else if (is_op(node, "gather"))
        *out_new = simplify_gather(c, node);
    else if (is_op(node, "compare"))
        *out_new = simplify_compare(c, node);
    else if (is_op(node, "constant"))
        *out_new = simplify_constant(c, node);
    if (*out_new == TP_NO_NODE) TP_TRY(fold(c, node, out_new));
    return tp_graph_check(c->to);
}

static tpucl_status rewrite_all(canonical *c)
{
    for (tp_node_id id = 0; id < c->from->node_count; id++) {
        if (!tp_rewrite_is_live(c->rewrite, id)) continue;
        const tp_node *node = tp_graph_node(c->from, id);
        tp_node_id new_id, merged;
        TP_TRY(simplify(c, node, &new_id));
        if (new_id == TP_NO_NODE) {
            new_id = tp_rewrite_copy(c->rewrite, id);
            TP_TRY(tp_graph_check(c->to));
        }
        TP_TRY(merge_equal(c, new_id, &merged));
        if (merged != tp_rewrite_of(c->rewrite, id)) tp_rewrite_map(c->rewrite, id, merged);
    }
    return TPUCL_OK;
}

tpucl_status tp_pass_canonical(const tp_graph *graph, tp_graph **out_graph)
{
    canonical *c = TP_NEW(canonical);
    tp_graph *rewritten = NULL;
    tpucl_status status;
    *out_graph = NULL;
    if (!c) return TPUCL_OUT_OF_MEMORY;
    c->from = graph;
    for (size_t i = 0; i < sizeof c->buckets / sizeof c->buckets[0]; i++)
        c->buckets[i] = TP_NO_NODE;
    TP_TRY_GOTO(status, tp_rewrite_begin(graph, &c->rewrite), done);
    c->to = tp_rewrite_graph(c->rewrite);
    TP_TRY_GOTO(status, rewrite_all(c), done);
    tp_rewrite *const finished = c->rewrite;
    c->rewrite = NULL;
    TP_TRY_GOTO(status, tp_rewrite_finish(finished, &rewritten), done);
    /* Nodes may have lost their last reader on the way. */
    TP_TRY_GOTO(status, tp_graph_compact(rewritten, out_graph), done);
done:
    tp_graph_destroy(rewritten);
    tp_rewrite_cancel(c->rewrite);
    tp_free(c->previous);
    tp_free(c);
    return status;
}
