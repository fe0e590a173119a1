/* SPDX-License-Identifier: Apache-2.0
 * Builds a model from JSON text and runs its graphs through the reference interpreter.
 */
#ifndef TESTS_UNIT_MODEL_MODEL_RUN_H
#define TESTS_UNIT_MODEL_MODEL_RUN_H

#include "harness/graph_run.h"
#include "model/model.h"

static inline tpucl_status model_parse(const char *layers, const tp_model_input *input,
                                       const tp_model_options *options, tp_model **out_model)
{
    tp_json_document *document;
    char text[4096];
    snprintf(text, sizeof text, "{\"layers\": [%s]}", layers);
    EXPECT_OK(tp_json_parse(text, strlen(text), "test.json", &document));
    const tpucl_status status = tp_model_create(tp_json_root(document), input, options, out_model);
    tp_json_destroy(document);
    return status;
}

static const tp_model_options float32_options = {TP_POLICY_FLOAT32, TP_PRECISION_F32};
static const tp_model_options mixed_options = {TP_POLICY_MIXED_BFLOAT16, TP_PRECISION_DEFAULT};

static inline tp_model_input f32_input(int rank, const int64_t *dims)
{
    tp_model_input input = {.dtype = TP_F32};
    EXPECT_OK(tp_shape_init(&input.shape, rank, dims));
    return input;
}

static inline tp_model *model_of(const char *layers, tp_model_input input,
                                 const tp_model_options *options)
{
    tp_model *model = NULL;
    EXPECT_OK(model_parse(layers, &input, options, &model));
    return model;
}

/* A graph that runs on `cores` cores in groups of `group_cores`. */
typedef struct model_run {
    tp_graph *graph;
    tp_reference *reference;
    int32_t cores;
} model_run;

static inline model_run model_start(tp_graph *graph, int32_t cores, int32_t group_cores)
{
    model_run run = {.graph = graph, .cores = cores};
    const tp_reference_options options = {.cores = cores, .group_cores = group_cores, .seed = 7};
    EXPECT_OK(tp_graph_verify(graph));
    EXPECT_OK(tp_reference_create(graph, &options, &run.reference));
    return run;
}

static inline void model_stop(model_run *run)
{
    tp_reference_destroy(run->reference);
    tp_graph_destroy(run->graph);
}

static inline model_run train_start(const tp_model *model, int64_t batch, tp_model_loss loss,
                                    bool from_logits, const tp_optim_config *optimizer,
                                    const tp_cross_shard *cross_shard)
{
    tp_graph *graph = NULL;
    const tp_model_train train = {batch, loss, from_logits, optimizer, cross_shard};
    EXPECT_OK(tp_model_build_train(model, &train, &graph));
    const int64_t group = tp_cross_shard_group_size(cross_shard);
    return model_start(graph, (int32_t)cross_shard->shards, (int32_t)group);
}

/* Output by name, as core 0 sees it. */
static inline const tp_host_tensor *model_output(const model_run *run, const char *name)
{
    for (int32_t i = 0; i < run->graph->output_count; i++)
        if (strcmp(run->graph->outputs[i].name, name) == 0)
            return tp_reference_output(run->reference, 0, i);
    cr_assert_fail("there is no output '%s'", name);
    return NULL;
}

static inline float model_scalar(const model_run *run, const char *name)
{
    return *(const float *)model_output(run, name)->data;
}

/* Variable by name, of group 0. */
static inline tp_host_tensor *model_variable(const model_run *run, const char *name)
{
    const int32_t index = tp_graph_find_variable(run->graph, name);
    cr_assert(index >= 0, "there is no variable '%s'", name);
    return tp_reference_variable(run->reference, 0, index);
}

/* Global arrays, split over the cores in order: core c gets rows c*B .. c*B+B-1. The sum of weights is
 * made for each group of neighbours. `denominator` is left out for graphs without it. */
static inline void model_step(model_run *run, const float *image, const void *label,
                              const float *weight, uint32_t step)
{
    const tp_graph *graph = run->graph;
    const void *inputs[256];
    float sums[64] = {0};
    const int64_t batch = tp_graph_node(graph, graph->inputs[2].node)->shape.dims[0];
    for (int32_t core = 0; core < run->cores; core++)
        for (int64_t i = 0; i < batch; i++)
            sums[0] += weight[core * batch + i];
    for (int32_t core = 0; core < run->cores; core++) {
        const void *whole[] = {image, label, weight};
        for (int32_t i = 0; i < graph->input_count; i++) {
            const tp_node *node = tp_graph_node(graph, graph->inputs[i].node);
            const void *at = &sums[0];
            if (i < 3)
                at = (const char *)whole[i] + core * tp_shape_bytes(&node->shape, node->dtype);
            inputs[core * graph->input_count + i] = at;
        }
    }
    EXPECT_OK(tp_reference_step(run->reference, inputs, step));
}

#endif
