/* SPDX-License-Identifier: Apache-2.0
 * Trainers: an executor with a program's variables, fed from batches. */
#include "api/trainer_internal.h"

#include <math.h>
#include "core/alloc.h"
#include "train/params.h"

static tpucl_status create_executor(tpucl_trainer *trainer, uint64_t seed)
{
    const tpucl_program *program = trainer->program;
    const tpucl_runtime *runtime = program->runtime;
    double hbm = tp_topology_figure(runtime->topology, TP_FIGURE_HBM_BYTES, 0);
    tp_executor_options options = {.seed = seed,
                                   .group_cores = program->group_cores,
                                   .group_count = program->group_count,
                                   .wave_cores = runtime->wave_cores,
                                   .core_hbm_bytes = (uint64_t)hbm};
    TP_TRY(tp_executor_create(runtime->map, &options, &trainer->executor));
    return TPUCL_OK;
}

/* The first program that is loaded creates the variables; training brings all of them. */
static tpucl_status load(tpucl_trainer *trainer, tp_program *const *programs,
                         tp_loaded **inout_loaded)
{
    if (*inout_loaded) return TPUCL_OK;
    TP_TRY(tp_executor_load(trainer->executor, (const tp_program *const *)programs, NULL, NULL,
                            inout_loaded));
    return TPUCL_OK;
}

tpucl_status tpucl_trainer_create(tpucl_program *program, const tpucl_trainer_options *options,
                                  tpucl_trainer **out_trainer)
{
    TP_API_NEED(program);
    TP_API_NEED(out_trainer);
    *out_trainer = NULL;
    tpucl_trainer_options all;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_trainer_options));
    tpucl_trainer *trainer = TP_NEW(tpucl_trainer);
    if (!trainer) return TPUCL_OUT_OF_MEMORY;
    trainer->program = program;
    tpucl_status status;
    TP_TRY_GOTO(status, create_executor(trainer, all.seed), failed);
    if (program->train)
        TP_TRY_GOTO(status, load(trainer, program->train, &trainer->train), failed);
    else
        TP_TRY_GOTO(status, load(trainer, program->evaluate, &trainer->evaluate), failed);
    *out_trainer = trainer;
    return TPUCL_OK;
failed:
    tpucl_trainer_destroy(trainer);
    return status;
}

void tpucl_trainer_destroy(tpucl_trainer *trainer)
{
    if (!trainer) return;
    tp_executor_unload(trainer->train);
    tp_executor_unload(trainer->evaluate);
    tp_executor_destroy(trainer->executor);
    tp_free(trainer);
}

/* ---- results ---- */

static double value_of(const tp_program *program, const unsigned char *record, const char *prefix,
                       const char *name)
{
    size_t prefix_len = strlen(prefix);
    for (int32_t i = 0; i < program->result_count; i++) {
        const tp_program_port *port = &program->results[i];
        if (strncmp(port->name, prefix, prefix_len) || strcmp(port->name + prefix_len, name))
            continue;
        float value;
        memcpy(&value, record + program->buffers[port->buffer].offset_bytes, sizeof value);
        return (double)value;
    }
    return (double)NAN;
}

/* Adds what a step gave, over all replica groups. */
static tpucl_status add_sums(tpucl_trainer *trainer, tp_loaded *loaded, const tp_program *inner,
                             uint64_t ticket, tp_api_sums *sums)
{
    const tpucl_program *program = trainer->program;
    for (int32_t group = 0; group < program->group_count; group++) {
        const void *record = NULL;
        TP_TRY(tp_loaded_result(loaded, ticket, group, &record));
        sums->weight += value_of(inner, record, "", "weight_sum");
        for (int32_t i = 0; i < program->metric_count; i++)
            sums->metrics[i] += value_of(inner, record, "sum/", program->metric_names[i]);
    }
    return TPUCL_OK;
}

static void fill_result(tpucl_trainer *trainer, const tp_api_sums *sums, int64_t examples,
                        tpucl_step_result *out_result)
{
    const tpucl_program *program = trainer->program;
    for (int32_t i = 0; i < program->metric_count; i++)
        trainer->metrics[i] =
            (tpucl_metric){program->metric_names[i], sums->metrics[i] / sums->weight};
    *out_result = (tpucl_step_result){.step = trainer->steps,
                                      .example_count = examples,
                                      .loss = program->has_loss ? trainer->metrics[0].value : 0,
                                      .metric_count = program->metric_count,
                                      .metrics = trainer->metrics};
}

/* ---- steps ---- */

static tpucl_status submit(tpucl_trainer *trainer, tp_loaded *loaded, const tp_program *inner,
                           const tpucl_batch *batch, uint32_t step, uint64_t *out_ticket)
{
    tp_feed *feed = NULL;
    TP_TRY(tp_api_feed_check(trainer->program, inner, batch));
    TP_TRY(tp_loaded_acquire(loaded, &feed));
    tp_api_feed_fill(trainer->program, inner, batch, feed);
    TP_TRY(tp_loaded_submit(loaded, feed, step, out_ticket));
    return TPUCL_OK;
}

tpucl_status tpucl_trainer_step(tpucl_trainer *trainer, const tpucl_batch *batch,
                                tpucl_step_result *out_result)
{
    TP_API_NEED(trainer);
    TP_API_NEED(batch);
    if (!trainer->train)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "the program only evaluates: its graph minimises nothing");
    if (trainer->steps > UINT32_MAX)
        return TP_FAIL(TPUCL_UNSUPPORTED, "more than 2^32 steps cannot be told apart");
    const tp_program *inner = trainer->program->train[0];
    uint64_t ticket;
    TP_TRY(submit(trainer, trainer->train, inner, batch, (uint32_t)trainer->steps, &ticket));
    trainer->steps++;
    if (!out_result) return TPUCL_OK;
    tp_api_sums sums = {0};
    TP_TRY(add_sums(trainer, trainer->train, inner, ticket, &sums));
    fill_result(trainer, &sums, batch->example_count, out_result);
    return TPUCL_OK;
}

tpucl_status tpucl_trainer_steps(tpucl_trainer *trainer, tpucl_dataset *dataset, int64_t count,
                                 tpucl_step_result *out_result)
{
    TP_API_NEED(trainer);
    TP_API_NEED(dataset);
    if (count < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "count is %lld, expected 1 or more",
                       (long long)count);
    tpucl_step_result last = {0};
    int64_t examples = 0;
    for (int64_t i = 0; i < count; i++) {
        tpucl_batch batch;
        tpucl_status status = tpucl_dataset_next(dataset, &batch);
        if (status == TPUCL_END_OF_DATA && i > 0) break;
        TP_TRY(status);
        bool is_last = i + 1 == count || tp_api_dataset_at_end(dataset);
        TP_TRY(tpucl_trainer_step(trainer, &batch, is_last ? &last : NULL));
        examples += batch.example_count;
        if (is_last) break;
    }
    last.example_count = examples;
    if (out_result) *out_result = last;
    return TPUCL_OK;
}

tpucl_status tpucl_trainer_evaluate(tpucl_trainer *trainer, tpucl_dataset *dataset,
                                    tpucl_step_result *out_result)
{
    enum { LAG = 16 }; /* steps in flight before results are read */
    TP_API_NEED(trainer);
    TP_API_NEED(dataset);
    TP_API_NEED(out_result);
    const tp_program *inner = trainer->program->evaluate[0];
    TP_TRY(load(trainer, trainer->program->evaluate, &trainer->evaluate));
    TP_TRY(tpucl_dataset_rewind(dataset));
    uint64_t tickets[LAG];
    tp_api_sums sums = {0};
    int64_t submitted = 0, read = 0, examples = 0;
    int64_t batches = tp_api_dataset_epoch_batches(dataset);
    for (; submitted < batches; submitted++) {
        tpucl_batch batch;
        TP_TRY(tpucl_dataset_next(dataset, &batch));
        if (submitted - read == LAG)
            TP_TRY(add_sums(trainer, trainer->evaluate, inner, tickets[read++ % LAG], &sums));
        TP_TRY(submit(trainer, trainer->evaluate, inner, &batch, 0, &tickets[submitted % LAG]));
        examples += batch.example_count;
    }
    while (read < submitted)
        TP_TRY(add_sums(trainer, trainer->evaluate, inner, tickets[read++ % LAG], &sums));
    fill_result(trainer, &sums, examples, out_result);
    return TPUCL_OK;
}

/* ---- variables ---- */

static tpucl_status find_variable(tpucl_trainer *trainer, const char *name, size_t byte_count,
                                  int32_t *out_index)
{
    tp_variables *variables = tp_executor_variables(trainer->executor);
    *out_index = tp_variables_find(variables, name);
    if (*out_index < 0)
        return TP_FAIL(TPUCL_NOT_FOUND, "there is no variable '%s' among the %d of this trainer",
                       name, (int)tp_variables_count(variables));
    uint64_t bytes = tp_variables_info(variables, *out_index)->bytes;
    if (bytes != byte_count)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "variable '%s' has %llu bytes, the buffer %zu", name,
                       (unsigned long long)bytes, byte_count);
    return TPUCL_OK;
}

tpucl_status tpucl_trainer_read(tpucl_trainer *trainer, const char *name, void *out_data,
                                size_t byte_capacity)
{
    TP_API_NEED(trainer);
    TP_API_NEED(name);
    TP_API_NEED(out_data);
    int32_t index;
    TP_TRY(find_variable(trainer, name, byte_capacity, &index));
    TP_TRY(tp_variables_read(tp_executor_variables(trainer->executor), index, 0, out_data));
    return TPUCL_OK;
}

tpucl_status tpucl_trainer_write(tpucl_trainer *trainer, const char *name, const void *data,
                                 size_t byte_count)
{
    TP_API_NEED(trainer);
    TP_API_NEED(name);
    TP_API_NEED(data);
    int32_t index;
    TP_TRY(find_variable(trainer, name, byte_count, &index));
    for (int32_t group = 0; group < trainer->program->group_count; group++)
        TP_TRY(tp_variables_write(tp_executor_variables(trainer->executor), index, group, data));
    return TPUCL_OK;
}

tpucl_status tpucl_trainer_params_sha256(tpucl_trainer *trainer, char out_hex[65])
{
    TP_API_NEED(trainer);
    TP_API_NEED(out_hex);
    TP_TRY(tp_variables_sha256(tp_executor_variables(trainer->executor), out_hex));
    return TPUCL_OK;
}

tpucl_status tpucl_trainer_save(tpucl_trainer *trainer, const char *path)
{
    TP_API_NEED(trainer);
    TP_API_NEED(path);
    TP_TRY(tp_params_save(tp_executor_variables(trainer->executor), path, "graph",
                          (int64_t)trainer->steps));
    return TPUCL_OK;
}

tpucl_status tpucl_trainer_restore(tpucl_trainer *trainer, const char *path)
{
    TP_API_NEED(trainer);
    TP_API_NEED(path);
    TP_TRY(tp_params_load(tp_executor_variables(trainer->executor), trainer->program->group_count,
                          path));
    return TPUCL_OK;
}
