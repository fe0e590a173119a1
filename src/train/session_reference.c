/* SPDX-License-Identifier: Apache-2.0
 * A training without devices: the same data, graph and seeds in the reference interpreter. What comes out is
 * the definition that every device is compared with.
 */
#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "exec/params_hash.h"
#include "train/event_log.h"
#include "train/saver.h"
#include "train/session_internal.h"
#include "train/shard.h"

bool tp_session_is_reference(const tp_session *session)
{
    return session->options.selector && strcmp(session->options.selector, "reference") == 0;
}

/* The interpreter's groups are neighbours; other groupings run on devices only. */
static tpucl_status check_groups(const tp_session *session)
{
    size_t count = session->groups ? session->config->cross_shard.groups.count : 0;
    for (size_t i = 0; i < count; i++)
        if (session->group_cores[i] != (int32_t)i)
            return TP_FAIL(TPUCL_UNSUPPORTED,
                           "the reference interpreter takes replica groups of neighbouring cores; "
                           "core %d stands at place %zu",
                           session->group_cores[i], i);
    return TPUCL_OK;
}

tpucl_status tp_session_open_reference(tp_session *session)
{
    session->map = TP_ARENA_NEW(session->arena, tp_core_map);
    if (!session->map) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_arena_create(0, &session->map->arena));
    session->map->core_count = session->topology->cores;
    TP_TRY(check_groups(session));
    const tp_reference_options options = {
        .cores = session->topology->cores,
        .group_cores = session->groups ? (int32_t)session->config->cross_shard.group_size : 0,
        .seed = (uint64_t)session->config->seed};
    return tp_reference_create(session->train.graph, &options, &session->reference);
}

/* inputs[core * input_count + i], the scalars and weights from `storage` (batch + 1 floats a core). */
static void point_inputs(const tp_session *session, const tp_batch *batch, const void **inputs,
                         float *storage)
{
    const tp_graph *graph = session->train.graph;
    int64_t rows_per_core = session->config->per_core_batch;
    for (int32_t core = 0; core < session->topology->cores; core++) {
        float *weights = storage + core * (rows_per_core + 1),
              *denominator = weights + rows_per_core;
        tp_shard_fill_weights(weights, rows_per_core,
                              tp_shard_rows(core, rows_per_core, batch->valid));
        *denominator = tp_session_group_weight(session, core, batch->valid);
        for (int32_t i = 0; i < graph->input_count; i++) {
            const char *name = graph->inputs[i].name;
            int32_t field = tp_source_find_field(session->train_source, name);
            const void **input = &inputs[core * graph->input_count + i];
            if (field >= 0)
                *input =
                    (const char *)batch->arrays[field] +
                    (uint64_t)(core * rows_per_core) * session->train_source->fields[field].bytes;
            else
                *input = strcmp(name, "weight") == 0 ? weights : denominator;
        }
    }
}

static void add_outputs(const tp_session *session, tp_metric_sums *sums)
{
    const tp_graph *graph = session->train.graph;
    int64_t group = session->groups ? session->config->cross_shard.group_size
                                    : (int64_t)session->topology->cores;
    for (int32_t core = 0; core < session->topology->cores; core += (int32_t)group)
        for (int32_t i = 0; i < graph->output_count; i++) {
            const tp_host_tensor *tensor = tp_reference_output(session->reference, core, i);
            tp_metrics_add_output(session, graph->outputs[i].name, tensor->data, sums);
        }
}

typedef struct loop {
    tp_session *session;
    const tp_session_callbacks *callbacks;
    tp_saver *saver;   /* NULL: no checkpoints */
    tp_event_log *log; /* NULL: none */
    uint64_t begin_ns, epoch_ns;
    int64_t examples;
} loop;

static tpucl_status end_epoch(loop *l, bool is_ended)
{
    tp_session_epoch epoch = {.seconds = 1e-9 * (double)(tp_clock_now_ns() - l->epoch_ns)};
    TP_TRY(tp_session_record_epoch(l->session, &epoch, is_ended));
    if (is_ended) tp_event_log_epoch(l->log, &epoch);
    if (l->callbacks && l->callbacks->epoch) l->callbacks->epoch(l->callbacks->user, &epoch);
    l->epoch_ns = tp_clock_now_ns();
    return TPUCL_OK;
}

static tpucl_status end_whole_epoch(loop *l)
{
    const tp_session_epoch_list *epochs = &l->session->epochs;
    TP_TRY(end_epoch(l, true));
    if (tp_saver_is_due(l->saver, true)) tp_saver_save(l->saver, &epochs->items[epochs->count - 1]);
    return TPUCL_OK;
}

static void report_progress(const loop *l)
{
    const tp_session *session = l->session;
    if (!l->callbacks || !l->callbacks->progress) return;
    const double seconds = 1e-9 * (double)(tp_clock_now_ns() - l->begin_ns);
    const tp_session_progress progress = {
        .step = session->steps_done,
        .steps = session->steps_total,
        .epoch = tp_session_epoch_of(session, session->steps_done),
        .epochs = tp_session_epoch_of(session, session->steps_total),
        .loss = tp_metrics_loss(&session->running.sums),
        .examples_per_second = (double)l->examples / seconds};
    l->callbacks->progress(l->callbacks->user, &progress);
}

static tpucl_status run_step(loop *l, const void **inputs, float *storage)
{
    tp_session *session = l->session;
    const tp_batch *batch = NULL;
    TP_TRY(tp_pipeline_next(session->pipeline, &batch));
    point_inputs(session, batch, inputs, storage);
    TP_TRY(tp_reference_step(session->reference, inputs, (uint32_t)session->steps_done));
    add_outputs(session, &session->running.sums);
    session->steps_done++;
    session->running.steps++;
    session->running.examples += batch->valid;
    l->examples += batch->valid;
    report_progress(l);
    return TPUCL_OK;
}

static tpucl_status run_steps(loop *l, const void **inputs, float *storage)
{
    tp_session *session = l->session;
    if (tp_session_is_epoch_due(session)) TP_TRY(end_whole_epoch(l));
    while (session->steps_done < session->steps_total && !atomic_load(&session->is_stopped)) {
        TP_TRY(run_step(l, inputs, storage));
        if (tp_session_is_epoch_due(session))
            TP_TRY(end_whole_epoch(l));
        else if (tp_saver_is_due(l->saver, false))
            tp_saver_save(l->saver, NULL);
    }
    TP_TRY(tp_saver_finish(l->saver));
    if (!session->running.steps) return TPUCL_OK;
    return end_epoch(l, session->steps_done == session->steps_total);
}

tpucl_status tp_session_train_reference(tp_session *session, const tp_session_callbacks *callbacks)
{
    size_t cores = (size_t)session->topology->cores;
    const void **inputs =
        TP_NEW_ARRAY(const void *, cores *(size_t)session->train.graph->input_count + 1);
    float *storage = TP_NEW_ARRAY(float, cores *((size_t)session->config->per_core_batch + 1));
    tpucl_status status = inputs && storage ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    loop l = {.session = session, .callbacks = callbacks, .begin_ns = tp_clock_now_ns()};
    l.epoch_ns = l.begin_ns;
    tp_session_begin_training(session);
    if (status == TPUCL_OK) status = tp_session_open_pipeline(session);
    if (status == TPUCL_OK) status = tp_saver_create(session, &l.saver);
    l.log = tp_event_log_open(session);
    if (status == TPUCL_OK) status = run_steps(&l, inputs, storage);
    tp_saver_destroy(l.saver);
    tp_event_log_close(l.log);
    tp_session_close_pipeline(session);
    tp_free(inputs);
    tp_free(storage);
    TP_TRY(status);
    if (session->steps_done < session->steps_total)
        return TP_FAIL(TPUCL_INTERRUPTED, "stopped after step %lld of %lld",
                       (long long)session->steps_done, (long long)session->steps_total);
    return TPUCL_OK;
}

tpucl_status tp_session_reference_sha256(tp_session *session, char out_hex[TP_SHA256_HEX_BYTES])
{
    const tp_graph *graph = session->train.graph;
    int32_t count = 0;
    tp_params_name *order = TP_NEW_ARRAY(tp_params_name, (size_t)graph->variable_count + 1);
    if (!order) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < graph->variable_count; i++)
        if (graph->variables[i].is_model)
            order[count++] = (tp_params_name){graph->variables[i].name, i};
    tp_params_sort(order, (size_t)count);
    tp_sha256 hash;
    tp_sha256_init(&hash);
    for (int32_t g = 0; g < tp_session_group_count(session); g++)
        for (int32_t i = 0; i < count; i++) {
            const tp_host_tensor *tensor =
                tp_reference_variable(session->reference, g, order[i].index);
            tp_params_hash_add(&hash, order[i].name, tensor->dtype, &tensor->shape, tensor->data);
        }
    tp_sha256_finish_hex(&hash, out_hex);
    tp_free(order);
    return TPUCL_OK;
}
