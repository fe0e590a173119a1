/* SPDX-License-Identifier: Apache-2.0
 * Ops from outside, from the library's side: see include/tpucl/ext/op.h. */
#ifndef TP_API_OP_INTERNAL_H
#define TP_API_OP_INTERNAL_H

#include <tpucl/ext/op.h>
#include "api/graph_internal.h"
#include "graph/opdef.h"

/* A node's attributes, and the types of its operands and (index input_count) its result. */
struct tpucl_op_context {
    const tp_node *node;
    int32_t input_count;
    bool has_result;
    tp_dtype dtypes[TP_MAX_INPUTS + 1];
    tp_shape shapes[TP_MAX_INPUTS + 1];
};

/* An op made of others, by name; NULL when there is none. */
typedef struct tp_api_composite tp_api_composite;
const tp_api_composite *tp_api_composite_find(const char *name);
/* Its result in the graph; attributes and operands are checked first. */
tp_node_id tp_api_composite_apply(const tp_api_composite *composite, tpucl_graph *graph,
                                  const tp_node_id *inputs, int32_t input_count,
                                  const tp_attr *attrs, int32_t attr_count);

#endif
