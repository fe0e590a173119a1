/* SPDX-License-Identifier: Apache-2.0
 * The gradient of a loop is a second loop, whose turn t does what belongs to turn length - 1 - t of the
 * first (Werbos, "Backpropagation through time: what it does and how to do it", 1990). In it each
 * differentiated node has a *twin*: the same op on the *values* that its operands had. Twins exist so that
 * gradients can be asked of them; most are dead, because few gradients look at a result.
 *
 * Where a value comes from: a slice is sliced again. A result that is dear (a product, a reduction, a
 * carry, an exponential function) is stacked by the first loop. Cheap ones are their twins, computed again. A cheap node that is
 * the only reader of a dear one is dear itself, so that x w + h u + b is kept once and not as its parts. */
#include "core/alloc.h"
#include "graph/attrs.h"
#include "graph/autodiff_internal.h"
#include "graph/builder.h"
#include "graph/loop.h"
#include "graph/rewrite.h"
#include "graph/weight.h"

/* From here on storing a value, and reading it again, is less work than computing it again: an f32 written and read
 * is 8 bytes of traffic, on CPUs about as many vector operations of 16. Measured: a turn of an LSTM's gradient. */
#define DEAR_WEIGHT 20

typedef struct loop_gradient {
    tp_autodiff *ad;
    tp_graph *graph;
    int32_t loop, back; /* the loop, and that of its gradient */
    int64_t length;
    bool is_reversed;    /* the loop goes through its sequence from the end */
    int32_t *uses;       /* per node, like all that follow */
    tp_node_id *twins;   /* TP_NO_NODE: not made yet */
    tp_node_id *values;  /* in a turn of the gradient's loop */
    tp_node_id *stacks;  /* of the loop, in the order of its sequence */
    tp_node_id *carries; /* of a carry: the gradient of what it becomes, from the turn after */
    tp_node_id *inner;   /* gradients in a turn; of nodes outside: the turn's part */
} loop_gradient;

static const tp_node *node_at(const loop_gradient *lg, tp_node_id id)
{
    return &lg->graph->nodes[id];
}

/* ---- values of the loop's turns ---- */

static bool is_cheap(const tp_node *node)
{
    switch (node->def->op_class) {
    case TP_OP_ELEMENTWISE:
    case TP_OP_BROADCAST:
    case TP_OP_RESHAPE:
    case TP_OP_REINDEX:
        return true;
    default:
        return false;
    }
}

/* Is the value kept for the gradient, rather than computed again? */
static bool is_dear(const loop_gradient *lg, tp_node_id id)
{
    const tp_node *node = node_at(lg, id);
    if (!node->loop || node->def->loop_part == TP_LOOP_SLICE) return false;
    if (!is_cheap(node)) return true;
    if (node->def->op_class != TP_OP_ELEMENTWISE) return false;
    if (tp_op_weight(node) >= DEAR_WEIGHT) return true;
    for (int32_t i = 0; i < node->input_count; ++i)
        if (lg->uses[node->inputs[i]] == 1 && is_dear(lg, node->inputs[i])) return true;
    return false;
}

/* [length, ...]: the values of all turns, in the order of the loop's sequence. */
static tp_node_id stack_of(loop_gradient *lg, tp_node_id id)
{
    tp_node_id *stack = &lg->stacks[id];
    const tp_node node = *node_at(lg, id);
    if (*stack != TP_NO_NODE) return *stack;
    const bool is_whole = node.def->loop_part == TP_LOOP_SLICE &&
                          (tp_node_attr_int(&node, "reverse", 0) != 0) == lg->is_reversed;
    if (is_whole)
        *stack = node.inputs[0];
    else if (tp_node_is(&node, "convert")) /* is done by whoever packs the operand of a product */
        *stack = tp_op_convert(lg->graph, stack_of(lg, node.inputs[0]), node.dtype);
    else
        *stack = tp_op_loop_stack(lg->graph, lg->loop, id, lg->is_reversed);
    return *stack;
}

static tp_node_id value_of(loop_gradient *lg, tp_node_id id);

static tp_node_id twin_of(loop_gradient *lg, tp_node_id id)
{
    if (lg->twins[id] != TP_NO_NODE) return lg->twins[id];
    const tp_node node = *node_at(lg, id);
    tp_node_id inputs[TP_MAX_INPUTS];
    for (int32_t i = 0; i < node.input_count; ++i)
        inputs[i] = value_of(lg, node.inputs[i]);
    lg->twins[id] = tp_graph_add(lg->graph, node.def->name, inputs, node.input_count, node.attrs,
                                 node.attr_count);
    return lg->twins[id];
}

static tp_node_id value_of(loop_gradient *lg, tp_node_id id)
{
    tp_node_id *value = &lg->values[id];
    const tp_node node = *node_at(lg, id);
    if (!node.loop) return id;
    if (*value != TP_NO_NODE) return *value;
    if (node.def->loop_part == TP_LOOP_SLICE)
        *value = tp_op_loop_slice(lg->graph, lg->back, node.inputs[0],
                                  !tp_node_attr_int(&node, "reverse", 0));
    else if (is_dear(lg, id))
        *value = tp_op_loop_slice(lg->graph, lg->back, stack_of(lg, id), !lg->is_reversed);
    else
        *value = twin_of(lg, id);
    return *value;
}

/* ---- where gradients enter and leave ---- */

/* What a result of the loop says about the value in it. */
static tp_node_id gradient_of_result(loop_gradient *lg, tp_node_id id)
{
    tp_graph *graph = lg->graph;
    const tp_node node = *node_at(lg, id);
    tp_node_id d = lg->ad->gradients[id];
    if (node.def->loop_part == TP_LOOP_STACK) {
        if (d == TP_NO_NODE) return d;
        return tp_op_loop_slice(graph, lg->back, d, !tp_node_attr_int(&node, "reverse", 0));
    }
    const tp_node_id carry = node.inputs[0];
    if (!lg->ad->is_active[carry]) return TP_NO_NODE;
    d = d == TP_NO_NODE ? tp_op_fill(graph, TP_F32, node.shape, 0)
                        : tp_op_convert(graph, d, TP_F32);
    lg->carries[carry] = tp_op_loop_carry(graph, lg->back, lg->length, d);
    return lg->carries[carry];
}

static void leave_by_slice(loop_gradient *lg, tp_node_id id)
{
    const tp_node node = *node_at(lg, id);
    if (lg->inner[id] == TP_NO_NODE || !lg->ad->is_active[node.inputs[0]]) return;
    const tp_node_id d = tp_op_loop_stack(lg->graph, lg->back, lg->inner[id],
                                          !tp_node_attr_int(&node, "reverse", 0));
    tp_autodiff_accumulate(lg->graph, node.inputs[0], d, lg->ad->gradients);
}

static void leave_by_carry(loop_gradient *lg, tp_node_id id)
{
    tp_graph *graph = lg->graph;
    const tp_node node = *node_at(lg, id);
    const tp_node_id carry = lg->carries[id];
    if (carry == TP_NO_NODE) return;
    const tp_node_id d = lg->inner[id] == TP_NO_NODE ? tp_op_fill(graph, TP_F32, node.shape, 0)
                                                     : tp_op_convert(graph, lg->inner[id], TP_F32);
    const tp_node_id last = tp_op_loop_last(graph, carry, d);
    if (lg->ad->is_active[node.inputs[0]])
        tp_autodiff_accumulate(graph, node.inputs[0], last, lg->ad->gradients);
}

/* The turns' parts of the gradient of a node outside, added up. */
static void leave_by_sum(loop_gradient *lg, tp_node_id id)
{
    tp_graph *graph = lg->graph;
    const tp_shape shape = node_at(lg, id)->shape;
    const tp_node_id zeros = tp_op_fill(graph, TP_F32, shape, 0);
    const tp_node_id sum = tp_op_loop_carry(graph, lg->back, lg->length, zeros);
    const tp_node_id next = tp_op_add(graph, sum, tp_op_convert(graph, lg->inner[id], TP_F32));
    tp_autodiff_accumulate(graph, id, tp_op_loop_last(graph, sum, next), lg->ad->gradients);
}

/* ---- products with what is outside ---- */

/* Is the gradient of the right operand one product for all turns? */
static bool is_joined_product(const loop_gradient *lg, const tp_node *node)
{
    int32_t batch_count;
    if (!tp_node_is(node, "dot_general")) return false;
    tp_node_attr_ints(node, "lhs_batching_dimensions", &batch_count);
    return batch_count == 0 && node_at(lg, node->inputs[0])->loop &&
           !node_at(lg, node->inputs[1])->loop &&
           node_at(lg, node->inputs[0])->shape.rank < TP_MAX_RANK && node->shape.rank < TP_MAX_RANK;
}

/* A value of the gradient's loop for all turns, in the order of the first loop's sequence. */
static tp_node_id stack_back(loop_gradient *lg, tp_node_id d)
{
    const tp_node node = *node_at(lg, d);
    if (tp_node_is(&node, "convert") && tp_dtype_is_float(node_at(lg, node.inputs[0])->dtype))
        return tp_op_convert(lg->graph, stack_back(lg, node.inputs[0]), node.dtype);
    return tp_op_loop_stack(lg->graph, lg->back, d, !lg->is_reversed);
}

/* The turns become one more free dimension of the left operand: sum over turns of lhs^T d is
 * stack(lhs)^T stack(d). */
static void join_product(loop_gradient *lg, const tp_node *node, tp_node_id d)
{
    tp_graph *graph = lg->graph;
    tp_dot_dims dims = {0};
    const int64_t *lhs =
        tp_node_attr_ints(node, "lhs_contracting_dimensions", &dims.contract_count);
    const int64_t *rhs =
        tp_node_attr_ints(node, "rhs_contracting_dimensions", &dims.contract_count);
    for (int32_t i = 0; i < dims.contract_count; ++i) {
        dims.lhs_contract[i] = lhs[i] + 1;
        dims.rhs_contract[i] = rhs[i];
    }
    tp_node_id d_inputs[TP_MAX_INPUTS] = {TP_NO_NODE, TP_NO_NODE};
    const tp_node_id all = stack_back(lg, d);
    const tp_node_id product =
        tp_op_dot_general(graph, stack_of(lg, node->inputs[0]), node->inputs[1], &dims,
                          tp_node_attr_text(node, "precision", "default"));
    if (graph->has_failed) return;
    node->def->gradient(graph, product, all, d_inputs);
    if (!graph->has_failed && d_inputs[1] != TP_NO_NODE)
        tp_autodiff_accumulate(graph, node->inputs[1], d_inputs[1], lg->ad->gradients);
}

/* ---- the walk ---- */

/* The gradient of a kept result looks at the twin of the op; what it looks at is there already, so that the twin is
 * not computed. */
static void look_at_value(loop_gradient *lg, tp_node_id twin, tp_node_id value, tp_node_id first)
{
    for (tp_node_id id = first; id < lg->graph->node_count; id++) {
        tp_node *node = &lg->graph->nodes[id];
        for (int32_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] == twin) node->inputs[i] = value;
    }
}

static void propagate(loop_gradient *lg, tp_node_id id)
{
    tp_graph *graph = lg->graph;
    const tp_node node = *node_at(lg, id);
    const bool *is_active = lg->ad->is_active;
    tp_node_id d = lg->inner[id], d_inputs[TP_MAX_INPUTS];
    if (d == TP_NO_NODE || !node.def->gradient) return;
    if (!tp_autodiff_hands_on_dtype(&node)) d = tp_op_convert(graph, d, node.dtype);
    const tp_node_id twin = twin_of(lg, id);
    for (int32_t i = 0; i < TP_MAX_INPUTS; ++i)
        d_inputs[i] = TP_NO_NODE;
    if (graph->has_failed) return;
    const tp_node_id value = tp_op_weight(&node) >= DEAR_WEIGHT ? value_of(lg, id) : twin;
    const tp_node_id first = graph->node_count;
    node.def->gradient(graph, twin, d, d_inputs);
    if (value != twin) look_at_value(lg, twin, value, first);
    if (!graph->has_failed && is_joined_product(lg, &node) && is_active[node.inputs[1]]) {
        join_product(lg, &node, d);
        d_inputs[1] = TP_NO_NODE;
    }
    for (int32_t i = 0; i < node.input_count && !graph->has_failed; ++i)
        if (d_inputs[i] != TP_NO_NODE && is_active[node.inputs[i]])
            tp_autodiff_accumulate(graph, node.inputs[i], d_inputs[i], lg->inner);
}

static void visit(loop_gradient *lg, tp_node_id id)
{
    const tp_node node = *node_at(lg, id);
    const char *old_scope = tp_autodiff_enter_scope(lg->graph, node.name);
    switch (node.def->loop_part) {
    case TP_LOOP_STACK:
    case TP_LOOP_LAST: {
        const tp_node_id value = node.inputs[node.def->loop_part == TP_LOOP_LAST ? 1 : 0];
        const tp_node_id d = gradient_of_result(lg, id);
        if (d != TP_NO_NODE && lg->ad->is_active[value])
            tp_autodiff_accumulate(lg->graph, value, d, lg->inner);
        break;
    }
    case TP_LOOP_SLICE:
        leave_by_slice(lg, id);
        break;
    case TP_LOOP_CARRY:
        leave_by_carry(lg, id);
        break;
    default:
        propagate(lg, id);
    }
    tp_graph_pop_scope(lg->graph, old_scope);
}

/* The way the loop goes through what it slices, or else stacks. */
static bool find_direction(const loop_gradient *lg)
{
    for (tp_node_id id = 0; id < lg->ad->node_count; ++id) {
        const tp_node *node = node_at(lg, id);
        if ((node->def->loop_part == TP_LOOP_SLICE || node->def->loop_part == TP_LOOP_STACK) &&
            tp_loop_unit(node) == lg->loop)
            return tp_node_attr_int(node, "reverse", 0) != 0;
    }
    return false;
}

static void walk(loop_gradient *lg)
{
    const int32_t count = lg->ad->node_count;
    tp_graph_count_uses(lg->graph, lg->uses);
    lg->length = tp_loop_length(lg->graph, lg->loop);
    lg->is_reversed = find_direction(lg);
    lg->back = tp_op_loop_new(lg->graph);
    for (tp_node_id id = 0; id < count; ++id)
        lg->twins[id] = lg->values[id] = lg->stacks[id] = lg->carries[id] = lg->inner[id] =
            TP_NO_NODE;
    for (tp_node_id id = count - 1; id >= 0 && !lg->graph->has_failed; --id)
        if (tp_loop_unit(node_at(lg, id)) == lg->loop) visit(lg, id);
    for (tp_node_id id = count - 1; id >= 0 && !lg->graph->has_failed; --id)
        if (lg->inner[id] != TP_NO_NODE && !node_at(lg, id)->loop) leave_by_sum(lg, id);
}

static bool has_gradient(const tp_autodiff *ad, int32_t loop)
{
    for (tp_node_id id = 0; id < ad->node_count; ++id)
        if (tp_loop_unit(&ad->graph->nodes[id]) == loop && ad->gradients[id] != TP_NO_NODE)
            return true;
    return false;
}

void tp_autodiff_loop(tp_autodiff *ad, int32_t loop)
{
    if (!has_gradient(ad, loop)) return;
    const size_t nodes = (size_t)ad->node_count;
    loop_gradient lg = {.ad = ad, .graph = ad->graph, .loop = loop};
    tp_node_id *arrays = TP_NEW_ARRAY(tp_node_id, 5 * nodes);
    lg.uses = TP_NEW_ARRAY(int32_t, (size_t)ad->graph->node_count);
    if (arrays && lg.uses) {
        lg.twins = arrays;
        lg.values = arrays + nodes;
        lg.stacks = arrays + 2 * nodes;
        lg.carries = arrays + 3 * nodes;
        lg.inner = arrays + 4 * nodes;
        walk(&lg);
    } else {
        tp_graph_keep_error(ad->graph);
    }
    tp_free(arrays);
    tp_free(lg.uses);
}
