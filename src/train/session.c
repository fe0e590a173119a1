/* SPDX-License-Identifier: Apache-2.0
 * Making and unmaking a session, and what can be asked of it. */
#include "core/clock.h"
#include "core/env.h"
#include "train/session_internal.h"
#include "train/session_plan.h"

static tpucl_status count_steps(tp_session *session)
{
    const tp_config *config = session->config;
    const bool pads =
        session->train_count % config->global_batch != 0 && !config->data.drop_remainder;
    session->steps_per_epoch = session->train_count / config->global_batch + pads;
    if (!session->steps_per_epoch)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "%lld examples make no whole batch of %lld, and data.drop_remainder leaves "
                       "others out",
                       (long long)session->train_count, (long long)config->global_batch);
    if (config->steps)
        session->steps_total = config->steps;
    else if (__builtin_mul_overflow(config->epochs, session->steps_per_epoch,
                                    &session->steps_total))
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%lld epochs of %lld steps are too many",
                       (long long)config->epochs, (long long)session->steps_per_epoch);
    if (!config->data.repeat && session->steps_total > session->steps_per_epoch)
        return TP_FAIL(
            TPUCL_INVALID_CONFIG,
            "%lld steps are asked for, the data end after %lld; set data.repeat, or fewer "
            "epochs or steps",
            (long long)session->steps_total, (long long)session->steps_per_epoch);
    if (session->steps_total > UINT32_MAX)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%lld steps; at most 2^32 - 1 can be told apart",
                       (long long)session->steps_total);
    return TPUCL_OK;
}

static tpucl_status open_devices(tp_session *session)
{
    tp_placement_options placement = {.selector = session->options.selector,
                                      .split = session->options.split};
    bool synchronous = false;
    TP_TRY(tp_env_flag(TP_ENV_SYNC, false, &synchronous));
    const char *cache_dir = session->options.cache_dir;
    if (!cache_dir || *cache_dir) {
        tpucl_status status = tp_program_cache_open(cache_dir, 0, &session->cache);
        if (status != TPUCL_OK && status != TPUCL_NOT_FOUND) return status;
    }
    placement.device.synchronous = session->options.synchronous || synchronous;
    placement.device.cache = session->cache;
    tp_topology real = *session->topology; /* placements are of its cores */
    real.cores = session->real_cores;
    TP_TRY(tp_core_map_open(&real, &placement, &session->map));
    return tp_core_map_repeat(session->map, (int32_t)session->config->accumulate);
}

static tpucl_status open_executor(tp_session *session)
{
    const tp_config *config = session->config;
    double hbm = tp_topology_figure(session->topology, TP_FIGURE_HBM_BYTES, 0);
    tp_executor_options options = {.seed = (uint64_t)config->seed,
                                   .group_cores = session->group_cores,
                                   .group_count = tp_session_group_count(session),
                                   .wave_cores = (int32_t)config->wave_cores,
                                   .micro_batches = (int32_t)config->accumulate,
                                   .core_hbm_bytes = (uint64_t)hbm};
    return tp_executor_create(session->map, &options, &session->executor);
}

/* Files go on being read while kernels are built. */
static tpucl_status wait_for_data(const tp_session *session)
{
    TP_TRY(tp_source_wait(session->train_source));
    return session->test_source ? tp_source_wait(session->test_source) : TPUCL_OK;
}

double tp_session_lap(tp_session *session)
{
    const uint64_t now_ns = tp_clock_now_ns();
    const double seconds = 1e-9 * (double)(now_ns - session->lap_ns);
    session->lap_ns = now_ns;
    return seconds;
}

static tpucl_status open_all(tp_session *session)
{
    if (session->map) return TPUCL_OK;
    TP_TRY(open_devices(session));
    TP_TRY(open_executor(session));
    return TPUCL_OK;
}

static bool uses_devices(const tp_session *session)
{
    if (session->options.plan_only) return session->options.opens_devices;
    return !tp_session_is_reference(session);
}

/* "batch": "auto". */
static tpucl_status choose_batch(tp_session *session)
{
    if (session->config->batch < 0) return TPUCL_OK;
    if (uses_devices(session)) TP_TRY(open_all(session));
    TP_TRY(tp_session_choose_batch(session));
    return count_steps(session);
}

/* What can be wrong in files and configuration comes before anything is opened or allocated. */
static tpucl_status create(tp_session *session)
{
    if (!session->topology) TP_TRY(tp_topology_load(session->config->topology, &session->topology));
    TP_TRY(tp_config_resolve(session->config, session->topology));
    session->real_cores = session->topology->cores;
    session->topology->cores *= (int32_t)session->config->accumulate;
    TP_TRY(tp_session_open_data(session));
    TP_TRY(count_steps(session));
    session->startup.data = tp_session_lap(session);
    TP_TRY(tp_session_build_model(session));
    TP_TRY(tp_session_prepare_train(session));
    TP_TRY(choose_batch(session));
    TP_TRY(tp_session_build_train(session));
    session->startup.model = tp_session_lap(session);
    if (uses_devices(session)) TP_TRY(open_all(session));
    if (session->options.plan_only) return wait_for_data(session);
    if (tp_session_is_reference(session)) {
        TP_TRY(wait_for_data(session));
        return tp_session_open_reference(session);
    }
    session->startup.devices = tp_session_lap(session);
    TP_TRY(tp_session_load(session, &session->train));
    TP_TRY(wait_for_data(session));
    session->startup.data += tp_session_lap(session);
    return TPUCL_OK;
}

tpucl_status tp_session_create(const tp_session_options *options, tp_session **out_session)
{
    tp_arena *arena = NULL;
    tp_session *session = NULL;
    tpucl_status status = tp_arena_create(0, &arena);
    if (status == TPUCL_OK) session = TP_ARENA_NEW(arena, tp_session);
    if (!session) {
        tp_arena_destroy(arena);
        tp_config_destroy(options->config);
        tp_source_destroy(options->source);
        tp_topology_destroy(options->topology);
        return TPUCL_OUT_OF_MEMORY;
    }
    session->arena = arena;
    session->options = *options;
    session->config = options->config;
    session->train_source = options->source;
    session->topology = options->topology;
    session->created_ns = session->lap_ns = tp_clock_now_ns();
    atomic_init(&session->is_stopped, false);
    status = create(session);
    if (status != TPUCL_OK) {
        tp_error_trail(__func__, __FILE__, __LINE__);
        tpucl_error error;
        tp_error_capture(&error);
        tp_session_destroy(session);
        tp_error_restore(&error);
        return status;
    }
    *out_session = session;
    return TPUCL_OK;
}

void tp_session_destroy(tp_session *session)
{
    if (!session) return;
    tp_pipeline_destroy(session->pipeline);
    tp_reference_destroy(session->reference); /* reads its graph until the end */
    tp_session_graph_deinit(session, &session->train);
    tp_session_graph_deinit(session, &session->evaluate);
    tp_executor_destroy(session->executor);
    tp_core_map_close(session->map);
    tp_program_cache_close(session->cache);
    tp_model_destroy(session->model);
    tp_source_destroy(session->train_source);
    tp_source_destroy(session->test_source);
    tp_topology_destroy(session->topology);
    tp_config_destroy(session->config);
    tp_session_epoch_list_deinit(&session->epochs);
    tp_arena_destroy(session->arena);
}

void tp_session_stop(tp_session *session)
{
    atomic_store(&session->is_stopped, true);
}

const tp_config *tp_session_config(const tp_session *session)
{
    return session->config;
}

const tp_topology *tp_session_topology(const tp_session *session)
{
    return session->topology;
}

const tp_core_map *tp_session_core_map(const tp_session *session)
{
    return session->map;
}

tp_variables *tp_session_variables(tp_session *session)
{
    return tp_executor_variables(session->executor);
}

int32_t tp_session_wave_cores(const tp_session *session)
{
    const int32_t parts = (int32_t)session->config->accumulate;
    return (tp_core_map_most_cores(session->map) + parts - 1) / parts;
}

int32_t tp_session_real_cores(const tp_session *session)
{
    return session->real_cores;
}

const tp_source *tp_session_train_source(const tp_session *session)
{
    return session->train_source;
}

const tp_source *tp_session_test_source(const tp_session *session)
{
    return session->test_source;
}

int64_t tp_session_steps_done(const tp_session *session)
{
    return session->steps_done;
}

const tp_session_epoch *tp_session_epochs(const tp_session *session, int32_t *out_count)
{
    *out_count = (int32_t)session->epochs.count;
    return session->epochs.items;
}

const tp_breakdown *tp_session_breakdown(const tp_session *session)
{
    return &session->breakdown;
}

const tp_pipeline_stats *tp_session_input_stats(tp_session *session)
{
    if (session->pipeline) tp_pipeline_get_stats(session->pipeline, &session->input_stats);
    return &session->input_stats;
}

tpucl_status tp_session_params_sha256(tp_session *session, char out_hex[TP_SHA256_HEX_BYTES])
{
    if (session->reference) return tp_session_reference_sha256(session, out_hex);
    return tp_variables_sha256(tp_session_variables(session), out_hex);
}

void tp_session_get_info(const tp_session *session, tp_session_info *out_info)
{
    *out_info = (tp_session_info){.train_examples = session->train_count,
                                  .test_examples = session->test_count,
                                  .steps = session->steps_total,
                                  .steps_per_epoch = session->steps_per_epoch,
                                  .epochs = tp_session_epoch_of(session, session->steps_total),
                                  .build_seconds = session->build_seconds,
                                  .first_step_seconds = session->first_step_seconds};
    for (int32_t i = 0; i < tp_model_row_count(session->model); i++)
        out_info->parameter_count += (uint64_t)tp_model_row_at(session->model, i).params;
    if (!session->train.loaded) return;
    out_info->flops_per_core_step = session->train.programs[0]->flops_per_core;
    out_info->peak_core_bytes = session->train.programs[0]->peak_core_bytes;
    tp_loaded_get_info(session->train.loaded, &out_info->memory);
    tp_device_memory used;
    tp_device_get_memory(session->map->devices[0], &used);
    out_info->device_bytes = used.used_bytes;
    tp_build_stats builds;
    tp_device_get_build_stats(session->map->devices[0], &builds);
    out_info->startup = session->startup;
    out_info->startup.compiled = builds.from_source + builds.apart;
    out_info->startup.from_disk = builds.from_disk;
}
