/* SPDX-License-Identifier: Apache-2.0
 * Whole expressions: as they are, and as values of examples. The latter are first read in a graph of their own
 * whose batch is a prime number that no other axis has, so that whatever goes over the examples, or takes them
 * for something else, is seen there, for any batch of the run.
 */
#include "graph/builder.h"
#include "model/expression_internal.h"
#include "ops/registry.h"

tpucl_status tp_expression_build(tp_graph *graph, const char *what, const char *text,
                                 const tp_expression_name *names, int32_t name_count,
                                 tp_node_id *out_node)
{
    tp_expression e = {.graph = graph,
                       .what = what,
                       .text = text,
                       .next = text,
                       .names = names,
                       .name_count = name_count};
    return tp_expression_parse(&e, out_node);
}

tpucl_status tp_expression_keep_batch(const tp_expression *e, const char *at, tp_view function,
                                      const tp_shape *shape, int64_t axis)
{
    if (!e->batch || shape->dims[axis] != e->batch) return TPUCL_OK;
    return tp_expression_fail(e, at,
                              "'%.*s' goes over the examples of a batch (axis %lld), whose values "
                              "must not depend on each other%s",
                              TP_VIEW_ARGS(function), (long long)axis,
                              shape->rank > 1 ? "; name other axes: axis=-1" : "");
}

/* A size that no axis of the names has, with room for classes that are added. */
static int64_t odd_batch(const tp_graph *graph, const tp_expression_name *names, int32_t name_count)
{
    static const int64_t primes[] = {1009, 1013, 1019, 1021, 53, 59, 61, 67};
    enum { COUNT = sizeof primes / sizeof *primes, CLASSES = 4096 };
    for (int i = 0; i < COUNT; i++) {
        bool fits = true;
        for (int32_t j = 0; j < name_count; j++) {
            const tp_shape *shape = &tp_graph_node(graph, names[j].node)->shape;
            int64_t elems = primes[i];
            for (int32_t axis = 1; axis < shape->rank; axis++) {
                elems *= shape->dims[axis];
                fits = fits && shape->dims[axis] != primes[i];
            }
            fits = fits && elems < TP_MAX_ELEMS / CLASSES;
        }
        if (fits) return primes[i];
    }
    return primes[COUNT - 1];
}

/* Reads it in `scratch`, where the batch is odd. */
static tpucl_status try_out(tp_graph *scratch, const tp_graph *graph, const char *what,
                            const char *text, const tp_expression_name *names, int32_t name_count)
{
    enum { MOST = 8 };
    tp_expression_name odd[MOST];
    tp_node_id node;
    tp_expression e = {.graph = scratch,
                       .what = what,
                       .text = text,
                       .next = text,
                       .names = odd,
                       .name_count = name_count < MOST ? name_count : MOST,
                       .batch = odd_batch(graph, names, name_count)};
    for (int32_t i = 0; i < e.name_count; i++) {
        const tp_node *like = tp_graph_node(graph, names[i].node);
        tp_shape shape = like->shape;
        shape.dims[0] = e.batch;
        odd[i] = (tp_expression_name){
            names[i].name, tp_graph_add_input(scratch, names[i].name, like->dtype, shape)};
    }
    TP_TRY(tp_expression_parse(&e, &node));
    const tp_shape shape = tp_graph_node(scratch, node)->shape;
    if (shape.rank > 0 && shape.dims[0] == e.batch) return TPUCL_OK;
    if (shape.rank == 0)
        return tp_expression_fail(&e, text, "expected a value for each example, found one number");
    return tp_expression_fail(&e, text, "expected the examples of a batch as the first axis");
}

tpucl_status tp_expression_build_batched(tp_graph *graph, const char *what, const char *text,
                                         const tp_expression_name *names, int32_t name_count,
                                         tp_node_id *out_node)
{
    tp_graph *scratch = NULL;
    TP_TRY(tp_graph_check(graph));
    TP_TRY(tp_graph_create(tp_ops_registry(), &scratch));
    const tpucl_status status = try_out(scratch, graph, what, text, names, name_count);
    tp_graph_destroy(scratch);
    if (status != TPUCL_OK) return status;
    return tp_expression_build(graph, what, text, names, name_count, out_node);
}
