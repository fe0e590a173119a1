/* SPDX-License-Identifier: Apache-2.0
 * What the files of graph cases share: helpers of their builders, and the builders that the list takes from
 * graph_cases_model.c. Each gives a checked graph that the caller destroys. */
#ifndef TP_VERIFY_GRAPH_CASES_INTERNAL_H
#define TP_VERIFY_GRAPH_CASES_INTERNAL_H

#include "graph/graph.h"

/* Of up to four dimensions; what is past `rank` is not read. */
static inline tp_shape shape_of(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const tp_shape shape = {.rank = rank, .dims = {a, b, c, d}};
    return shape;
}

/* Hands out a graph that is right; destroys one that is not, and says why. */
tpucl_status tp_graph_case_finish(tp_graph *graph, tp_graph **out_graph);

tpucl_status tp_graph_case_branch(tp_graph **out_graph);
tpucl_status tp_graph_case_dense_bf16(tp_graph **out_graph);
tpucl_status tp_graph_case_dense_f32(tp_graph **out_graph);
tpucl_status tp_graph_case_conv_bf16(tp_graph **out_graph);
tpucl_status tp_graph_case_conv_f32(tp_graph **out_graph);
tpucl_status tp_graph_case_conv_pure(tp_graph **out_graph);
tpucl_status tp_graph_case_optimizers(tp_graph **out_graph);
tpucl_status tp_graph_case_losses(tp_graph **out_graph);
tpucl_status tp_graph_case_metrics(tp_graph **out_graph);

#endif
