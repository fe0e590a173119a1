/* SPDX-License-Identifier: Apache-2.0
 * What dot_general and the convolutions share: see product.h.
 */
#include "ops/product.h"

#include "graph/graph.h"

enum { MAX_SCRATCH_ELEMS = 4 << 20 };

tpucl_status tp_product_check_dtypes(const tp_node *node, tp_dtype a, tp_dtype b)
{
    if (tp_dtype_is_float(a) && tp_dtype_is_float(b)) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s of %s and %s: operands must be f32 or bf16",
                   node->def->name, tp_dtype_name(a), tp_dtype_name(b));
}

tp_node_id tp_product_operand(const tp_graph *graph, tp_node_id id)
{
    if (id == TP_NO_NODE) return id;
    const tp_node *node = tp_graph_node(graph, id);
    if (!tp_node_is(node, "convert") || node->dtype != TP_F32) return id;
    return tp_graph_node(graph, node->inputs[0])->dtype == TP_BF16 ? node->inputs[0] : id;
}

int64_t tp_product_rows_at_once(int64_t m, int64_t k)
{
    const int64_t fitting = MAX_SCRATCH_ELEMS / (k > 0 ? k : 1);
    const int64_t rows = fitting > 0 ? fitting : 1;
    return rows < m ? rows : m;
}
