/* SPDX-License-Identifier: Apache-2.0
 * Graphs and programs: from a model to something that can be stepped. */
#include <stdio.h>
#include <string.h>
#include "core/clock.h"
#include "optim/schedule.h"
#include "train/session_internal.h"
#include "train/session_plan.h"

static tp_dtype dtype_of(int32_t chosen)
{
    return chosen == TP_CONFIG_BFLOAT16 ? TP_BF16 : TP_F32;
}

static tp_optim_config optimizer_of(const tp_config *config)
{
    tp_optim_config optimizer = tp_optim_defaults((tp_optim_kind)config->optimizer.name);
    const double default_rate = optimizer.learning_rate;
#define NUMBER(field, low, high, open, meaning) optimizer.field = config->optimizer.field;
#define FLAG(field, meaning) optimizer.field = config->optimizer.field;
    TP_OPTIMIZER_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
    if (optimizer.learning_rate == 0) optimizer.learning_rate = default_rate;
    optimizer.excluded = config->optimizer.exclude_from_weight_decay.items;
    optimizer.excluded_count = (int32_t)config->optimizer.exclude_from_weight_decay.count;
    optimizer.clipnorm = config->optimizer.clipnorm;
    optimizer.clipvalue = config->optimizer.clipvalue;
    optimizer.global_clipnorm = config->optimizer.global_clipnorm;
    optimizer.clip_at = (tp_optim_clip_at)config->optimizer.clip; /* the same order */
    optimizer.first_moment = dtype_of(config->precision.first_moment);
    optimizer.second_moment = dtype_of(config->precision.second_moment);
    optimizer.gradients = dtype_of(config->precision.gradients);
    optimizer.rounds_stochastically = config->precision.weights_rounding == TP_ROUNDING_STOCHASTIC;
    optimizer.use_ema = config->optimizer.use_ema;
    optimizer.ema_momentum = config->optimizer.ema_momentum;
    optimizer.ema_overwrite_frequency = config->optimizer.ema_overwrite_frequency;
    return optimizer;
}

/* Decays whose length is not given take what warm-up leaves of the run. */
static tp_optim_schedule schedule_of(const tp_session *session)
{
    const tp_config *config = session->config;
    tp_optim_schedule schedule = {.kind = (tp_optim_schedule_kind)config->optimizer.schedule.name};
#define NUMBER(field, low, high, open, meaning) schedule.field = config->optimizer.schedule.field;
#define FLAG(field, meaning) schedule.field = config->optimizer.schedule.field;
#define COUNT(field, low, high, meaning) schedule.field = config->optimizer.schedule.field;
    TP_SCHEDULE_KEYS(NUMBER, FLAG, COUNT)
#undef NUMBER
#undef FLAG
#undef COUNT
    schedule.boundaries = config->optimizer.schedule.boundaries.items;
    schedule.boundary_count = (int32_t)config->optimizer.schedule.boundaries.count;
    schedule.values = config->optimizer.schedule.values.items;
    schedule.warmup_steps = config->optimizer.schedule.warmup_steps;
    schedule.warmup_target = config->optimizer.schedule.warmup_target;
    if (!schedule.decay_steps) schedule.decay_steps = session->steps_total - schedule.warmup_steps;
    return schedule;
}

/* Groups as the optimizer and the executor want them; both borrow from the session. */
static tpucl_status copy_groups(tp_session *session, tp_cross_shard *out)
{
    const tp_config *config = session->config;
    *out = (tp_cross_shard){.reduction = config->cross_shard.reduction == TP_REDUCTION_SUM
                                             ? TP_CROSS_SHARD_SUM
                                             : TP_CROSS_SHARD_MEAN,
                            .shards = session->topology->cores};
    size_t cores = config->cross_shard.groups.count;
    int64_t size = config->cross_shard.group_size;
    if (!cores || size < 1) return TPUCL_OK;
    size_t count = cores / (size_t)size;
    session->groups = TP_ARENA_NEW_ARRAY(session->arena, tp_core_group, count);
    session->group_cores = TP_ARENA_NEW_ARRAY(session->arena, int32_t, cores);
    if (!session->groups || !session->group_cores) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < cores; i++)
        session->group_cores[i] = (int32_t)config->cross_shard.groups.items[i];
    for (size_t g = 0; g < count; g++)
        session->groups[g] =
            (tp_core_group){config->cross_shard.groups.items + g * (size_t)size, size};
    out->groups = session->groups;
    out->group_count = (int32_t)count;
    return tp_cross_shard_check(out);
}

static tpucl_status build_train(const tp_session *session, const tp_cross_shard *cross_shard,
                                int64_t batch, tp_graph **out_graph)
{
    tp_optim_config optimizer = optimizer_of(session->config);
    tp_optim_schedule schedule = schedule_of(session);
    if (schedule.kind != TP_OPTIM_SCHEDULE_CONSTANT || schedule.warmup_steps) {
        optimizer.schedule = tp_optim_schedule_rate;
        optimizer.schedule_user = &schedule;
    }
    TP_TRY(tp_optim_check(&optimizer));
    tp_model_train train = {.batch = batch,
                            .loss = session->loss,
                            .from_logits = session->config->loss.from_logits,
                            .optimizer = &optimizer,
                            .cross_shard = cross_shard};
    return tp_model_build_scored_train(session->model, &train, &session->score, out_graph);
}

tpucl_status tp_session_prepare_train(tp_session *session)
{
    TP_TRY(tp_session_check_labels(session));
    return copy_groups(session, &session->cross_shard);
}

tpucl_status tp_session_build_train(tp_session *session)
{
    session->train.name = "train";
    TP_TRY(build_train(session, &session->cross_shard, session->config->per_core_batch,
                       &session->train.graph));
    return tp_metrics_lay_out(session, session->train.graph);
}

const tp_graph *tp_session_train_graph(const tp_session *session)
{
    return session->train.graph;
}

tpucl_status tp_session_build_graphs(const tp_session *session, int64_t per_core_batch,
                                     tp_graph **out_train, tp_graph **out_evaluate)
{
    TP_TRY(build_train(session, &session->cross_shard, per_core_batch, out_train));
    return tp_model_build_scored_evaluate(session->model, per_core_batch, session->loss,
                                          session->config->loss.from_logits, &session->score,
                                          out_evaluate);
}

/* The first use of a device verifies kernels, which takes a while: shown like the building of programs. */
static void report_verdict(void *user, const char *variant, const char *problem_class,
                           uint32_t done, uint32_t total)
{
    const tp_session *session = user;
    char label[96];
    snprintf(label, sizeof label, "verification of %s (%s) on this device", variant, problem_class);
    const tp_build_progress progress = {.done = done, .total = total, .label = label};
    session->options.build_progress(&progress, session->options.build_user);
}

static tpucl_status compile_for_devices(tp_session *session, tp_session_graph *graph)
{
    const size_t devices = (size_t)session->map->device_count;
    graph->programs = TP_ARENA_NEW_ARRAY(session->arena, tp_program *, devices);
    if (!graph->programs) return TPUCL_OUT_OF_MEMORY;
    const tp_compile_verified_options options = {
        .name = graph->name,
        .cores = tp_session_wave_cores(session),
        .is_fast_math = session->config->math == TP_MATH_FAST,
        .cache_folder = session->cache ? tp_program_cache_folder(session->cache) : NULL,
        .progress = session->options.build_progress ? report_verdict : NULL,
        .user = session,
        .inout_verify_seconds = &session->verify_seconds};
    return tp_compile_for_devices(graph->graph, session->map, &options, graph->programs);
}

/* What came before the first step; of one load, the training's. */
static void note_startup(tp_session *session, const tp_loaded *loaded, double compile_seconds)
{
    tp_loaded_info info;
    tp_loaded_get_info(loaded, &info);
    session->startup.verify = session->verify_seconds;
    session->startup.compile = compile_seconds - session->verify_seconds;
    session->startup.memory = info.memory_seconds;
    session->startup.kernels = tp_session_lap(session) - info.memory_seconds;
}

/* What does not fit the topology's HBM is refused as that, also where it could not be compiled because the device
 * is too small as well. */
static tpucl_status compile_what_fits(tp_session *session, tp_session_graph *graph)
{
    const tpucl_status status = compile_for_devices(session, graph);
    if (graph != &session->train) return status;
    if (status == TPUCL_OK) return tp_session_check_hbm(session, graph->programs[0]);
    if (status != TPUCL_OUT_OF_DEVICE_MEMORY) return status;
    tpucl_error error;
    tp_session_plan plan = {0};
    tp_error_capture(&error);
    tpucl_status planned =
        tp_session_plan_batch(session, session->config->per_core_batch, false, &plan);
    if (planned == TPUCL_OK && plan.program) planned = tp_session_check_hbm(session, plan.program);
    tp_session_plan_deinit(&plan);
    if (planned != TPUCL_OK) return planned;
    tp_error_restore(&error);
    return status;
}

tpucl_status tp_session_load(tp_session *session, tp_session_graph *graph)
{
    uint64_t begin_ns = tp_clock_now_ns();
    TP_TRY(compile_what_fits(session, graph));
    const double compile_seconds = graph == &session->train ? tp_session_lap(session) : 0;
    TP_TRY(tp_executor_load(session->executor, (const tp_program *const *)graph->programs,
                            session->options.build_progress, session->options.build_user,
                            &graph->loaded));
    if (graph == &session->train) note_startup(session, graph->loaded, compile_seconds);
    session->build_seconds += 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
    return TPUCL_OK;
}

tpucl_status tp_session_need_evaluate(tp_session *session)
{
    tp_session_graph *graph = &session->evaluate;
    if (graph->loaded) return TPUCL_OK;
    graph->name = "evaluate";
    if (!graph->graph)
        TP_TRY(tp_model_build_scored_evaluate(session->model, session->config->per_core_batch,
                                              session->loss, session->config->loss.from_logits,
                                              &session->score, &graph->graph));
    return tp_session_load(session, graph);
}

void tp_session_graph_deinit(tp_session *session, tp_session_graph *graph)
{
    tp_executor_unload(graph->loaded);
    if (session->map) tp_programs_destroy(graph->programs, session->map->device_count);
    tp_graph_destroy(graph->graph);
}
