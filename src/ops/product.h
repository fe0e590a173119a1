/* SPDX-License-Identifier: Apache-2.0
 * What dot_general and the convolutions share.
 */
#ifndef TP_OPS_PRODUCT_H
#define TP_OPS_PRODUCT_H

#include "graph/opdef.h"

#define TP_PRODUCT_PRECISION_SPEC                                                                  \
    {                                                                                              \
        "precision", TP_ATTR_TEXT, true, "default|high|highest|f32",                               \
            "1, 3 or 6 bf16 passes, or f32 multiply-adds"                                          \
    }

/* Both f32 or bf16, in any mixture. */
tpucl_status tp_product_check_dtypes(const tp_node *node, tp_dtype a, tp_dtype b);

/* `id`, or what it widens from bf16: as the operand of a product they are the same. */
tp_node_id tp_product_operand(const tp_graph *graph, tp_node_id id);

/* Rows of A that an evaluation gathers before it multiplies: bounds scratch to 16 MiB or one row. */
int64_t tp_product_rows_at_once(int64_t m, int64_t k);

#endif
