/* SPDX-License-Identifier: Apache-2.0
 * From graph nodes to values. One function per class of op says how an element of its result is made
 * of elements of its operands.
 */
#include "compile/vpu_ir.h"

#include <inttypes.h>
#include <string.h>
#include "graph/attrs.h"
#include "graph/hex_float.h"
#include "num/bf16.h"

typedef struct tp_vpu_memo {
    int32_t next; /* of the same node */
    int32_t value, guard;
    tp_ix tuple[TP_MAX_RANK];
} tp_vpu_memo;

static tpucl_status grow(tp_arena *arena, void *inout_items, int32_t count, int32_t *inout_capacity,
                         size_t size)
{
    if (count < *inout_capacity) return TPUCL_OK;
    void *items;
    memcpy(&items, inout_items, sizeof items);
    const int32_t capacity = *inout_capacity ? *inout_capacity * 2 : 32;
    void *bigger = tp_arena_alloc_array(arena, (size_t)capacity, size);
    if (!bigger) return TPUCL_OUT_OF_MEMORY;
    if (count > 0) memcpy(bigger, items, (size_t)count * size);
    memcpy(inout_items, &bigger, sizeof bigger);
    *inout_capacity = capacity;
    return TPUCL_OK;
}

tpucl_status tp_vpu_ir_create(tp_arena *arena, const tp_graph *graph, const bool *is_stored,
                              tp_vpu_ir **out_ir)
{
    tp_vpu_ir *ir = TP_ARENA_NEW(arena, tp_vpu_ir);
    if (!ir) return TPUCL_OUT_OF_MEMORY;
    ir->arena = arena;
    ir->graph = graph;
    ir->is_stored = is_stored;
    const size_t nodes = (size_t)graph->node_count;
    ir->is_own_root = TP_ARENA_NEW_ARRAY(arena, bool, nodes);
    ir->memo_head = TP_ARENA_NEW_ARRAY(arena, int32_t, nodes);
    if (!ir->is_own_root || !ir->memo_head) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < nodes; i++)
        ir->memo_head[i] = -1;
    TP_TRY(tp_ix_context_create(arena, &ir->index));
    *out_ir = ir;
    return TPUCL_OK;
}

static tpucl_status add_value(tp_vpu_ir *ir, const tp_vpu_value *value, int32_t *out_value)
{
    TP_TRY(grow(ir->arena, &ir->values, ir->value_count, &ir->value_capacity, sizeof *value));
    ir->values[ir->value_count] = *value;
    *out_value = ir->value_count++;
    return TPUCL_OK;
}

static tpucl_status add_guard(tp_vpu_ir *ir, const tp_vpu_guard *guard, int32_t *out_guard)
{
    for (int32_t i = 0; i < ir->guard_count; i++) {
        const tp_vpu_guard *other = &ir->guards[i];
        if (other->parent == guard->parent && other->form == guard->form &&
            other->lo == guard->lo && other->hi == guard->hi && other->modulus == guard->modulus) {
            *out_guard = i;
            return TPUCL_OK;
        }
    }
    TP_TRY(grow(ir->arena, &ir->guards, ir->guard_count, &ir->guard_capacity, sizeof *guard));
    ir->guards[ir->guard_count] = *guard;
    *out_guard = ir->guard_count++;
    return TPUCL_OK;
}

static tpucl_status slot_of(tp_vpu_ir *ir, tp_node_id node, bool is_store, int32_t *out_slot)
{
    for (int32_t i = 0; i < ir->slot_count; i++)
        if (ir->slots[i].node == node) {
            ir->slots[i].is_stored_to |= is_store;
            *out_slot = i;
            return TPUCL_OK;
        }
    TP_TRY(grow(ir->arena, &ir->slots, ir->slot_count, &ir->slot_capacity, sizeof *ir->slots));
    ir->slots[ir->slot_count] = (tp_vpu_slot){
        .node = node, .dtype = ir->graph->nodes[node].dtype, .is_stored_to = is_store};
    *out_slot = ir->slot_count++;
    return TPUCL_OK;
}

static tpucl_status remember(tp_vpu_ir *ir, tp_node_id node, const tp_ix *tuple, int32_t guard,
                             int32_t value)
{
    TP_TRY(grow(ir->arena, &ir->memo, ir->memo_count, &ir->memo_capacity, sizeof *ir->memo));
    tp_vpu_memo *memo = &ir->memo[ir->memo_count];
    memo->next = ir->memo_head[node];
    memo->value = value;
    memo->guard = guard;
    memcpy(memo->tuple, tuple, (size_t)ir->graph->nodes[node].shape.rank * sizeof *tuple);
    ir->memo_head[node] = ir->memo_count++;
    return TPUCL_OK;
}

static bool recall(const tp_vpu_ir *ir, tp_node_id node, const tp_ix *tuple, int32_t guard,
                   int32_t *out_value)
{
    const size_t bytes = (size_t)ir->graph->nodes[node].shape.rank * sizeof *tuple;
    for (int32_t m = ir->memo_head[node]; m >= 0; m = ir->memo[m].next) {
        /* What was computed without a guard is good under every guard. */
        if (ir->memo[m].guard != guard && ir->memo[m].guard != -1) continue;
        if (memcmp(ir->memo[m].tuple, tuple, bytes) != 0) continue;
        *out_value = ir->memo[m].value;
        return true;
    }
    return false;
}

static tpucl_status eval(tp_vpu_ir *ir, tp_node_id node, const tp_ix *tuple, int32_t guard,
                         int32_t *out_value);

/* ---- sources ---- */

static const char *literal(tp_arena *arena, tp_dtype dtype, const void *data)
{
    uint32_t bits = 0;
    switch (dtype) {
    case TP_F32:
        memcpy(&bits, data, sizeof bits);
        break;
    case TP_BF16: {
        uint16_t half;
        memcpy(&half, data, sizeof half);
        bits = (uint32_t)half << 16;
        break;
    }
    case TP_S32: {
        int32_t value;
        memcpy(&value, data, sizeof value);
        /* INT_MIN has no literal of its own */
        if (value == INT32_MIN) return "(VI)(-2147483647 - 1)";
        return tp_arena_printf(arena, "(VI)(%" PRId32 ")", value);
    }
    case TP_U32:
        memcpy(&bits, data, sizeof bits);
        return tp_arena_printf(arena, "(VU)(%" PRIu32 "u)", bits);
    case TP_U8:
        return tp_arena_printf(arena, "(VU)(%uu)", (unsigned)*(const uint8_t *)data);
    case TP_PRED:
    default:
        return *(const uint8_t *)data ? "(VI)(-1)" : "(VI)(0)";
    }
    const float value = tp_f32_from_bits(bits);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return tp_arena_printf(arena, "(VF)(as_float(0x%08xu))", (unsigned)bits);
    char text[TP_HEX_FLOAT_BYTES];
    tp_hex_float_format((double)value, text);
    return tp_arena_printf(arena, "(VF)(%sf)", text);
}

static tpucl_status eval_source(tp_vpu_ir *ir, tp_node_id id, const tp_ix *tuple,
                                int32_t *out_value)
{
    const tp_node *node = tp_graph_node(ir->graph, id);
    tp_vpu_value value = {.dtype = node->dtype, .node = id, .guard = -1};
    if (strcmp(node->def->name, "constant") == 0) {
        value.kind = TP_VPU_CONST;
        value.text = literal(ir->arena, node->dtype, tp_node_attr(node, "value")->data);
        if (!value.text) return TPUCL_OUT_OF_MEMORY;
        return add_value(ir, &value, out_value);
    }
    if (strcmp(node->def->name, "step") == 0) {
        value.kind = TP_VPU_STEP;
        ir->uses_step = true;
        return add_value(ir, &value, out_value);
    }
    if (strcmp(node->def->name, "iota") == 0) {
        value.kind = TP_VPU_INDEX;
        value.index = tuple[tp_node_attr_int(node, "axis", 0)];
        value.dtype = TP_S32;
        int32_t number;
        TP_TRY(add_value(ir, &value, &number));
        *out_value = number;
        if (node->dtype == TP_S32) return TPUCL_OK;
        const tp_vpu_value convert = {.kind = TP_VPU_OP,
                                      .dtype = node->dtype,
                                      .node = id,
                                      .guard = -1,
                                      .args = {number},
                                      .arg_count = 1,
                                      .text = node->dtype == TP_U32 ? "VPU_AS_VU($0)"
                                                                    : "VPU_F_FROM_I($0)"};
        return add_value(ir, &convert, out_value);
    }
    return TP_FAIL(TPUCL_INTERNAL, "node %" PRId32 " (%s) has no memory and cannot be computed", id,
                   node->def->name);
}

/* ---- element-wise ---- */

static tpucl_status eval_elementwise(tp_vpu_ir *ir, tp_node_id id, const tp_ix *tuple,
                                     int32_t guard, int32_t *out_value)
{
    const tp_node *node = tp_graph_node(ir->graph, id);
    tp_vpu_value value = {.kind = TP_VPU_OP,
                          .dtype = node->dtype,
                          .node = id,
                          .guard = -1,
                          .arg_count = node->input_count,
                          .needs_flush = node->def->may_make_subnormal};
    for (int32_t i = 0; i < node->input_count; i++)
        TP_TRY(eval(ir, node->inputs[i], tuple, guard, &value.args[i]));
    value.text = node->def->vpu(ir->graph, node);
    if (!value.text) return tpucl_last_error()->status; /* the op has recorded why */
    return add_value(ir, &value, out_value);
}

static tpucl_status eval_random(tp_vpu_ir *ir, tp_node_id id, const tp_ix *tuple,
                                int32_t *out_value)
{
    const tp_node *node = tp_graph_node(ir->graph, id);
    ir->uses_random = true;
    const tp_vpu_value value = {.kind = TP_VPU_RANDOM,
                                .dtype = node->dtype,
                                .node = id,
                                .guard = -1,
                                .text = node->def->vpu(ir->graph, node),
                                .index = tp_ix_linearise(ir->index, &node->shape, tuple),
                                .needs_flush = node->def->may_make_subnormal};
    if (!value.text) return tpucl_last_error()->status;
    return add_value(ir, &value, out_value);
}

/* ---- moving elements ---- */

static tpucl_status eval_broadcast(tp_vpu_ir *ir, const tp_node *node, const tp_ix *tuple,
                                   int32_t guard, int32_t *out_value)
{
    const tp_node *operand = tp_graph_node(ir->graph, node->inputs[0]);
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    tp_ix inner[TP_MAX_RANK] = {0};
    for (int32_t i = 0; i < count; i++)
        inner[i] = operand->shape.dims[i] == 1 ? TP_IX_ZERO : tuple[axes[i]];
    return eval(ir, node->inputs[0], inner, guard, out_value);
}

static tpucl_status eval_reshape(tp_vpu_ir *ir, const tp_node *node, const tp_ix *tuple,
                                 int32_t guard, int32_t *out_value)
{
    const tp_node *operand = tp_graph_node(ir->graph, node->inputs[0]);
    tp_ix inner[TP_MAX_RANK] = {0};
    const tp_ix number = tp_ix_linearise(ir->index, &node->shape, tuple);
    tp_ix_delinearise(ir->index, &operand->shape, number, inner);
    return eval(ir, node->inputs[0], inner, guard, out_value);
}

static tpucl_status eval_transpose(tp_vpu_ir *ir, const tp_node *node, const tp_ix *tuple,
                                   int32_t guard, int32_t *out_value)
{
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    tp_ix inner[TP_MAX_RANK] = {0};
    for (int32_t i = 0; i < count; i++)
        inner[axes[i]] = tuple[i];
    return eval(ir, node->inputs[0], inner, guard, out_value);
}

static tpucl_status eval_slice(tp_vpu_ir *ir, const tp_node *node, const tp_ix *tuple,
                               int32_t guard, int32_t *out_value)
{
    int32_t count;
    const int64_t *start = tp_node_attr_ints(node, "start", &count);
    const int64_t *strides = tp_node_attr_ints(node, "strides", &count);
    tp_ix inner[TP_MAX_RANK] = {0};
    for (int32_t i = 0; i < count; i++)
        inner[i] = tp_ix_add(ir->index, tp_ix_scale(ir->index, tuple[i], strides[i]),
                             tp_ix_const(ir->index, start[i]));
    return eval(ir, node->inputs[0], inner, guard, out_value);
}

static tpucl_status eval_reverse(tp_vpu_ir *ir, const tp_node *node, const tp_ix *tuple,
                                 int32_t guard, int32_t *out_value)
{
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    tp_ix inner[TP_MAX_RANK] = {0};
    memcpy(inner, tuple, (size_t)node->shape.rank * sizeof *inner);
    for (int32_t i = 0; i < count; i++)
        inner[axes[i]] = tp_ix_add(ir->index, tp_ix_scale(ir->index, tuple[axes[i]], -1),
                                   tp_ix_const(ir->index, node->shape.dims[axes[i]] - 1));
    return eval(ir, node->inputs[0], inner, guard, out_value);
}

/* args[0] where `guard`'s last condition holds (evaluated under the whole guard), else args[1]. */
static tpucl_status add_choice(tp_vpu_ir *ir, const tp_node *node, int32_t guard, int32_t inside,
                               int32_t outside, int32_t *out_value)
{
    const tp_vpu_value value = {.kind = TP_VPU_CHOICE,
                                .dtype = node->dtype,
                                .node = (tp_node_id)(node - ir->graph->nodes),
                                .args = {inside, outside},
                                .arg_count = 2,
                                .guard = guard};
    return add_value(ir, &value, out_value);
}

/* Element i of an axis comes from (i - low) / (interior + 1), where that is a whole number below the
 * operand's dim. */
static tpucl_status eval_pad(tp_vpu_ir *ir, const tp_node *node, const tp_ix *tuple, int32_t guard,
                             int32_t *out_value)
{
    const tp_node *operand = tp_graph_node(ir->graph, node->inputs[0]);
    int32_t count;
    const int64_t *low = tp_node_attr_ints(node, "low", &count);
    const int64_t *interior = tp_node_attr_ints(node, "interior", &count);
    tp_ix inner[TP_MAX_RANK] = {0}, none[TP_MAX_RANK] = {0};
    int32_t guards[TP_MAX_RANK], guard_count = 0, inside_guard = guard;
    bool is_outside = tp_shape_elems(&operand->shape) == 0;
    for (int32_t i = 0; i < count; i++) {
        const int64_t step = interior[i] + 1;
        const tp_ix place = tp_ix_add(ir->index, tuple[i], tp_ix_const(ir->index, -low[i]));
        const int64_t end =
            operand->shape.dims[i] == 0 ? 0 : (operand->shape.dims[i] - 1) * step + 1;
        inner[i] = tp_ix_div(ir->index, place, step);
        const tp_ix_form *form = tp_ix_get(ir->index, place);
        if (form->lo >= 0 && form->hi < end && step == 1) continue;
        is_outside = is_outside || form->hi < 0 || form->lo >= end;
        const tp_vpu_guard own = {
            .parent = inside_guard, .form = place, .lo = 0, .hi = end, .modulus = step};
        TP_TRY(add_guard(ir, &own, &inside_guard));
        guards[guard_count++] = inside_guard;
    }
    int32_t value, outside;
    TP_TRY(eval(ir, node->inputs[1], none, guard, &outside));
    if (is_outside) {
        *out_value = outside;
        return TPUCL_OK;
    }
    TP_TRY(eval(ir, node->inputs[0], inner, inside_guard, &value));
    while (guard_count > 0)
        TP_TRY(add_choice(ir, node, guards[--guard_count], value, outside, &value));
    *out_value = value;
    return TPUCL_OK;
}

static tpucl_status eval_concatenate(tp_vpu_ir *ir, const tp_node *node, const tp_ix *tuple,
                                     int32_t guard, int32_t *out_value)
{
    const int64_t axis = tp_node_attr_int(node, "axis", 0);
    int32_t guards[TP_MAX_INPUTS] = {0}, values[TP_MAX_INPUTS], parts = 0;
    int64_t start = 0;
    for (int32_t i = 0; i < node->input_count; i++) {
        const int64_t dim = tp_graph_node(ir->graph, node->inputs[i])->shape.dims[axis];
        if (dim == 0) continue;
        tp_ix inner[TP_MAX_RANK] = {0};
        memcpy(inner, tuple, (size_t)node->shape.rank * sizeof *inner);
        inner[axis] = tp_ix_add(ir->index, tuple[axis], tp_ix_const(ir->index, -start));
        start += dim;
        const tp_ix_form *form = tp_ix_get(ir->index, inner[axis]);
        if (form->lo >= 0 && form->hi < dim)
            return eval(ir, node->inputs[i], inner, guard, out_value);
        if (form->hi < 0 || form->lo >= dim) continue;
        const tp_vpu_guard own = {
            .parent = guard, .form = inner[axis], .lo = 0, .hi = dim, .modulus = 1};
        TP_TRY(add_guard(ir, &own, &guards[parts]));
        TP_TRY(eval(ir, node->inputs[i], inner, guards[parts], &values[parts]));
        parts++;
    }
    if (parts == 0) return TP_FAIL(TPUCL_INTERNAL, "concatenate of nothing has no element");
    int32_t value = values[parts - 1];
    for (int32_t i = parts - 2; i >= 0; i--)
        TP_TRY(add_choice(ir, node, guards[i], values[i], value, &value));
    *out_value = value;
    return TPUCL_OK;
}

static tpucl_status eval_reindex(tp_vpu_ir *ir, const tp_node *node, const tp_ix *tuple,
                                 int32_t guard, int32_t *out_value)
{
    static const struct {
        const char *name;
        tpucl_status (*eval)(tp_vpu_ir *, const tp_node *, const tp_ix *, int32_t, int32_t *);
    } table[] = {{"transpose", eval_transpose},
                 {"slice", eval_slice},
                 {"reverse", eval_reverse},
                 {"pad", eval_pad},
                 {"concatenate", eval_concatenate}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(node->def->name, table[i].name) == 0)
            return table[i].eval(ir, node, tuple, guard, out_value);
    return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' has no index map in generated kernels",
                   node->def->name);
}

/* ---- the walk ---- */

static tpucl_status eval_load(tp_vpu_ir *ir, tp_node_id id, const tp_ix *tuple, int32_t guard,
                              int32_t *out_value)
{
    const tp_node *node = tp_graph_node(ir->graph, id);
    tp_vpu_value value = {.kind = TP_VPU_LOAD,
                          .dtype = node->dtype,
                          .node = id,
                          .guard = guard,
                          .index = tp_ix_linearise(ir->index, &node->shape, tuple)};
    TP_TRY(slot_of(ir, id, false, &value.slot));
    /* The same element by another tuple (through a reshape) is the same value. */
    for (int32_t i = 0; i < ir->value_count; i++) {
        const tp_vpu_value *other = &ir->values[i];
        if (other->kind == TP_VPU_LOAD && other->slot == value.slot &&
            other->index == value.index && other->guard == value.guard) {
            *out_value = i;
            return TPUCL_OK;
        }
    }
    return add_value(ir, &value, out_value);
}

static tpucl_status eval(tp_vpu_ir *ir, tp_node_id id, const tp_ix *tuple, int32_t guard,
                         int32_t *out_value)
{
    const tp_node *node = tp_graph_node(ir->graph, id);
    if (recall(ir, id, tuple, guard, out_value)) return TPUCL_OK;
    tpucl_status status = TPUCL_OK;
    bool is_guarded = true; /* does the value depend on the guard? */
    if (ir->is_stored[id] && !ir->is_own_root[id]) {
        status = eval_load(ir, id, tuple, guard, out_value);
    } else {
        switch (node->def->op_class) {
        case TP_OP_SOURCE:
            is_guarded = false;
            status = eval_source(ir, id, tuple, out_value);
            break;
        case TP_OP_RANDOM:
            is_guarded = false;
            status = eval_random(ir, id, tuple, out_value);
            break;
        case TP_OP_ELEMENTWISE:
            status = eval_elementwise(ir, id, tuple, guard, out_value);
            break;
        case TP_OP_BROADCAST:
            status = eval_broadcast(ir, node, tuple, guard, out_value);
            break;
        case TP_OP_RESHAPE:
            status = eval_reshape(ir, node, tuple, guard, out_value);
            break;
        case TP_OP_REINDEX:
            status = eval_reindex(ir, node, tuple, guard, out_value);
            break;
        default:
            status = TP_FAIL(TPUCL_INTERNAL, "'%s' (node %" PRId32 ") is not part of a VPU cluster",
                             node->def->name, id);
        }
    }
    TP_TRY(status);
    TP_TRY(tp_ix_check(ir->index));
    return remember(ir, id, tuple, is_guarded ? guard : -1, *out_value);
}

tpucl_status tp_vpu_ir_bind(tp_vpu_ir *ir, tp_node_id node, const tp_ix *tuple, const char *text,
                            int32_t *out_value)
{
    const tp_vpu_value value = {.kind = TP_VPU_BOUND,
                                .dtype = tp_graph_node(ir->graph, node)->dtype,
                                .node = node,
                                .guard = -1,
                                .text = text};
    TP_TRY(add_value(ir, &value, out_value));
    return remember(ir, node, tuple, -1, *out_value);
}

tpucl_status tp_vpu_ir_number(tp_vpu_ir *ir, tp_ix number, int32_t *out_value)
{
    const tp_vpu_value value = {
        .kind = TP_VPU_INDEX, .dtype = TP_S32, .node = TP_NO_NODE, .guard = -1, .index = number};
    return add_value(ir, &value, out_value);
}

tpucl_status tp_vpu_ir_eval(tp_vpu_ir *ir, tp_node_id node, const tp_ix *tuple, int32_t *out_value)
{
    return eval(ir, node, tuple, -1, out_value);
}

tpucl_status tp_vpu_ir_store(tp_vpu_ir *ir, tp_node_id node, const tp_ix *tuple)
{
    tp_vpu_store store;
    ir->is_own_root[node] = true;
    TP_TRY(eval(ir, node, tuple, -1, &store.value));
    TP_TRY(slot_of(ir, node, true, &store.slot));
    store.index = tp_ix_linearise(ir->index, &tp_graph_node(ir->graph, node)->shape, tuple);
    TP_TRY(grow(ir->arena, &ir->stores, ir->store_count, &ir->store_capacity, sizeof store));
    ir->stores[ir->store_count++] = store;
    return tp_ix_check(ir->index);
}

void tp_vpu_ir_visit_forms(tp_vpu_ir *ir, void (*visit)(void *user, tp_ix *inout_form), void *user)
{
    for (int32_t i = 0; i < ir->value_count; i++)
        visit(user, &ir->values[i].index);
    for (int32_t i = 0; i < ir->guard_count; i++)
        visit(user, &ir->guards[i].form);
    for (int32_t i = 0; i < ir->store_count; i++)
        visit(user, &ir->stores[i].index);
}
