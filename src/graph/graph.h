/* SPDX-License-Identifier: Apache-2.0
 * The graph: what ONE core computes in one step, as typed nodes with static shapes. It knows no
 * device.
 *
 * Nodes. Each node has one result (dtype, shape). Op names and meaning follow StableHLO where it
 * has the op. An id is an index into the graph; inputs always have smaller ids, so id order is a
 * topological order.
 *
 * State. A `variable` node reads a variable; an update says which node's value the variable gets
 * when the step ends. All reads see the value from before the step. Variables stand once per
 * replica group, not per core, so an update's value must be replicated (below).
 *
 * Replication. A node is *replicated* when it has the same value on every core of a replica group:
 * when all its inputs are, and it is not an `input`, a random op or otherwise core-dependent.
 * `all_reduce` makes a replicated value out of a per-core one. This cuts a step into phases:
 * replicated work before (e.g. bf16 copies of weights, once per device), per-core work, the
 * reduction, replicated work after it (the optimizer, once per device). See compile/ for how phases
 * become segments of a program.
 *
 * Errors. Builder calls return a node id; the first mistake is recorded in the graph and later
 * calls return TP_NO_NODE without doing anything, so that model code reads as mathematics.
 * tp_graph_check() reports it.
 *
 * Memory. Nodes, names and attributes live in the graph's arena. Thread-compatible.
 */
#ifndef TP_GRAPH_GRAPH_H
#define TP_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/status.h"
#include "num/dtype.h"
#include "num/init.h"
#include "num/shape.h"

typedef int32_t tp_node_id;
#define TP_NO_NODE ((tp_node_id)-1)
#define TP_MAX_INPUTS 8 /* concatenate takes more by chaining */

typedef enum tp_attr_kind {
    TP_ATTR_INT,
    TP_ATTR_FLOAT,
    TP_ATTR_INTS,
    TP_ATTR_TEXT,
    TP_ATTR_DATA
} tp_attr_kind;

typedef struct tp_attr {
    const char *name;
    tp_attr_kind kind;
    int64_t int_value;   /* INT */
    double float_value;  /* FLOAT; exact for every f32 */
    const int64_t *ints; /* INTS */
    const char *text;    /* TEXT */
    const void *data;    /* DATA: constant's elements, row-major, `data_bytes` long */
    uint64_t data_bytes;
    int32_t ints_count;
} tp_attr;

typedef struct tp_opdef tp_opdef; /* graph/opdef.h */

typedef struct tp_node {
    const tp_opdef *def;
    int32_t loop; /* the loop that it is computed in, each turn anew; 0: none. See graph/loop.h */
    tp_node_id inputs[TP_MAX_INPUTS];
    int32_t input_count;
    const tp_attr *attrs;
    int32_t attr_count;
    tp_dtype dtype;
    tp_shape shape;
    /* scope path for messages and traces: "dense_1/kernel"; never NULL, may be "" */
    const char *name;
} tp_node;

/* What an optimizer keeps beside a weight. */
typedef enum tp_variable_role {
    TP_ROLE_NONE,          /* of the model, or a scalar of the optimizer's */
    TP_ROLE_FIRST_MOMENT,  /* averages of gradients and of steps */
    TP_ROLE_SECOND_MOMENT, /* averages of their squares and magnitudes */
    TP_ROLE_AVERAGE        /* of the weight itself */
} tp_variable_role;

typedef struct tp_variable {
    const char *name; /* unique; "dense/kernel", "adam/dense/kernel/momentum" */
    tp_dtype dtype;
    tp_shape shape;
    tp_init_kind init;
    double init_a, init_b;
    bool is_trainable; /* gets a gradient */
    bool is_model;     /* part of the model (weights, moving statistics), not of the optimizer */
    tp_variable_role role; /* texts of graphs do not have it, nor slot_of */
    const char *slot_of;   /* name of the weight that it belongs to; NULL */
    tp_node_id node;       /* its `variable` node */
} tp_variable;

typedef struct tp_update {
    int32_t variable; /* index */
    tp_node_id value; /* replicated; same dtype and shape */
} tp_update;

/* A per-core tensor that the host feeds each step: [per-core batch, ...] or [] for a scalar. */
typedef struct tp_graph_input {
    const char *name;
    tp_node_id node;
} tp_graph_input;

typedef struct tp_graph_output {
    const char *name;
    tp_node_id node; /* replicated: one value per step (metrics); else one per core (predictions) */
} tp_graph_output;

/* The ops a graph may use: handed in at creation, so that graph/ never includes ops/. */
typedef struct tp_op_table {
    const tp_opdef *const *defs;
    int32_t count;
} tp_op_table;

typedef struct tp_graph {
    tp_arena *arena;
    const tp_op_table *ops;
    tp_node *nodes;
    int32_t node_count, node_capacity;
    tp_variable *variables;
    int32_t variable_count, variable_capacity;
    tp_update *updates;
    int32_t update_count, update_capacity;
    tp_graph_input *inputs;
    int32_t input_count, input_capacity;
    tp_graph_output *outputs;
    int32_t output_count, output_capacity;
    const char *scope;  /* prefix of names given to new nodes */
    int32_t loop_count; /* largest number of a loop so far */
    bool has_failed;
    tpucl_error first_error;
} tp_graph;

tpucl_status tp_graph_create(const tp_op_table *ops, tp_graph **out_graph);
void tp_graph_destroy(tp_graph *graph);

/* The first builder mistake, restored into this thread's record, or TPUCL_OK. */
tpucl_status tp_graph_check(const tp_graph *graph);

/* Adds a node: infers dtype and shape by the op's rule, copies attrs. TP_NO_NODE when it is wrong.
 */
tp_node_id tp_graph_add(tp_graph *graph, const char *op, const tp_node_id *inputs,
                        int32_t input_count, const tp_attr *attrs, int32_t attr_count);

tp_node_id tp_graph_add_input(tp_graph *graph, const char *name, tp_dtype dtype, tp_shape shape);
/* `name` gets the scope in front, `node` is filled in; the index of the variable is its position in
 * graph->variables. */
tp_node_id tp_graph_add_variable(tp_graph *graph, const tp_variable *variable);
/* Makes the entry for an `input` or `variable` node that exists already (copying, parsing): name,
 * dtype and shape are the node's, whatever *variable says. */
void tp_graph_register_input(tp_graph *graph, tp_node_id node);
void tp_graph_register_variable(tp_graph *graph, const tp_variable *variable);

/* Indexes into graph->variables, or -1. */
int32_t tp_graph_find_variable(const tp_graph *graph, const char *name);
int32_t tp_graph_variable_of(const tp_graph *graph, tp_node_id node);

void tp_graph_add_update(tp_graph *graph, tp_node_id variable, tp_node_id value);
void tp_graph_add_output(tp_graph *graph, const char *name, tp_node_id node);

/* Records a builder mistake (model code uses it, too); keeps the first. Returns TP_NO_NODE. */
tp_node_id tp_graph_fail(tp_graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes the thread's error record as a builder mistake (an allocation of the caller that failed);
 * keeps the first. Returns TP_NO_NODE. */
tp_node_id tp_graph_keep_error(tp_graph *graph);

/* Scopes nest: names of nodes and variables made inside get "name/" in front. Returns the old
 * scope, to be given to tp_graph_pop_scope. */
const char *tp_graph_push_scope(tp_graph *graph, const char *name);
void tp_graph_pop_scope(tp_graph *graph, const char *old_scope);

static inline const tp_node *tp_graph_node(const tp_graph *graph, tp_node_id id)
{
    return &graph->nodes[id];
}

/* Attribute look-up by name; the typed getters return `fallback` when the attribute is absent. */
const tp_attr *tp_node_attr(const tp_node *node, const char *name);
int64_t tp_node_attr_int(const tp_node *node, const char *name, int64_t fallback);
double tp_node_attr_float(const tp_node *node, const char *name, double fallback);
const char *tp_node_attr_text(const tp_node *node, const char *name, const char *fallback);
/* The numbers of an INTS attribute, borrowed, and how many; NULL and 0 when it is absent. */
const int64_t *tp_node_attr_ints(const tp_node *node, const char *name, int32_t *out_count);

/* Whether it is a node of this op. For what traits cannot say; prefer traits. */
bool tp_node_is(const tp_node *node, const char *op);

/* A loop is replicated as a whole or not at all. out_is_replicated: caller's array of
 * graph->node_count. */
void tp_graph_mark_replicated(const tp_graph *graph, bool *out_is_replicated);

#endif
