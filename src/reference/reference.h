/* SPDX-License-Identifier: Apache-2.0
 * The numeric contract in plain C: runs a graph for N cores on the host, node by node. What it
 * computes is what every device, mapping and schedule must compute, bit by bit. It is written to
 * be believed, not to be fast; it still runs a small model in reasonable time.
 *
 * Cores form replica groups of `group_cores` neighbours; each group has its own copy of the
 * variables, and all_reduce sums over one group, by the balanced tree over its cores in order. A
 * step evaluates every live node in id order, once per group where it is replicated, else once per
 * core; then variables take their updates.
 *
 * Thread-compatible. */
#ifndef TP_REFERENCE_REFERENCE_H
#define TP_REFERENCE_REFERENCE_H

#include "graph/opdef.h"

typedef struct tp_reference tp_reference;

typedef struct tp_reference_options {
    int32_t cores;       /* 1 or more */
    int32_t group_cores; /* cores of one replica group; divides `cores`; 0: all of them */
    uint64_t seed;       /* of initial values and random ops */
} tp_reference_options;

/* Borrows the graph, which must pass tp_graph_verify() and outlive the interpreter. Variables get
 * their initial values. */
tpucl_status tp_reference_create(const tp_graph *graph, const tp_reference_options *options,
                                 tp_reference **out_reference) TPUCL_MUST_CHECK;
void tp_reference_destroy(tp_reference *reference);

/* One step. inputs[core * graph->input_count + i]: the elements of input i for that core,
 * row-major, in its dtype; subnormals are flushed on the way in. `step` keys random ops and is
 * what `step` nodes give. When it fails, variables keep the values from before. */
tpucl_status tp_reference_step(tp_reference *reference, const void *const *inputs,
                               uint32_t step) TPUCL_MUST_CHECK;

/* Output i of the last step as `core` sees it: borrowed, valid until the next step. NULL before
 * the first step. For a replicated output all cores of a group see the same tensor. */
const tp_host_tensor *tp_reference_output(const tp_reference *reference, int32_t core,
                                          int32_t output);

/* Variable i (index into graph->variables) of a replica group; its elements may be written between
 * steps. */
tp_host_tensor *tp_reference_variable(tp_reference *reference, int32_t group, int32_t variable);

/* Gives the variables of `to` the values of those of the same name in `from` (training to
 * evaluation). Both need the same number of groups; TPUCL_NOT_FOUND when `from` lacks one,
 * TPUCL_INVALID_ARGUMENT when types differ. */
tpucl_status tp_reference_copy_variables(const tp_reference *from,
                                         tp_reference *to) TPUCL_MUST_CHECK;

/* Evaluates one node for one core: the op's rule, with `inputs` in host memory; out->data is
 * allocated by the caller. For tests of single ops and kernels. */
tpucl_status tp_reference_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                   const tp_eval_context *context,
                                   tp_host_tensor *out) TPUCL_MUST_CHECK;

#endif
