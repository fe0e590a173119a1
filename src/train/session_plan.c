/* SPDX-License-Identifier: Apache-2.0
 * See session_plan.h.
 */
#include "train/session_plan.h"

#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/log.h"
#include "train/session_internal.h"

enum { MOST_BATCH = 1 << 20, EXAMPLES_STEP = 8, LANES = 128 };

/* A CPU with wide vectors, as most of them are; whatever is allocated at once. */
static const tp_device_caps common_cpu = {.name = "a common CPU",
                                          .type = TP_DEVICE_CPU,
                                          .compute_units = 8,
                                          .max_work_group_size = 4096,
                                          .max_work_item_sizes = {4096, 4096, 4096},
                                          .memory_bytes = (uint64_t)1 << 62,
                                          .max_allocation_bytes = (uint64_t)1 << 62,
                                          .local_memory_bytes = 1 << 20,
                                          .local_memory_is_ordinary = true,
                                          .base_address_align_bytes = 128,
                                          .preferred_float_vector = 16};

/* ---- one batch ---- */

/* What more than memory stands against: a batch with numbers that nobody can count with. */
static bool is_too_large(tpucl_status status)
{
    return status == TPUCL_UNSUPPORTED || status == TPUCL_OUT_OF_DEVICE_MEMORY ||
           status == TPUCL_INVALID_ARGUMENT;
}

static tpucl_status compile_graph(const tp_session *session, const char *name,
                                  const tp_graph *graph, int32_t device, uint64_t slab_bytes,
                                  tp_program **out_program)
{
    const bool is_fast = session->config->math == TP_MATH_FAST;
    if (!session->map) {
        const tp_compile_options options = {.name = name,
                                            .caps = &common_cpu,
                                            .cores = session->real_cores,
                                            .is_fast_math = is_fast,
                                            .max_slab_segment_bytes = UINT64_MAX};
        return tp_compile(graph, &options, out_program);
    }
    const tp_compile_verified_options options = {
        .name = name,
        .cores = tp_session_wave_cores(session),
        .is_fast_math = is_fast,
        .max_slab_segment_bytes = slab_bytes,
        .cache_folder = session->cache ? tp_program_cache_folder(session->cache) : NULL};
    return tp_compile_verified(graph, session->map->devices[device], &options, out_program);
}

/* As training compiles it, or, where a device cannot allocate so much at once, as it would with one that can. */
static tpucl_status compile_for(const tp_session *session, const char *name, const tp_graph *graph,
                                tp_program **out_program, bool *out_fits_device)
{
    tpucl_status status = compile_graph(session, name, graph, 0, 0, out_program);
    *out_fits_device = status == TPUCL_OK;
    if (status == TPUCL_OUT_OF_DEVICE_MEMORY)
        status = compile_graph(session, name, graph, 0, UINT64_MAX, out_program);
    return status;
}

/* Of all devices; programs of equal ones are the same, others are taken to be alike. */
static tpucl_status forecast(const tp_session *session, const tp_program *program,
                             uint64_t used_bytes, bool has_variables, tp_forecast *out_first,
                             bool *inout_fits)
{
    const int32_t devices = session->map->device_count;
    const tp_program **programs =
        TP_ARENA_NEW_ARRAY(session->arena, const tp_program *, (size_t)devices);
    if (!programs) return TPUCL_OUT_OF_MEMORY;
    for (int32_t d = 0; d < devices; d++)
        programs[d] = program;
    for (int32_t d = 0; d < devices; d++) {
        tp_forecast one;
        TP_TRY(
            tp_executor_forecast(session->executor, programs, d, used_bytes, has_variables, &one));
        if (one.wave_cores < 1 || tp_add_bytes(used_bytes, one.bytes) > one.free_bytes)
            *inout_fits = false;
        if (d == 0) *out_first = one;
    }
    return TPUCL_OK;
}

/* The evaluation is loaded beside the training. */
static tpucl_status add_evaluation(const tp_session *session, const tp_graph *graph,
                                   tp_session_plan *plan)
{
    tp_program *program = NULL;
    tp_memory_plan *memory = NULL;
    tp_forecast device = {0};
    bool fits = true;
    TP_TRY(compile_for(session, "evaluate", graph, &program, &fits));
    tpucl_status status = tp_memory_plan_create(program, session->topology,
                                                (int32_t)session->config->accumulate, &memory);
    if (status == TPUCL_OK) {
        plan->fits_hbm = plan->fits_hbm && tp_memory_plan_fits(memory, session->topology);
        if (plan->has_device)
            status = forecast(session, program, plan->device.bytes, true, &device, &fits);
    }
    if (status == TPUCL_OK && plan->has_device) {
        plan->fits_device = plan->fits_device && fits;
        plan->evaluate_bytes = device.bytes;
        plan->device.bytes = tp_add_bytes(plan->device.bytes, device.bytes);
        plan->device.core_bytes = tp_add_bytes(plan->device.core_bytes, device.core_bytes);
        plan->device.host_bytes = tp_add_bytes(plan->device.host_bytes, device.host_bytes);
    }
    tp_memory_plan_destroy(memory);
    tp_program_destroy(program);
    return status;
}

static tpucl_status plan_graphs(const tp_session *session, const tp_graph *train,
                                const tp_graph *evaluate, tp_session_plan *plan)
{
    TP_TRY(compile_for(session, "train", train, &plan->program, &plan->fits_device));
    TP_TRY(tp_memory_plan_create(plan->program, session->topology,
                                 (int32_t)session->config->accumulate, &plan->memory));
    plan->fits_hbm = tp_memory_plan_fits(plan->memory, session->topology);
    if (plan->has_device)
        TP_TRY(forecast(session, plan->program, 0, false, &plan->device, &plan->fits_device));
    return evaluate ? add_evaluation(session, evaluate, plan) : TPUCL_OK;
}

tpucl_status tp_session_plan_batch(const tp_session *session, int64_t per_core_batch,
                                   bool with_evaluation, tp_session_plan *out_plan)
{
    tp_graph *train = NULL, *evaluate = NULL;
    *out_plan = (tp_session_plan){.per_core_batch = per_core_batch,
                                  .has_device = session->executor != NULL};
    tpucl_status status = tp_session_build_graphs(session, per_core_batch, &train, &evaluate);
    if (status == TPUCL_OK)
        status = plan_graphs(session, train, with_evaluation ? evaluate : NULL, out_plan);
    tp_graph_destroy(train);
    tp_graph_destroy(evaluate);
    if (status == TPUCL_OK) return TPUCL_OK;
    tp_session_plan_deinit(out_plan);
    if (!is_too_large(status) || per_core_batch == 1) return status;
    *out_plan = (tp_session_plan){.per_core_batch = per_core_batch};
    return TPUCL_OK;
}

void tp_session_plan_deinit(tp_session_plan *plan)
{
    tp_memory_plan_destroy(plan->memory);
    tp_program_destroy(plan->program);
    plan->memory = NULL;
    plan->program = NULL;
}

/* ---- the largest batch ---- */

typedef struct search {
    const tp_session *session;
    bool needs_device;
    int64_t low, high; /* multiples of the step: fits (0: nothing yet), does not */
    int64_t at[2];     /* the last two that were tried, and what they take */
    double bytes[2];
    tp_batch_tries *tries; /* NULL: not kept */
} search;

static const tp_batch_try *find_try(const search *s, int64_t batch)
{
    for (size_t i = 0; s->tries && !s->needs_device && i < s->tries->count; i++)
        if (s->tries->items[i].batch == batch) return &s->tries->items[i];
    return NULL;
}

/* What the batch takes without the reserve; whether the devices have room for it. */
static tpucl_status measure_batch(search *s, int64_t batch, uint64_t *out_bytes,
                                  bool *out_fits_device)
{
    tp_session_plan plan;
    const uint64_t reserve = tp_memory_whole_figure(s->session->topology, TP_FIGURE_HBM_RESERVED);
    TP_TRY(tp_session_plan_batch(s->session, batch, false, &plan));
    *out_fits_device = !plan.has_device || plan.fits_device;
    *out_bytes = plan.memory ? tp_memory_plan_bytes(plan.memory) - reserve : UINT64_MAX;
    tp_session_plan_deinit(&plan);
    if (!s->tries) return TPUCL_OK;
    return tp_batch_tries_push(s->tries, (tp_batch_try){batch, *out_bytes});
}

static tpucl_status try_batch(search *s, int64_t batch)
{
    const uint64_t reserve = tp_memory_whole_figure(s->session->topology, TP_FIGURE_HBM_RESERVED);
    const uint64_t capacity = tp_memory_capacity(s->session->topology);
    const tp_batch_try *known = find_try(s, batch);
    uint64_t bytes = known ? known->bytes : 0;
    bool fits_device = true;
    if (!known) TP_TRY(measure_batch(s, batch, &bytes, &fits_device));
    const bool fits_hbm =
        bytes != UINT64_MAX && (!capacity || tp_add_bytes(bytes, reserve) <= capacity);
    if (bytes != UINT64_MAX) {
        s->at[0] = s->at[1], s->bytes[0] = s->bytes[1];
        s->at[1] = batch, s->bytes[1] = (double)bytes + (double)reserve;
    }
    if (fits_hbm && (!s->needs_device || fits_device))
        s->low = batch;
    else
        s->high = batch;
    return TPUCL_OK;
}

/* Memory grows about evenly with the batch: where it would reach the capacity. Between low and high, exclusive. */
static int64_t guess(const search *s, int64_t step)
{
    const double capacity = (double)tp_memory_capacity(s->session->topology);
    const double rise = (s->bytes[1] - s->bytes[0]) / (double)(s->at[1] - s->at[0]);
    int64_t batch = s->low + (s->high - s->low) / 2;
    if (capacity > 0 && s->at[0] && s->at[1] != s->at[0] && rise > 0) {
        const double reached = (double)s->at[1] + (capacity - s->bytes[1]) / rise;
        if (reached < (double)s->high) batch = (int64_t)reached;
        if (batch >= s->high - step) batch = s->high - step;
    }
    batch = batch / step * step;
    return batch > s->low ? batch : s->low + step;
}

/* The largest multiple of `step` up to `most`; s->low is 0 when there is none. A secant runs along a wall of
 * rounding, so every third try halves. */
static tpucl_status search_multiples(search *s, int64_t step, int64_t most)
{
    *s = (search){.session = s->session, .needs_device = s->needs_device, .tries = s->tries};
    s->high = most / step * step + step;
    for (int64_t batch = step; batch < s->high; batch *= 4) {
        TP_TRY(try_batch(s, batch));
        if (s->high == batch) break;
    }
    for (int tries = 1; s->high - s->low > step; tries++) {
        int64_t batch = guess(s, step);
        if (tries % 3 == 0) batch = s->low + (s->high - s->low) / step / 2 * step;
        TP_TRY(try_batch(s, batch));
    }
    return TPUCL_OK;
}

/* Features: the last dimension of every matrix of weights. */
static tpucl_status find_features(const tp_session *session, bool *out_fill_lanes)
{
    tp_graph *train = NULL, *evaluate = NULL;
    *out_fill_lanes = true;
    TP_TRY(tp_session_build_graphs(session, 1, &train, &evaluate));
    for (int32_t i = 0; i < train->variable_count; i++) {
        const tp_variable *variable = &train->variables[i];
        const tp_shape *shape = &variable->shape;
        if (variable->is_model && variable->is_trainable && shape->rank >= 2 &&
            shape->dims[shape->rank - 1] % LANES)
            *out_fill_lanes = false;
    }
    tp_graph_destroy(train);
    tp_graph_destroy(evaluate);
    return TPUCL_OK;
}

tpucl_status tp_session_find_batch(const tp_session *session, bool needs_device, int64_t most,
                                   tp_batch_tries *inout_tries, tp_batch_limit *out_limit)
{
    const bool is_tiled = tp_topology_figure(session->topology, TP_FIGURE_MXU_ROWS, 0) > 0;
    bool fills_lanes = false;
    if (!tp_memory_capacity(session->topology)) {
        if (!session->executor)
            return TP_FAIL(TPUCL_UNSUPPORTED,
                           "topology '%s' does not say how much HBM a core has, and there is no "
                           "device to look at",
                           session->topology->name);
        needs_device = true;
    }
    TP_TRY(find_features(session, &fills_lanes));
    const bool wants_lanes = is_tiled && !fills_lanes;
    search s = {.session = session,
                .needs_device = needs_device,
                .tries = needs_device ? NULL : inout_tries};
    if (most < 1 || most > MOST_BATCH) most = MOST_BATCH;
    *out_limit = (tp_batch_limit){0, 1, most};
    const int64_t steps[] = {LANES, EXAMPLES_STEP, 1};
    for (int i = wants_lanes ? 0 : 1; i < 3; i++) {
        /* 128 did not fit, so nothing above it does */
        const int64_t bound = i == 2 ? EXAMPLES_STEP - 1 : i == 1 && wants_lanes ? LANES - 1 : most;
        if (most < steps[i]) continue;
        TP_TRY(search_multiples(&s, steps[i], bound < most ? bound : most));
        *out_limit = (tp_batch_limit){s.low, steps[i], most};
        if (s.low) return TPUCL_OK;
    }
    return TPUCL_OK;
}

/* More than all examples in one step would only pad them. */
static int64_t most_useful(const tp_session *session)
{
    const int64_t cores = session->topology->cores;
    const int64_t all = session->train_count / cores + (session->train_count % cores != 0);
    if (all <= EXAMPLES_STEP) return all > 1 ? all : 1;
    const int64_t step = all > LANES ? LANES : EXAMPLES_STEP;
    return (all + step - 1) / step * step;
}

static tpucl_status refuse_one_example(const tp_session *session)
{
    tp_session_plan plan;
    TP_TRY(tp_session_plan_batch(session, 1, false, &plan));
    const tpucl_status status =
        plan.fits_hbm ? TP_FAIL(TPUCL_OUT_OF_DEVICE_MEMORY,
                                "not even one example per core fits the device: %llu bytes are "
                                "needed, %llu are free",
                                (unsigned long long)plan.device.core_bytes,
                                (unsigned long long)plan.device.free_bytes)
                      : tp_memory_refuse(plan.memory, session->topology, 1, NULL, 0);
    tp_session_plan_deinit(&plan);
    return status;
}

tpucl_status tp_session_choose_batch(tp_session *session)
{
    tp_config *config = session->config;
    tp_batch_limit limit;
    TP_TRY(tp_session_find_batch(session, true, most_useful(session), NULL, &limit));
    if (!limit.largest) return refuse_one_example(session);
    config->per_core_batch = limit.largest;
    config->global_batch = limit.largest * session->topology->cores;
    config->batch = -1; /* the numbers stand in what is written from now on */
    TP_LOG_INFO("plan", "batch auto: %lld per core, %lld in all%s", (long long)limit.largest,
                (long long)config->global_batch,
                limit.largest == limit.bound ? ", all examples" : "");
    return TPUCL_OK;
}

/* ---- refusal ---- */

static void say_bytes(char *out, size_t room, uint64_t bytes)
{
    snprintf(out, room, "%.2f %s", (double)bytes / (bytes >> 30 ? 0x1p30 : 0x1p20),
             bytes >> 30 ? "GiB" : "MiB");
}

/* The session's run in another precision or on another machine; only from files. */
static tpucl_status open_other(const tp_session *session, const char *override,
                               tp_session **out_other)
{
    tp_session_options options = {.plan_only = true};
    char *text = NULL;
    TP_TRY(tp_config_to_json(session->config, &text));
    const tpucl_status status =
        tp_config_parse(text, strlen(text), session->config->file, &override, 1, &options.config);
    tp_free(text);
    TP_TRY(status);
    return tp_session_create(&options, out_other);
}

static void remedy_of_batch(const tp_session *session, tp_remedy *remedies, int32_t *inout_count)
{
    tp_batch_limit limit = {0};
    tp_session_plan plan = {0};
    char bytes[32];
    if (tp_session_find_batch(session, false, session->config->per_core_batch, NULL, &limit) !=
            TPUCL_OK ||
        !limit.largest || tp_session_plan_batch(session, limit.largest, false, &plan) != TPUCL_OK)
        return;
    say_bytes(bytes, sizeof bytes, plan.memory ? tp_memory_plan_bytes(plan.memory) : 0);
    const int64_t times = (session->config->per_core_batch + limit.largest - 1) / limit.largest;
    snprintf(remedies[*inout_count].text, sizeof remedies[0].text,
             "per_core_batch=%lld, the largest that fits, needs %s (and accumulate=%lld makes up "
             "for it)",
             (long long)limit.largest, bytes, (long long)(times * session->config->accumulate));
    (*inout_count)++;
    tp_session_plan_deinit(&plan);
}

static void remedy_of_bf16(const tp_session *session, tp_remedy *remedies, int32_t *inout_count)
{
    tp_session *other = NULL;
    tp_session_plan plan = {0};
    char bytes[32];
    if (session->config->precision.policy != TP_PRECISION_FLOAT32 || session->options.source ||
        open_other(session, "precision=\"mixed_bfloat16\"", &other) != TPUCL_OK)
        return;
    if (tp_session_plan_batch(other, session->config->per_core_batch, false, &plan) == TPUCL_OK &&
        plan.memory) {
        say_bytes(bytes, sizeof bytes, tp_memory_plan_bytes(plan.memory));
        snprintf(remedies[*inout_count].text, sizeof remedies[0].text,
                 "precision=mixed_bfloat16 needs %s%s", bytes,
                 plan.fits_hbm ? ", which fits" : ", still too much");
        (*inout_count)++;
    }
    tp_session_plan_deinit(&plan);
    tp_session_destroy(other);
}

/* The smallest of the built-in machines with as many cores that has room. */
static void remedy_of_topology(const tp_session *session, uint64_t needed, tp_remedy *remedies,
                               int32_t *inout_count)
{
    const char *name;
    char best[64] = "", bytes[32];
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; (name = tp_topology_builtin_name(i)) != NULL; i++) {
        tp_topology *topology = NULL;
        if (tp_topology_load(name, &topology) != TPUCL_OK) continue;
        const uint64_t reserve = tp_memory_whole_figure(topology, TP_FIGURE_HBM_RESERVED);
        const uint64_t capacity = tp_memory_capacity(topology);
        if (topology->cores == session->real_cores && capacity >= needed + reserve &&
            capacity < least) {
            least = capacity;
            snprintf(best, sizeof best, "%s", topology->name);
        }
        tp_topology_destroy(topology);
    }
    if (!*best) return;
    say_bytes(bytes, sizeof bytes, least);
    snprintf(remedies[*inout_count].text, sizeof remedies[0].text,
             "topology=%s has %s per core, enough", best, bytes);
    (*inout_count)++;
}

static tpucl_status refuse(const tp_session *session, const tp_memory_plan *memory)
{
    tp_remedy remedies[3];
    int32_t count = 0;
    const uint64_t reserve = tp_memory_whole_figure(session->topology, TP_FIGURE_HBM_RESERVED);
    remedy_of_batch(session, remedies, &count);
    remedy_of_bf16(session, remedies, &count);
    remedy_of_topology(session, tp_memory_plan_bytes(memory) - reserve, remedies, &count);
    return tp_memory_refuse(memory, session->topology, session->config->per_core_batch, remedies,
                            count);
}

tpucl_status tp_session_check_hbm(const tp_session *session, const tp_program *program)
{
    tp_memory_plan *memory = NULL;
    TP_TRY(tp_memory_plan_create(program, session->topology, (int32_t)session->config->accumulate,
                                 &memory));
    const tpucl_status status =
        tp_memory_plan_fits(memory, session->topology) ? TPUCL_OK : refuse(session, memory);
    tp_memory_plan_destroy(memory);
    return status;
}
