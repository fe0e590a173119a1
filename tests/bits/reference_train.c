/* SPDX-License-Identifier: Apache-2.0
 * reference_train CONFIG [--steps N] [--set KEY=VALUE]... --json FILE: the training that `tpucl train` would
 * do, by the reference interpreter. Its result holds params_sha256 only. White box: the session gives graph,
 * data and the digest; its devices compute nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "data/pipeline.h"
#include "reference/reference.h"
#include "train/session.h"

enum { MAX_OVERRIDES = 32 };

typedef struct arguments {
    const char *config, *json;
    const char *overrides[MAX_OVERRIDES];
    size_t override_count;
    char steps[64];
} arguments;

static bool read_arguments(int argc, char **argv, arguments *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (argv[i][0] != '-') {
            out->config = argv[i];
        } else if (has_value && !strcmp(argv[i], "--json")) {
            out->json = argv[++i];
        } else if (has_value && out->override_count < MAX_OVERRIDES && !strcmp(argv[i], "--set")) {
            out->overrides[out->override_count++] = argv[++i];
        } else if (has_value && out->override_count < MAX_OVERRIDES &&
                   !strcmp(argv[i], "--steps")) {
            snprintf(out->steps, sizeof out->steps, "steps=%s", argv[++i]);
            out->overrides[out->override_count++] = out->steps;
        } else {
            return false;
        }
    }
    return out->config && out->json;
}

/* One float per row: 1 for an example, 0 for padding; one group of all cores. */
static tpucl_status feed(const tp_session *session, const tp_graph *graph, const tp_batch *batch,
                         float *weights, float *denominator, const void **inputs)
{
    const tp_config *config = tp_session_config(session);
    const tp_source *source = tp_session_train_source(session);
    int64_t rows = config->per_core_batch;
    int32_t cores = tp_session_topology(session)->cores;
    *denominator = (float)batch->valid;
    for (int64_t row = 0; row < rows * cores; row++)
        weights[row] = row < batch->valid;
    for (int32_t core = 0; core < cores; core++) {
        for (int32_t i = 0; i < graph->input_count; i++) {
            const char *name = graph->inputs[i].name;
            int32_t field = tp_source_find_field(source, name);
            const void **to = &inputs[core * graph->input_count + i];
            if (field >= 0)
                *to = (const char *)batch->arrays[field] +
                      source->fields[field].bytes * (uint64_t)(rows * core);
            else if (!strcmp(name, "weight"))
                *to = weights + rows * core;
            else if (!strcmp(name, "denominator"))
                *to = denominator;
            else
                return TP_FAIL(TPUCL_UNSUPPORTED, "input '%s' is not known here", name);
        }
    }
    return TPUCL_OK;
}

static tpucl_status run_steps(const tp_session *session, tp_reference *reference)
{
    const tp_config *config = tp_session_config(session);
    const tp_graph *graph = tp_session_train_graph(session);
    size_t cores = (size_t)tp_session_topology(session)->cores;
    tp_session_info info;
    tp_session_get_info(session, &info);
    tp_pipeline_options options = {.batch = config->global_batch,
                                   .count = info.train_examples,
                                   .shuffle = config->data.shuffle,
                                   .shuffle_buffer = config->data.shuffle_buffer,
                                   .seed = (uint64_t)config->seed};
    tp_pipeline *pipeline = NULL;
    float denominator = 0;
    float *weights = TP_NEW_ARRAY(float, (size_t)config->global_batch);
    const void **inputs = TP_NEW_ARRAY(const void *, cores *(size_t)graph->input_count);
    tpucl_status status = weights && inputs ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK)
        status = tp_pipeline_create(tp_session_train_source(session), &options, &pipeline);
    for (int64_t step = 0; status == TPUCL_OK && step < info.steps; step++) {
        const tp_batch *batch = NULL;
        status = tp_pipeline_next(pipeline, &batch);
        if (status == TPUCL_OK) status = feed(session, graph, batch, weights, &denominator, inputs);
        if (status == TPUCL_OK) status = tp_reference_step(reference, inputs, (uint32_t)step);
    }
    tp_pipeline_destroy(pipeline);
    tp_free(inputs);
    tp_free(weights);
    return status;
}

/* The digest is the session's own, over the interpreter's values. */
static tpucl_status take_over(tp_session *session, tp_reference *reference)
{
    const tp_graph *graph = tp_session_train_graph(session);
    tp_variables *variables = tp_session_variables(session);
    for (int32_t i = 0; i < graph->variable_count; i++) {
        int32_t index = tp_variables_find(variables, graph->variables[i].name);
        if (index < 0) return TP_FAIL(TPUCL_INTERNAL, "no '%s'", graph->variables[i].name);
        TP_TRY(
            tp_variables_write(variables, index, 0, tp_reference_variable(reference, 0, i)->data));
    }
    return TPUCL_OK;
}

static tpucl_status train(const arguments *given, char out_digest[TP_SHA256_HEX_BYTES])
{
    tp_session_options options = {0};
    tp_session *session = NULL;
    tp_reference *reference = NULL;
    TP_TRY(tp_config_read_file(given->config, given->overrides, given->override_count,
                               &options.config));
    TP_TRY(tp_session_create(&options, &session));
    tp_reference_options reference_options = {.cores = tp_session_topology(session)->cores,
                                              .seed = (uint64_t)tp_session_config(session)->seed};
    tpucl_status status =
        tp_reference_create(tp_session_train_graph(session), &reference_options, &reference);
    if (status == TPUCL_OK) status = run_steps(session, reference);
    if (status == TPUCL_OK) status = take_over(session, reference);
    if (status == TPUCL_OK) status = tp_session_params_sha256(session, out_digest);
    tp_reference_destroy(reference);
    tp_session_destroy(session);
    return status;
}

int main(int argc, char **argv)
{
    arguments given;
    char digest[TP_SHA256_HEX_BYTES];
    if (!read_arguments(argc, argv, &given)) {
        fprintf(stderr,
                "usage: reference_train CONFIG [--steps N] [--set KEY=VALUE]... --json FILE\n");
        return 2;
    }
    if (train(&given, digest) != TPUCL_OK) {
        fprintf(stderr, "reference_train: %s\n", tpucl_last_error()->message);
        return 1;
    }
    FILE *file = fopen(given.json, "w");
    bool written = file && fprintf(file, "{\"params_sha256\": \"%s\"}\n", digest) > 0;
    if (!file || fclose(file) != 0 || !written) {
        perror(given.json);
        return 1;
    }
    return 0;
}
