/* SPDX-License-Identifier: Apache-2.0
 * The list of all ops, in the order of docs/ops.md. A new family is an include and a row. */
#include "ops/registry.h"

#include <string.h>

#include "ops/op_attention.h"
#include "ops/op_collective.h"
#include "ops/op_conv.h"
#include "ops/op_cumulative.h"
#include "ops/op_dot.h"
#include "ops/op_dynamic.h"
#include "ops/op_elementwise.h"
#include "ops/op_gather.h"
#include "ops/op_loop.h"
#include "ops/op_random.h"
#include "ops/op_reduce.h"
#include "ops/op_scatter.h"
#include "ops/op_shape.h"
#include "ops/op_sort.h"
#include "ops/op_source.h"
#include "ops/op_stop_gradient.h"
#include "ops/op_window.h"

#define ROW(op) &tp_opdef_##op,

static const tp_opdef *const own_ops[] = {
    TP_SOURCE_OPS(ROW)      /* op_source.c */
    TP_ELEMENTWISE_OPS(ROW) /* op_elementwise_*.c */
    ROW(stop_gradient)      /* op_stop_gradient.c */
    TP_SHAPE_OPS(ROW)       /* op_shape.c, op_shape_cut.c */
    ROW(dot_general)        /* op_dot.c */
    ROW(convolution) ROW(convolution_input_grad) ROW(convolution_filter_grad) /* op_conv.c */
    ROW(attention) ROW(attention_grad)  /* op_attention.c, op_attention_grad.c */
    ROW(reduce) ROW(argmax) ROW(argmin) /* op_reduce.c */
    ROW(reduce_window) ROW(select_and_scatter) ROW(reduce_window_grad) /* op_window.c */
    ROW(gather) ROW(scatter)                     /* op_gather.c, op_scatter.c */
    ROW(dynamic_slice) ROW(dynamic_update_slice) /* op_dynamic.c */
    ROW(cumulative)                              /* op_cumulative.c */
    ROW(sort) ROW(top_k)                         /* op_sort.c */
    TP_RANDOM_OPS(ROW)                           /* op_random.c */
    ROW(replica_id) ROW(all_reduce) ROW(all_gather) ROW(reduce_scatter) ROW(collective_permute)
        ROW(cross_replica_sum) /* op_collective.c */
    TP_LOOP_OPS(ROW)           /* op_loop.c */
};

enum { OWN_COUNT = sizeof own_ops / sizeof own_ops[0] };

/* Ours until the first op from outside, then a copy with those behind. */
static const tp_opdef *all_ops[OWN_COUNT + TP_OPS_MAX_EXTERNAL];
static tp_op_table table = {.defs = own_ops, .count = OWN_COUNT};

const tp_op_table *tp_ops_registry(void)
{
    return &table;
}

tpucl_status tp_ops_register(const tp_opdef *def)
{
    if (tp_op_table_find(&table, def->name))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "there is an op '%s' already", def->name);
    if (table.count == OWN_COUNT + TP_OPS_MAX_EXTERNAL)
        return TP_FAIL(TPUCL_UNSUPPORTED, "op '%s' is one more than the %d that may be registered",
                       def->name, TP_OPS_MAX_EXTERNAL);
    if (table.defs == own_ops) memcpy(all_ops, own_ops, sizeof own_ops);
    all_ops[table.count] = def;
    table.defs = all_ops;
    table.count++;
    return TPUCL_OK;
}
