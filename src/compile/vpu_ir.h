/* SPDX-License-Identifier: Apache-2.0
 * The body of a generated kernel as a list of values in SSA form, made by walking the graph from a
 * cluster's results to the tensors that it reads. Each value is one element: which one is said by
 * index forms over the kernel's loop variables (index.h). The same node asked for at the same index
 * is one value.
 *
 * The walk ends at stored nodes (loads), at constants, iota and random ops (recomputed), and at bound
 * nodes: values that the kernel has in a register already, such as the sum of a reduction or the
 * product of an MXU kernel.
 */
#ifndef TP_COMPILE_VPU_IR_H
#define TP_COMPILE_VPU_IR_H

#include "compile/index.h"
#include "core/arena.h"
#include "graph/graph.h"

typedef enum tp_vpu_kind {
    TP_VPU_LOAD,   /* element `index` of tensor `slot` */
    TP_VPU_CONST,  /* `text` */
    TP_VPU_INDEX,  /* the number `index`, as s32 */
    TP_VPU_STEP,   /* the step's number, as s32 */
    TP_VPU_BOUND,  /* the register `text` */
    TP_VPU_OP,     /* the expression `text` of `args` */
    TP_VPU_RANDOM, /* the expression `text` for element `index` */
    TP_VPU_CHOICE  /* args[0] where `guard`'s own condition holds, else args[1] */
} tp_vpu_kind;

/* lo <= form < hi and form % modulus == 0 (modulus 1: always), and the same for `parent` (-1: none). */
typedef struct tp_vpu_guard {
    int32_t parent;
    tp_ix form;
    int64_t lo, hi, modulus;
} tp_vpu_guard;

typedef struct tp_vpu_value {
    tp_vpu_kind kind;
    tp_dtype dtype;
    tp_node_id node;
    int32_t args[TP_MAX_INPUTS];
    int32_t arg_count;
    const char *text;
    tp_ix index;
    int32_t slot;
    int32_t guard; /* LOAD: only touched where it holds; CHOICE: chooses; -1: none */
    bool needs_flush;
} tp_vpu_value;

/* A tensor argument of the kernel. */
typedef struct tp_vpu_slot {
    tp_node_id node;
    tp_dtype dtype;
    bool is_stored_to;
} tp_vpu_slot;

typedef struct tp_vpu_store {
    int32_t value, slot;
    tp_ix index;
} tp_vpu_store;

typedef struct tp_vpu_ir {
    tp_arena *arena;
    const tp_graph *graph;
    const bool *is_stored; /* per node: it has memory of its own */
    bool *is_own_root;     /* per node: stored by this very kernel, so computed, never loaded */
    tp_ix_context *index;
    tp_vpu_value *values;
    int32_t value_count, value_capacity;
    tp_vpu_guard *guards;
    int32_t guard_count, guard_capacity;
    tp_vpu_slot *slots;
    int32_t slot_count, slot_capacity;
    tp_vpu_store *stores;
    int32_t store_count, store_capacity;
    int32_t *memo_head; /* per node: last memo entry, -1 */
    struct tp_vpu_memo *memo;
    int32_t memo_count, memo_capacity;
    bool uses_random, uses_step;
} tp_vpu_ir;

/* `is_stored` has graph->node_count entries and outlives the ir. All memory comes from `arena`. */
tpucl_status tp_vpu_ir_create(tp_arena *arena, const tp_graph *graph, const bool *is_stored,
                              tp_vpu_ir **out_ir);

/* From now on `node` at `tuple` is the register `text`. */
tpucl_status tp_vpu_ir_bind(tp_vpu_ir *ir, tp_node_id node, const tp_ix *tuple, const char *text,
                            int32_t *out_value);

/* The value of element `tuple` (one form per axis of the node's shape). */
tpucl_status tp_vpu_ir_eval(tp_vpu_ir *ir, tp_node_id node, const tp_ix *tuple, int32_t *out_value);

/* Evaluates `node` at `tuple` and stores it as element linearise(tuple) of its own tensor. */
tpucl_status tp_vpu_ir_store(tp_vpu_ir *ir, tp_node_id node, const tp_ix *tuple);

/* A value whose index is `number`: it is carried along when loops change, and printed by hand. */
tpucl_status tp_vpu_ir_number(tp_vpu_ir *ir, tp_ix number, int32_t *out_value);

/* Calls `visit` for every form that the kernel will print (indexes and guards). */
void tp_vpu_ir_visit_forms(tp_vpu_ir *ir, void (*visit)(void *user, tp_ix *inout_form), void *user);

#endif
