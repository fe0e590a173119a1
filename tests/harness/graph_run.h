/* SPDX-License-Identifier: Apache-2.0
 * Runs a graph of a few nodes through the reference interpreter, on one core, with inputs from
 * golden_value(), and compares bits with golden arrays. Gradients: gradcheck.h.
 *
 *   graph_run run;
 *   graph_run_begin(&run);
 *   tp_node_id x = graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){3, 4});   stream 1, shape [3,4]
 *   graph_run_expect_bits(&run, tp_op_negate(run.graph, x), golden_negate, 12);
 *   graph_run_end(&run);
 */
#ifndef TESTS_HARNESS_GRAPH_RUN_H
#define TESTS_HARNESS_GRAPH_RUN_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden/golden.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/verify.h"
#include "harness/coverage.h"
#include "num/bf16.h"
#include "ops/registry.h"
#include "reference/reference.h"

#define EXPECT_OK(call)                                                                            \
    do {                                                                                           \
        const tpucl_status expect_ok_ = (call);                                                    \
        cr_assert(expect_ok_ == TPUCL_OK, "%s: %s\n%s", #call, tpucl_last_error()->message,        \
                  tpucl_last_error()->trail);                                                      \
    } while (0)

/* Fails with `status`, and the message holds `part`. */
#define EXPECT_FAILURE(call, status_, part)                                                        \
    do {                                                                                           \
        const tpucl_status expect_failure_ = (call);                                               \
        cr_assert(expect_failure_ == (status_), "%s: status %d", #call, (int)expect_failure_);     \
        cr_assert(strstr(tpucl_last_error()->message, (part)), "'%s' is not in: %s", (part),       \
                  tpucl_last_error()->message);                                                    \
    } while (0)

enum { GRAPH_RUN_INPUTS = 8 };

typedef struct graph_run {
    tp_graph *graph;
    void *data[GRAPH_RUN_INPUTS];
    int64_t elems[GRAPH_RUN_INPUTS];
    tp_host_tensor result; /* of the last evaluation; own copy */
} graph_run;

static inline void graph_run_begin(graph_run *run)
{
    *run = (graph_run){0};
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &run->graph));
}

static inline void graph_run_end(graph_run *run)
{
    tp_graph_destroy(run->graph);
    free(run->result.data);
    for (int i = 0; i < GRAPH_RUN_INPUTS; i++)
        free(run->data[i]);
}

static inline tp_node_id graph_run_input(graph_run *run, tp_dtype dtype, uint32_t seed, int rank,
                                         const int64_t *dims)
{
    const int32_t index = run->graph->input_count;
    tp_shape shape;
    char name[16];
    snprintf(name, sizeof name, "in%d", (int)index);
    EXPECT_OK(tp_shape_init(&shape, rank, dims));
    const int64_t elems = run->elems[index] = tp_shape_elems(&shape);
    run->data[index] = calloc((size_t)elems + 1, 4);
    for (int64_t i = 0; i < elems; i++) {
        const float value = golden_value(seed, (uint32_t)i);
        if (dtype == TP_BF16)
            ((tp_bf16 *)run->data[index])[i] = tp_bf16_from_f32(value);
        else if (dtype == TP_F32)
            ((float *)run->data[index])[i] = value;
    }
    return tp_graph_add_input(run->graph, name, dtype, shape);
}

/* Evaluates `node`, which becomes the graph's next output. The tensor is valid until the next call. */
static inline const tp_host_tensor *graph_run_eval(graph_run *run, tp_node_id node)
{
    const tp_reference_options options = {.cores = 1, .seed = 1};
    const int32_t index = run->graph->output_count;
    tp_reference *reference = NULL;
    char name[16];
    snprintf(name, sizeof name, "out%d", (int)index);
    EXPECT_OK(tp_graph_check(run->graph));
    tp_graph_add_output(run->graph, name, node);
    EXPECT_OK(tp_graph_verify(run->graph));
    EXPECT_OK(tp_reference_create(run->graph, &options, &reference));
    EXPECT_OK(tp_reference_step(reference, (const void *const *)run->data, 0));
    const tp_host_tensor *out = tp_reference_output(reference, 0, index);
    const size_t bytes = (size_t)tp_shape_bytes(&out->shape, out->dtype);
    free(run->result.data);
    run->result = *out;
    run->result.data = malloc(bytes + 1);
    memcpy(run->result.data, out->data, bytes);
    tp_reference_destroy(reference);
    return &run->result;
}

/* f32 bits, any NaN being as good as another; integers by value. */
static inline void graph_run_expect_bits(graph_run *run, tp_node_id node, const uint32_t *golden,
                                         int64_t count)
{
    const tp_host_tensor *out = graph_run_eval(run, node);
    cr_assert(tp_shape_elems(&out->shape) == count, "%lld elements, expected %lld",
              (long long)tp_shape_elems(&out->shape), (long long)count);
    const uint32_t *found = out->data;
    for (int64_t i = 0; i < count; i++) {
        const bool are_nan = out->dtype == TP_F32 && (found[i] & 0x7fffffffu) > 0x7f800000u &&
                             (golden[i] & 0x7fffffffu) > 0x7f800000u;
        cr_assert(found[i] == golden[i] || are_nan,
                  "element %lld is 0x%08x (%a), expected 0x%08x (%a)", (long long)i, found[i],
                  (double)tp_f32_from_bits(found[i]), golden[i],
                  (double)tp_f32_from_bits(golden[i]));
    }
    coverage_note("shape", tp_graph_node(run->graph, node)->def->name);
    coverage_note("golden", tp_graph_node(run->graph, node)->def->name);
    coverage_note_graph("reference", run->graph);
}

#endif
