/* SPDX-License-Identifier: Apache-2.0
 * Planning a run on several machines. Each has a session that opens devices, but loads nothing.
 */
#include "api/plan_internal.h"

#include <stdio.h>
#include <unistd.h>
#include "check/padding.h"
#include "core/alloc.h"

enum { MOST_TOPOLOGIES = 64 };

/* Tries that topologies share: see tp_batch_tries. */
typedef struct shared_tries {
    int32_t cores, math;
    bool is_tiled, is_bfloat16;
    tp_batch_tries tries;
} shared_tries;
TP_ARRAY_DEFINE(all_tries, shared_tries)

typedef struct planner {
    const tpucl_run_options *run;
    const tpucl_plan_options *options;
    tpucl_plan_report *report;
    all_tries tries;
    bool has_device, has_data; /* until found out to be missing */
    bool is_here;              /* the topology is the device's own, with these figures: */
    tp_roofline roofline;
    tp_device_caps caps; /* compute_units 0: not measured yet */
} planner;

static tpucl_status add_note(planner *p, const char *format, const char *what)
{
    char text[700];
    snprintf(text, sizeof text, format, what);
    const char *copy = tp_arena_strdup(p->report->arena, text);
    return copy ? tp_plan_notes_push(&p->report->notes, copy) : TPUCL_OUT_OF_MEMORY;
}

/* ---- sessions ---- */

/* What a model without a training leaves open: neither changes memory or time as much as the layers do. */
static size_t stand_in_keys(const planner *p, const char **out_overrides)
{
    static const char *const keys[] = {"loss", "optimizer"};
    static const char *const values[] = {"loss=\"mean_squared_error\"", "optimizer=\"SGD\""};
    const char *text = p->run->config_text;
    tp_json_document *document = NULL;
    size_t count = 0;
    if (!p->options->without_data || !text ||
        tp_json_parse(text, strlen(text), "config_text", &document) != TPUCL_OK)
        return 0;
    for (int i = 0; i < 2; i++)
        if (!tp_json_member(tp_json_root(document), keys[i])) out_overrides[count++] = values[i];
    tp_json_destroy(document);
    return count;
}

/* The configuration with the run's overrides, and then these, where they are not NULL. */
static tpucl_status read_config(const planner *p, const char *topology, const char *precision,
                                tp_config **out_config)
{
    const size_t given = (size_t)(p->run->override_count > 0 ? p->run->override_count : 0);
    const char **overrides = TP_NEW_ARRAY(const char *, given + 4);
    tpucl_run_options options = *p->run;
    if (!overrides) return TPUCL_OUT_OF_MEMORY;
    const size_t first = stand_in_keys(p, overrides);
    for (size_t i = 0; i < given; i++)
        overrides[first + i] = p->run->overrides[i];
    options.overrides = overrides;
    options.override_count = (int32_t)(first + given);
    if (topology) overrides[options.override_count++] = topology;
    if (precision) overrides[options.override_count++] = precision;
    const tpucl_status status = tp_api_read_config(&options, out_config);
    tp_free(overrides);
    return status;
}

static tpucl_status open_once(const planner *p, const char *topology, const char *precision,
                              tp_session **out_session)
{
    tp_session_options settings = {.plan_only = true,
                                   .opens_devices = p->has_device,
                                   .selector = p->run->device,
                                   .split = p->run->split};
    TP_TRY(read_config(p, topology, precision, &settings.config));
    if (!p->has_data) {
        const tpucl_status status = tp_api_stand_in(settings.config, &settings.source);
        if (status != TPUCL_OK) {
            tp_config_destroy(settings.config);
            return status;
        }
    }
    if (p->is_here) {
        const tpucl_status status =
            tp_api_topology_here(&p->roofline, &p->caps, &settings.topology);
        if (status != TPUCL_OK) {
            tp_config_destroy(settings.config);
            tp_source_destroy(settings.source);
            return status;
        }
    }
    return tp_session_create(&settings, out_session);
}

/* Without devices and data that are not there. */
static tpucl_status open_session(planner *p, const char *topology, const char *precision,
                                 tp_session **out_session)
{
    tpucl_status status = open_once(p, topology, precision, out_session);
    if (status == TPUCL_NOT_FOUND && p->has_data) {
        tpucl_error error;
        tp_error_capture(&error);
        p->has_data = false;
        status = open_once(p, topology, precision, out_session);
        if (status == TPUCL_OK) return add_note(p, "planned without data: %s", error.message);
        tp_error_restore(&error);
        return TPUCL_NOT_FOUND;
    }
    if (status == TPUCL_NO_DEVICE && p->has_device && !p->run->device) {
        p->has_device = false;
        TP_TRY(add_note(p, "planned for %s: there is no device here", "a common CPU"));
        return open_session(p, topology, precision, out_session);
    }
    return status;
}

/* ---- rows ---- */

static tpucl_status find_tries(planner *p, const tp_session *session, bool is_bfloat16,
                               tp_batch_tries **out_tries)
{
    const tp_topology *topology = tp_session_topology(session);
    const shared_tries wanted = {.cores = tp_session_real_cores(session),
                                 .math = tp_session_config(session)->math,
                                 .is_tiled =
                                     tp_topology_figure(topology, TP_FIGURE_MXU_ROWS, 0) > 0,
                                 .is_bfloat16 = is_bfloat16};
    for (size_t i = 0; i < p->tries.count; i++) {
        shared_tries *one = &p->tries.items[i];
        *out_tries = &one->tries;
        if (one->cores == wanted.cores && one->math == wanted.math &&
            one->is_tiled == wanted.is_tiled && one->is_bfloat16 == wanted.is_bfloat16)
            return TPUCL_OK;
    }
    TP_TRY(all_tries_push(&p->tries, wanted));
    *out_tries = &p->tries.items[p->tries.count - 1].tries;
    return TPUCL_OK;
}

/* Of one precision; 0 where nobody knows how much memory there is. */
static tpucl_status find_largest(planner *p, const char *topology, bool is_bfloat16,
                                 int64_t *out_largest, int64_t *out_step)
{
    tp_session *session = NULL;
    tp_batch_tries *tries = NULL;
    tp_batch_limit limit = {0};
    TP_TRY(open_session(p, topology,
                        is_bfloat16 ? "precision=\"mixed_bfloat16\"" : "precision=\"float32\"",
                        &session));
    tpucl_status status = find_tries(p, session, is_bfloat16, &tries);
    if (status == TPUCL_OK) status = tp_session_find_batch(session, false, 0, tries, &limit);
    if (status == TPUCL_UNSUPPORTED) status = TPUCL_OK;
    tp_session_destroy(session);
    *out_largest = limit.largest;
    *out_step = limit.step;
    return status;
}

static const char *policy_name(const tp_config *config)
{
    tp_precision_policy policy = (tp_precision_policy)config->precision.policy;
    if (policy != TP_PRECISION_FLOAT32 && config->precision.weights == TP_CONFIG_BFLOAT16)
        policy = TP_PRECISION_BFLOAT16;
    return tp_precision_policy_name(policy);
}

static void fill_device(const tp_session *session, const tp_session_plan *plan, tpucl_plan_row *row)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0) row->host_limit_bytes = (uint64_t)pages * (uint64_t)page_bytes;
    if (!plan->has_device) return;
    tp_device_memory memory;
    tp_device *device = tp_session_core_map(session)->devices[0];
    tp_device_get_memory(device, &memory);
    row->device = tp_device_get_caps(device)->name;
    row->wave_cores = plan->device.wave_cores;
    row->device_bytes = plan->device.bytes;
    row->device_least_bytes = plan->device.core_bytes;
    row->device_limit_bytes = memory.limit_bytes;
    row->host_bytes = plan->device.host_bytes;
}

static tpucl_status fill_row(planner *p, tp_plan_entry *entry)
{
    const tp_session *session = entry->session;
    const tp_config *config = tp_session_config(session);
    const tp_topology *topology = tp_session_topology(session);
    tpucl_plan_row *row = &entry->row;
    tp_session_info info;
    tp_session_get_info(session, &info);
    *row = (tpucl_plan_row){.topology = topology->name,
                            .precision = policy_name(config),
                            .cores = tp_session_real_cores(session),
                            .micro_batches = (int32_t)config->accumulate,
                            .per_core_batch = config->per_core_batch,
                            .global_batch = config->global_batch,
                            .capacity_bytes = tp_memory_capacity(topology)};
    TP_TRY(tp_session_plan_batch(session, config->per_core_batch, info.test_examples > 0,
                                 &entry->plan));
    fill_device(session, &entry->plan, row);
    const tp_memory_plan *memory = entry->plan.memory;
    if (!memory) {
        row->refusal = "the step cannot be compiled: its arrays have more elements than can be "
                       "counted";
        return TPUCL_OK;
    }
    row->here_bytes = memory->here.total;
    row->tpu_bytes = memory->tpu.total;
    row->core_bytes = memory->here.total - memory->here.bytes[TP_MEMORY_RESERVE];
    row->gap_share = memory->waste;
    row->fits = entry->plan.fits_hbm;
    if (row->fits) return TPUCL_OK;
    const tpucl_status status = tp_session_check_hbm(session, entry->plan.program);
    if (status == TPUCL_OK) {
        row->refusal = "the evaluation does not fit";
        return TPUCL_OK;
    }
    if (status != TPUCL_OUT_OF_DEVICE_MEMORY) return status;
    row->refusal = tp_arena_strdup(p->report->arena, tpucl_last_error()->message);
    return row->refusal ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

/* ---- time ---- */

static void fill_epoch(const planner *p, int64_t examples, tpucl_plan_row *row)
{
    if (p->options->examples) examples = p->options->examples;
    if (examples < 1 || row->global_batch < 1) return;
    const double steps =
        (double)(examples / row->global_batch + (examples % row->global_batch != 0));
    row->epoch_seconds = steps * row->step_seconds;
    row->epoch_low_seconds = steps * row->step_low_seconds;
    row->epoch_high_seconds = steps * row->step_high_seconds;
    row->epoch_cost = p->options->price_per_hour * row->epoch_seconds / 3600;
}

static tpucl_status project_row(const planner *p, tp_plan_entry *entry)
{
    const tp_topology *topology = tp_session_topology(entry->session);
    tpucl_plan_row *row = &entry->row;
    tp_work *work = NULL;
    tp_session_info info;
    if (!entry->plan.program) return TPUCL_OK;
    TP_TRY(tp_work_create(tp_session_train_graph(entry->session), entry->plan.program,
                          row->per_core_batch, &work));
    tp_topology real = *topology;
    real.cores = row->cores;
    const tp_project_options options = {.machine = tp_machine_class_of(topology, work),
                                        .micro_batches = row->micro_batches};
    const tpucl_status status = tp_project(work, &real, &options, &entry->projection);
    tp_work_destroy(work);
    if (status != TPUCL_OK) return status == TPUCL_UNSUPPORTED ? TPUCL_OK : status;
    const tp_projection *projection = entry->projection;
    row->machine_class = tp_machine_class_name(projection->machine);
    row->step_seconds = projection->seconds;
    row->step_low_seconds = projection->low;
    row->step_high_seconds = projection->high;
    row->device_seconds = projection->device_seconds;
    row->feed_seconds = projection->feed_seconds;
    row->sum_seconds = projection->sum_seconds;
    row->examples_per_second = projection->examples_per_second;
    row->limiter = tp_limiter_name(projection->limiter);
    row->mxu_share = projection->mxu_share;
    row->peak_share = projection->peak_share;
    row->ridge_batch = projection->ridge_batch < 1e15 ? (int64_t)projection->ridge_batch : 0;
    row->recurrent = projection->is_recurrent;
    tp_session_get_info(entry->session, &info);
    fill_epoch(p, p->has_data ? info.train_examples : 0, row);
    return TPUCL_OK;
}

static tpucl_status add_topology(planner *p, const char *override)
{
    TP_TRY(tp_plan_entries_push(&p->report->entries, (tp_plan_entry){.session = NULL}));
    tp_plan_entry *entry = &p->report->entries.items[p->report->entries.count - 1];
    TP_TRY(open_session(p, override, NULL, &entry->session));
    TP_TRY(fill_row(p, entry));
    TP_TRY(project_row(p, entry));
    TP_TRY(find_largest(p, override, false, &entry->row.largest_float32, &entry->row.step_float32));
    return find_largest(p, override, true, &entry->row.largest_bfloat16, &entry->row.step_bfloat16);
}

/* "here": measured once. */
static tpucl_status add_here(planner *p)
{
    if (p->caps.compute_units == 0)
        TP_TRY(tp_api_measure_here(p->run->device, p->run->split, &p->roofline, &p->caps));
    p->is_here = true;
    const tpucl_status status = add_topology(p, NULL);
    p->is_here = false;
    return status;
}

/* "v2-8,here,my/machine.json" */
static tpucl_status add_topologies(planner *p, const char *list)
{
    int32_t total = 1, done = 0;
    for (const char *comma = list; (comma = strchr(comma, ',')) != NULL; comma++)
        total++;
    if (total > MOST_TOPOLOGIES)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%d topologies are asked for, expected at most %d",
                       total, MOST_TOPOLOGIES);
    for (const char *name = list; name; done++) {
        const size_t length = strcspn(name, ",");
        const char *one = tp_arena_strndup(p->report->arena, name, length);
        const char *override =
            one ? tp_arena_printf(p->report->arena, "topology=\"%s\"", one) : NULL;
        if (!override) return TPUCL_OUT_OF_MEMORY;
        if (p->options->progress) p->options->progress(p->options->user, one, done, total);
        if (strcmp(one, "here") == 0)
            TP_TRY(add_here(p));
        else
            TP_TRY(add_topology(p, override));
        name = name[length] ? name + length + 1 : NULL;
    }
    return TPUCL_OK;
}

static tpucl_status check_options(const tpucl_plan_options *options)
{
    if (options->examples < 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'examples' is %lld, expected 0 or more",
                       (long long)options->examples);
    if (!(options->price_per_hour >= 0) || options->price_per_hour > 1e9)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'price_per_hour' is %g, expected 0 to 1e9",
                       options->price_per_hour);
    return TPUCL_OK;
}

tpucl_status tpucl_plan(const tpucl_run_options *run, const tpucl_plan_options *options,
                        tpucl_plan_report **out_report)
{
    TP_API_NEED(out_report);
    *out_report = NULL;
    tpucl_run_options runs;
    tpucl_plan_options all;
    TP_TRY(TP_API_OPTIONS(run, &runs, tpucl_run_options));
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_plan_options));
    TP_TRY(check_options(&all));
    planner p = {.run = &runs,
                 .options = &all,
                 .has_device = !all.without_device,
                 .has_data = !all.without_data};
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    p.report = TP_NEW(tpucl_plan_report);
    if (!p.report) return status;
    status = tp_arena_create(0, &p.report->arena);
    if (status == TPUCL_OK)
        status = all.topologies ? add_topologies(&p, all.topologies) : add_topology(&p, NULL);
    for (size_t i = 0; i < p.tries.count; i++)
        tp_batch_tries_deinit(&p.tries.items[i].tries);
    all_tries_deinit(&p.tries);
    if (status != TPUCL_OK) {
        tpucl_error error;
        tp_error_capture(&error);
        tpucl_plan_report_destroy(p.report);
        tp_error_restore(&error);
        return status;
    }
    *out_report = p.report;
    return TPUCL_OK;
}

void tpucl_plan_report_destroy(tpucl_plan_report *report)
{
    if (!report) return;
    for (size_t i = 0; i < report->entries.count; i++) {
        tp_projection_destroy(report->entries.items[i].projection);
        tp_session_plan_deinit(&report->entries.items[i].plan);
        tp_session_destroy(report->entries.items[i].session);
    }
    tp_plan_entries_deinit(&report->entries);
    tp_plan_notes_deinit(&report->notes);
    tp_arena_destroy(report->arena);
    tp_free(report);
}
