/* SPDX-License-Identifier: Apache-2.0
 * Weight regularizers: see regularizer.h.
 */
#include "model/regularizer.h"

#include "graph/builder.h"

#define KERAS_FACTOR 0.01 /* of "l1", "l2" and "l1_l2" by name */
#define MOST 1e30

static const char *const names[] = {"l1", "l2", "l1_l2", "L1", "L2", "L1L2"};
enum { NAME_COUNT = sizeof names / sizeof *names, KINDS = 3 };

bool tp_regularizer_read(const tp_json *value, tp_problems *problems, tp_regularizer *out)
{
    static const char *const keys[] = {"type", "l1", "l2"};
    const tp_json *type = value;
    const size_t before = problems->count;
    *out = (tp_regularizer){0};
    if (value->kind == TP_JSON_NULL) return true;
    if (value->kind == TP_JSON_OBJECT &&
        !tp_problems_add_failed(problems, tp_json_require(value, "type", TP_JSON_STRING, &type)))
        return false;
    size_t index;
    if (!tp_problems_add_failed(problems, tp_json_as_choice(type, names, NAME_COUNT, &index)))
        return false;
    const bool has_l1 = index % KINDS != 1, has_l2 = index % KINDS != 0;
    /* Keras' L1L2 without arguments has both at 0, by name at 0.01. */
    const bool is_named = value->kind != TP_JSON_OBJECT || !(has_l1 && has_l2);
    if (has_l1 && is_named) out->l1 = KERAS_FACTOR;
    if (has_l2 && is_named) out->l2 = KERAS_FACTOR;
    if (value->kind != TP_JSON_OBJECT) return true;
    const char *const one[] = {"type", has_l1 ? "l1" : "l2"};
    const bool is_both = has_l1 && has_l2;
    tp_problems_add_failed(problems,
                           tp_json_check_keys(value, is_both ? keys : one, is_both ? 3 : 2));
    if (has_l1)
        tp_problems_add_failed(problems, tp_json_get_double(value, "l1", 0, MOST, &out->l1));
    if (has_l2)
        tp_problems_add_failed(problems, tp_json_get_double(value, "l2", 0, MOST, &out->l2));
    return problems->count == before;
}

/* The sum over all axes from `first` on. */
static tp_node_id penalty(tp_graph *graph, const tp_regularizer *regularizer, tp_node_id x,
                          int32_t first)
{
    tp_node_id sum = TP_NO_NODE;
    if (x == TP_NO_NODE || (regularizer->l1 == 0 && regularizer->l2 == 0)) return TP_NO_NODE;
    if (regularizer->l1 != 0)
        sum = tp_op_multiply_scalar(graph, tp_op_abs(graph, x), regularizer->l1);
    if (regularizer->l2 != 0) {
        const tp_node_id square = tp_op_multiply(graph, x, x);
        const tp_node_id l2 = tp_op_multiply_scalar(graph, square, regularizer->l2);
        sum = sum == TP_NO_NODE ? l2 : tp_op_add(graph, sum, l2);
    }
    int64_t axes[TP_MAX_RANK];
    const int32_t count = tp_graph_node(graph, x)->shape.rank - first;
    for (int32_t i = 0; i < count; i++)
        axes[i] = first + i;
    return count > 0 ? tp_op_reduce(graph, sum, "add", axes, count) : sum;
}

tp_node_id tp_regularizer_apply(tp_graph *graph, const tp_regularizer *regularizer, tp_node_id w)
{
    return penalty(graph, regularizer, w, 0);
}

tp_node_id tp_regularizer_per_example(tp_graph *graph, const tp_regularizer *regularizer,
                                      tp_node_id x)
{
    return penalty(graph, regularizer, x, 1);
}
