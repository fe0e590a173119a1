/* SPDX-License-Identifier: Apache-2.0
 * TPU-like and K80-like training are sessions on the device; CPU training is the same graph, batch and data
 * in the CPU baseline.
 */
#include "bench/train_sides.h"

#include <stdio.h>
#include <string.h>
#include "baseline/cpu_runner.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/embedded.h"
#include "data/pipeline.h"
#include "device/clblast.h"
#include "train/session.h"
#include "train/session_plan.h"
#include "train/shard.h"

extern const tp_embedded_file tp_embedded_configs[];

struct tp_train_side {
    tp_train_kind kind;
    tp_session *session; /* of the CPU side: for configuration, data and model only */
    tp_cpu_runner *train, *evaluate;
    tp_graph *train_graph, *evaluate_graph;
    tp_pipeline *pipeline;
    uint32_t step;
    float *weights; /* [batch] */
    char text[128];
};

static tpucl_status open_session(tp_train_side *side, const char *config_name,
                                 tp_session_options options)
{
    static const char *const k80[] = {"topology=k80", "precision=float32", "per_core_batch=16"};
    static const char *const cpu[] = {"topology=cpu", "precision=float32"};
    char file[64], batch[48];
    const char *overrides[4];
    size_t count = 0;
    const tp_embedded_file *text = tp_embedded_configs;
    snprintf(file, sizeof file, "%s.json", config_name);
    while (text->name && strcmp(text->name, file) != 0)
        text++;
    if (!text->name) return TP_FAIL(TPUCL_NOT_FOUND, "no embedded configuration '%s'", config_name);
    if (side->kind == TP_TRAIN_K80)
        for (; count < sizeof k80 / sizeof *k80; count++)
            overrides[count] = k80[count];
    if (side->kind == TP_TRAIN_CPU) { /* the global batch of the configuration on one core */
        tp_config *tpu = NULL;
        tp_topology *topology = NULL;
        TP_TRY(tp_config_parse(text->text, text->length_bytes, file, NULL, 0, &tpu));
        tpucl_status status = tp_topology_load(tpu->topology, &topology);
        if (status == TPUCL_OK) status = tp_config_resolve(tpu, topology);
        snprintf(batch, sizeof batch, "per_core_batch=%lld", (long long)tpu->global_batch);
        tp_topology_destroy(topology);
        tp_config_destroy(tpu);
        TP_TRY(status);
        for (; count < sizeof cpu / sizeof *cpu; count++)
            overrides[count] = cpu[count];
        overrides[count++] = batch;
        options.plan_only = true;
    }
    TP_TRY(
        tp_config_parse(text->text, text->length_bytes, file, overrides, count, &options.config));
    return tp_session_create(&options, &side->session);
}

static tpucl_status open_cpu(tp_train_side *side)
{
    const tp_config *config = tp_session_config(side->session);
    TP_TRY(tp_session_build_graphs(side->session, config->per_core_batch, &side->train_graph,
                                   &side->evaluate_graph));
    TP_TRY(tp_cpu_runner_create(side->train_graph, (uint64_t)config->seed, 0, &side->train));
    TP_TRY(tp_cpu_runner_create(side->evaluate_graph, (uint64_t)config->seed, 0, &side->evaluate));
    side->weights = TP_NEW_ARRAY(float, (size_t)config->per_core_batch);
    return side->weights ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static void describe(tp_train_side *side)
{
    static const char *const ways[] = {"bfloat16, exact", "f32, CLBlast", "f32, OpenBLAS"};
    const tp_config *config = tp_session_config(side->session);
    int32_t cores = tp_session_topology(side->session)->cores;
    snprintf(side->text, sizeof side->text, "batch %lld on %d core%s, %s",
             (long long)config->global_batch, cores, cores == 1 ? "" : "s", ways[side->kind]);
}

tpucl_status tp_train_side_create(const char *config, tp_train_kind kind, const char *selector,
                                  tp_build_callback building, void *building_user,
                                  tp_train_side **out_side)
{
    if (kind == TP_TRAIN_K80 && !tp_clblast_is_available())
        return TP_FAIL(
            TPUCL_UNSUPPORTED,
            "the K80-like side is left out: there is no libclblast.so.1 (Debian's package "
            "libclblast1)");
    tp_train_side *side = TP_NEW(tp_train_side);
    if (!side) return TPUCL_OUT_OF_MEMORY;
    side->kind = kind;
    const tp_session_options options = {
        .selector = selector, .build_progress = building, .build_user = building_user};
    tpucl_status status = open_session(side, config, options);
    if (status == TPUCL_OK && kind == TP_TRAIN_CPU) status = open_cpu(side);
    if (status != TPUCL_OK) {
        tpucl_error error;
        tp_error_capture(&error);
        tp_train_side_destroy(side);
        tp_error_restore(&error);
        return status;
    }
    describe(side);
    *out_side = side;
    return TPUCL_OK;
}

void tp_train_side_destroy(tp_train_side *side)
{
    if (!side) return;
    tp_pipeline_destroy(side->pipeline);
    tp_cpu_runner_destroy(side->train);
    tp_cpu_runner_destroy(side->evaluate);
    tp_graph_destroy(side->train_graph);
    tp_graph_destroy(side->evaluate_graph);
    tp_session_destroy(side->session);
    tp_free(side->weights);
    tp_free(side);
}

/* ---- the CPU side ---- */

static void point_inputs(tp_train_side *side, const tp_graph *graph, const tp_source *source,
                         const tp_batch *batch, float *denominator, const void **inputs)
{
    int64_t rows = tp_session_config(side->session)->per_core_batch;
    tp_shard_fill_weights(side->weights, rows, batch->valid);
    *denominator = (float)batch->valid;
    for (int32_t i = 0; i < graph->input_count; i++) {
        int32_t field = tp_source_find_field(source, graph->inputs[i].name);
        if (field >= 0)
            inputs[i] = batch->arrays[field];
        else
            inputs[i] = strcmp(graph->inputs[i].name, "weight") == 0 ? side->weights : denominator;
    }
}

static tpucl_status step_cpu(tp_train_side *side, tp_cpu_runner *runner, const tp_graph *graph,
                             const tp_source *source, const tp_batch *batch)
{
    const void *inputs[8];
    float denominator = 0;
    if (graph->input_count > (int32_t)(sizeof inputs / sizeof *inputs))
        return TP_FAIL(TPUCL_INTERNAL, "a graph with %d inputs", graph->input_count);
    point_inputs(side, graph, source, batch, &denominator, inputs);
    return tp_cpu_runner_step(runner, inputs, side->step);
}

static tpucl_status run_cpu(tp_train_side *side, int64_t steps, double *out_seconds)
{
    const tp_config *config = tp_session_config(side->session);
    const tp_source *source = tp_session_train_source(side->session);
    tp_pipeline_options options = {.batch = config->global_batch,
                                   .shuffle = config->data.shuffle,
                                   .shuffle_buffer = config->data.shuffle_buffer,
                                   .seed = (uint64_t)config->seed,
                                   .prefetch = (int32_t)config->data.prefetch};
    if (!side->pipeline) TP_TRY(tp_pipeline_create(source, &options, &side->pipeline));
    uint64_t begin_ns = tp_clock_now_ns();
    for (int64_t i = 0; i < steps; i++) {
        const tp_batch *batch = NULL;
        TP_TRY(tp_pipeline_next(side->pipeline, &batch));
        TP_TRY(step_cpu(side, side->train, side->train_graph, source, batch));
        side->step++;
    }
    *out_seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
    return TPUCL_OK;
}

/* The evaluation's variables are those of the training with the same name. */
static void copy_variables(tp_train_side *side)
{
    const tp_graph *to = side->evaluate_graph, *from = side->train_graph;
    for (int32_t i = 0; i < to->variable_count; i++)
        for (int32_t k = 0; k < from->variable_count; k++)
            if (strcmp(to->variables[i].name, from->variables[k].name) == 0)
                memcpy(tp_cpu_runner_variable(side->evaluate, i)->data,
                       tp_cpu_runner_variable(side->train, k)->data,
                       (size_t)tp_shape_bytes(&to->variables[i].shape, to->variables[i].dtype));
}

static double output(const tp_train_side *side, const char *name)
{
    for (int32_t i = 0; i < side->evaluate_graph->output_count; i++)
        if (strcmp(side->evaluate_graph->outputs[i].name, name) == 0)
            return (double)*(const float *)tp_cpu_runner_output(side->evaluate, i)->data;
    return 0;
}

static tpucl_status evaluate_cpu(tp_train_side *side, double *out_accuracy)
{
    const tp_source *source = tp_session_test_source(side->session);
    tp_pipeline_options options = {.batch = tp_session_config(side->session)->global_batch,
                                   .epochs = 1};
    tp_pipeline *pipeline = NULL;
    const tp_batch *batch = NULL;
    double correct = 0, weight = 0;
    copy_variables(side);
    TP_TRY(tp_pipeline_create(source, &options, &pipeline));
    tpucl_status status;
    while ((status = tp_pipeline_next(pipeline, &batch)) == TPUCL_OK) {
        status = step_cpu(side, side->evaluate, side->evaluate_graph, source, batch);
        if (status != TPUCL_OK) break;
        correct += output(side, "correct");
        weight += output(side, "weight_sum");
    }
    tp_pipeline_destroy(pipeline);
    *out_accuracy = weight > 0 ? correct / weight : 0;
    return status == TPUCL_END_OF_DATA ? TPUCL_OK : status;
}

/* ---- all sides ---- */

tpucl_status tp_train_side_run(tp_train_side *side, int64_t examples, int64_t *out_examples,
                               double *out_seconds)
{
    int64_t batch = tp_session_config(side->session)->global_batch;
    int64_t steps = (examples + batch - 1) / batch;
    *out_examples = steps * batch;
    if (side->kind == TP_TRAIN_CPU) return run_cpu(side, steps, out_seconds);
    return tp_session_run_steps(side->session, steps, out_seconds);
}

tpucl_status tp_train_side_accuracy(tp_train_side *side, double *out_accuracy)
{
    if (side->kind == TP_TRAIN_CPU) return evaluate_cpu(side, out_accuracy);
    tp_session_epoch result;
    TP_TRY(tp_session_evaluate(side->session, "test", &result));
    *out_accuracy = result.train_accuracy;
    return TPUCL_OK;
}

tpucl_status tp_train_side_largest_batch(tp_train_side *side, int64_t *out_batch)
{
    *out_batch = 0;
    if (side->kind == TP_TRAIN_CPU) return TPUCL_OK;
    tp_batch_limit limit;
    TP_TRY(tp_session_find_batch(side->session, false, 0, NULL, &limit));
    *out_batch = limit.largest * tp_session_topology(side->session)->cores;
    return TPUCL_OK;
}

int64_t tp_train_side_examples_per_epoch(const tp_train_side *side)
{
    tp_session_info info;
    tp_session_get_info(side->session, &info);
    return info.train_examples;
}

const char *tp_train_side_describe(const tp_train_side *side)
{
    return side->text;
}

double tp_train_side_flops_per_example(const tp_train_side *side)
{
    tp_session_info info;
    tp_session_get_info(side->session, &info);
    return info.flops_per_core_step / (double)tp_session_config(side->session)->per_core_batch;
}
