/* SPDX-License-Identifier: Apache-2.0
 * One layer without weights, called alone, in training or not; its result through the reference interpreter.
 */
#ifndef TESTS_UNIT_MODEL_LAYER_CALL_H
#define TESTS_UNIT_MODEL_LAYER_CALL_H

#include "model/layer.h"
#include "model_run.h"
#include "ops/registry.h"

typedef struct layer_call {
    bool is_training;
    int64_t batch;
    int rank;
    int64_t dims[4]; /* of an example */
    const float *image;
    uint32_t step;
} layer_call;

/* Into out_result, [batch, output...]; returns how many elements. */
static inline int64_t layer_call_run(const char *text, const layer_call *call, float *out_result)
{
    tp_json_document *document;
    tp_arena *arena;
    tp_graph *graph;
    tp_reference *reference;
    tp_layer layer;
    tp_shape example;
    tp_problems problems = {0};
    EXPECT_OK(tp_json_parse(text, strlen(text), "test.json", &document));
    EXPECT_OK(tp_arena_create(0, &arena));
    EXPECT_OK(tp_shape_init(&example, call->rank, call->dims));
    cr_assert(tp_layer_read(tp_json_root(document), arena, &problems, &layer), "%s", problems.text);
    layer.inputs = &example;
    layer.input_count = 1;
    layer.name = "layer";
    cr_assert(layer.type->infer(&layer, &problems), "%s", problems.text);

    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    int64_t stream = 3;
    const tp_node_id no_mask = TP_NO_NODE;
    tp_layer_losses losses = {0};
    tp_layer_context context = {.graph = graph,
                                .batch = call->batch,
                                .is_training = call->is_training,
                                .weight = TP_NO_NODE,
                                .dtype = TP_F32,
                                .precision = "f32",
                                .input_masks = &no_mask,
                                .losses = &losses,
                                .next_stream = &stream};
    tp_node_id outputs[TP_LAYER_MAX_OUTPUTS];
    const tp_node_id image =
        tp_graph_add_input(graph, "image", TP_F32, tp_layer_batched(&context, &example));
    tp_layer_call(&context, &layer, &image, outputs);
    tp_graph_add_output(graph, "result", outputs[0]);
    EXPECT_OK(tp_graph_verify(graph));

    const tp_reference_options options = {.cores = 1, .group_cores = 1, .seed = 7};
    EXPECT_OK(tp_reference_create(graph, &options, &reference));
    const void *in = call->image;
    EXPECT_OK(tp_reference_step(reference, &in, call->step));
    const tp_host_tensor *found = tp_reference_output(reference, 0, 0);
    const int64_t elems = tp_shape_elems(&found->shape);
    memcpy(out_result, found->data, (size_t)elems * sizeof(float));
    tp_reference_destroy(reference);
    tp_graph_destroy(graph);
    tp_arena_destroy(arena);
    tp_json_destroy(document);
    return elems;
}

#endif
