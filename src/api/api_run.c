/* SPDX-License-Identifier: Apache-2.0
 * Runs from a configuration: a training session, and the folder that its results go to. The JSON
 * forms are in api_run_json.c. */
#include "api/run_internal.h"

#include <stdio.h>
#include "check/check.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/log.h"
#include "io/store.h"

tpucl_status tp_api_read_config(const tpucl_run_options *options, tp_config **out_config)
{
    if (options->override_count < 0 || (options->override_count && !options->overrides))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "override_count is %d, but 'overrides' %s",
                       (int)options->override_count, options->overrides ? "is there" : "is NULL");
    size_t count = (size_t)options->override_count;
    for (size_t i = 0; i < count; i++)
        if (!options->overrides[i])
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "overrides[%zu] of %zu is NULL", i, count);
    if (options->config_file)
        TP_TRY(tp_config_read_file(options->config_file, options->overrides, count, out_config));
    else if (options->config_text)
        TP_TRY(tp_config_parse(options->config_text, strlen(options->config_text), "config_text",
                               options->overrides, count, out_config));
    else
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "neither 'config_file' nor 'config_text' is given");
    return TPUCL_OK;
}

static tpucl_status write_text(tpucl_run *run, const char *name, const char *text)
{
    const char *path = tp_file_join(run->arena, run->info.output_dir, name);
    if (!path) return TPUCL_OUT_OF_MEMORY;
    return tp_store_write(path, text, strlen(text));
}

static tpucl_status write_config(tpucl_run *run)
{
    char *text = NULL;
    TP_TRY(tp_config_to_json(tp_session_config(run->session), &text));
    const tpucl_status status = write_text(run, "config.json", text);
    tp_free(text);
    return status;
}

/* Fails now, not after hours, when results could not be written. Not when a run is created: an evaluation
 * reads from a folder that may be read-only. In a bucket only writing shows whether one may write. */
static tpucl_status prepare_output(tpucl_run *run)
{
    const char *folder = tp_session_config(run->session)->output_dir;
    if (!*folder) return TPUCL_OK;
    static const char *const names[] = {"params.safetensors", "config.json", "result.json"};
    if (tp_store_is_remote(folder)) return write_config(run);
    TP_TRY(tp_store_make_folder(folder));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tp_file_writer *writer = NULL;
        const char *path = tp_file_join(run->arena, folder, names[i]);
        if (!path) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_file_writer_open(tp_store_path(path), &writer));
        tp_file_writer_abort(writer);
    }
    return TPUCL_OK;
}

/* What the layers without a policy of their own compute with: with bf16 weights the mixed policy is bfloat16. */
static const char *policy_name(const tp_config *config)
{
    tp_precision_policy policy = (tp_precision_policy)config->precision.policy;
    if (policy != TP_PRECISION_FLOAT32)
        policy = config->precision.weights == TP_CONFIG_BFLOAT16 ? TP_PRECISION_BFLOAT16
                                                                 : TP_PRECISION_MIXED_BFLOAT16;
    return tp_precision_policy_name(policy);
}

static tpucl_status fill_info(tpucl_run *run)
{
    const tp_config *config = tp_session_config(run->session);
    const tp_core_map *map = tp_session_core_map(run->session);
#define NAME(id, symbol, name, keys) name,
    static const char *const optimizers[] = {TP_OPTIMIZER_LIST(NAME)};
#undef NAME
    tp_session_info session;
    tp_session_get_info(run->session, &session);
    run->metric_count = tp_session_metric_count(run->session);
    for (int32_t i = 0; i < run->metric_count; i++)
        run->metric_names[i] = tp_session_metric_name(run->session, i);
    run->info = (tpucl_run_info){
        .name = config->name,
        .topology = tp_session_topology(run->session)->name,
        .precision = policy_name(config),
        .optimizer = optimizers[config->optimizer.name],
        .math = config->math == TP_MATH_FAST ? "fast" : "exact",
        .cores = tp_session_real_cores(run->session),
        .devices = map ? map->device_count : 0, /* none: the reference interpreter computes */
        .per_core_batch = config->per_core_batch,
        .global_batch = config->global_batch,
        .train_examples = session.train_examples,
        .test_examples = session.test_examples,
        .steps = session.steps,
        .steps_per_epoch = session.steps_per_epoch,
        .epochs = session.epochs,
        .parameter_count = session.parameter_count,
        .peak_core_bytes = session.peak_core_bytes,
        .variable_bytes = session.memory.variable_bytes,
        .flops_per_core_step = session.flops_per_core_step,
        .output_dir = config->output_dir,
    };
    TP_TRY(tp_config_sha256(config, run->info.config_sha256));
    return TPUCL_OK;
}

static void on_build(const tp_build_progress *progress, void *user)
{
    const tpucl_run *run = user;
    run->building(run->building_user, progress->label, (int32_t)progress->done,
                  (int32_t)progress->total);
}

tpucl_status tpucl_run_create(const tpucl_run_options *options, tpucl_run **out_run)
{
    TP_API_NEED(out_run);
    *out_run = NULL;
    tpucl_run_options all;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_run_options));
    if (all.split < 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'split' is %d, expected 0 (the default) or more",
                       (int)all.split);
    tpucl_run *run = TP_NEW(tpucl_run);
    if (!run) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    run->building = all.building;
    run->building_user = all.building_user;
    run->overwrite = all.overwrite;
    tp_session_options session = {.selector = all.device,
                                  .split = all.split,
                                  .synchronous = all.synchronous,
                                  .build_progress = all.building ? on_build : NULL,
                                  .build_user = run};
    TP_TRY_GOTO(status, tp_arena_create(0, &run->arena), failed);
    TP_TRY_GOTO(status, tp_api_read_config(&all, &session.config), failed);
    TP_TRY_GOTO(status, tp_session_create(&session, &run->session), failed);
    TP_TRY_GOTO(status, fill_info(run), failed);
    *out_run = run;
    return TPUCL_OK;
failed:
    tpucl_run_destroy(run);
    return status;
}

void tpucl_run_destroy(tpucl_run *run)
{
    if (!run) return;
    tp_session_destroy(run->session);
    tp_free(run->epochs);
    tp_free(run->launches);
    tp_arena_destroy(run->arena);
    tp_free(run);
}

const tpucl_run_info *tpucl_run_get_info(const tpucl_run *run)
{
    return &run->info;
}

tpucl_status tpucl_run_device_info(const tpucl_run *run, int32_t index, tpucl_device_info *out_info)
{
    TP_API_NEED(run);
    TP_API_NEED(out_info);
    const tp_core_map *map = tp_session_core_map(run->session);
    if (index < 0 || index >= run->info.devices)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "device %d of a run on %d", (int)index,
                       (int)run->info.devices);
    const tp_device *device = map->devices[index];
    tp_api_device_info(tp_device_label(device), tp_device_get_caps(device), true, "", out_info);
    return TPUCL_OK;
}

/* ---- training ---- */

/* The same metrics in the same order. */
static void copy_metrics(const tpucl_run *run, const double *from, double *to)
{
    _Static_assert((int)TPUCL_MAX_METRICS == (int)TP_SESSION_MAX_METRICS, "one limit");
    memcpy(to, from, (size_t)run->metric_count * sizeof *to);
}

tpucl_epoch tp_api_epoch(const tpucl_run *run, const tp_session_epoch *epoch)
{
    tpucl_epoch public = {
        .epoch = epoch->epoch,
        .steps = epoch->steps,
        .seconds = epoch->seconds,
        .examples_per_second = epoch->seconds > 0 ? (double)epoch->examples / epoch->seconds : 0,
        .train_loss = epoch->train_loss,
        .train_accuracy = epoch->train_accuracy,
        .eval_loss = epoch->has_eval ? epoch->eval_loss : -1,
        .eval_accuracy = epoch->has_eval ? epoch->eval_accuracy : -1,
        .eval_seconds = epoch->has_eval ? epoch->eval_seconds : 0,
        .has_eval = epoch->has_eval,
        .metric_count = run->metric_count,
        .metric_names = run->metric_names,
    };
    copy_metrics(run, epoch->train_metrics, public.train_metrics);
    copy_metrics(run, epoch->eval_metrics, public.eval_metrics);
    return public;
}

typedef struct bridge { /* the session's callbacks to the caller's */
    const tpucl_run *run;
    const tpucl_run_callbacks *callbacks;
} bridge;

static void on_progress(void *user, const tp_session_progress *progress)
{
    const tpucl_run_callbacks *callbacks = ((bridge *)user)->callbacks;
    tpucl_progress public = {progress->step,   progress->steps, progress->epoch,
                             progress->epochs, progress->loss,  progress->examples_per_second};
    if (callbacks && callbacks->progress) callbacks->progress(callbacks->user, &public);
}

static void on_epoch(void *user, const tp_session_epoch *epoch)
{
    const tpucl_run_callbacks *callbacks = ((bridge *)user)->callbacks;
    tpucl_epoch public = tp_api_epoch(((bridge *)user)->run, epoch);
    if (callbacks && callbacks->epoch) callbacks->epoch(callbacks->user, &public);
}

static tpucl_status fill_result(tpucl_run *run, bool interrupted)
{
    int32_t count;
    tp_session_info info;
    const tp_session_epoch *epochs = tp_session_epochs(run->session, &count);
    tpucl_epoch *copies = TP_NEW_ARRAY(tpucl_epoch, (size_t)count);
    if (!copies) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; i++)
        copies[i] = tp_api_epoch(run, &epochs[i]);
    tp_free(run->epochs);
    run->epochs = copies;
    tp_session_get_info(run->session, &info);

    tpucl_run_result *result = &run->result;
    const tp_breakdown *breakdown = tp_session_breakdown(run->session);
    tp_breakdown_shares shares = tp_breakdown_get_shares(breakdown);
    char verdict[TP_BREAKDOWN_VERDICT_BYTES];
    memset(result, 0, sizeof *result);
    result->steps = tp_session_steps_done(run->session);
    result->epoch_count = count;
    result->epochs = copies;
    result->breakdown.input = shares.input;
    result->breakdown.compute = shares.compute;
    result->breakdown.memory = shares.memory;
    result->breakdown.idle = shares.idle;
    snprintf(result->breakdown.verdict, sizeof result->breakdown.verdict, "%s",
             tp_breakdown_verdict(breakdown, verdict));
    result->first_step_seconds = info.first_step_seconds;
    result->build_seconds = info.build_seconds;
    result->interrupted = interrupted;
    TP_TRY(tp_session_params_sha256(run->session, result->params_sha256));
    return TPUCL_OK;
}

/* params.safetensors first: a result.json says that the parameters beside it are complete. */
static tpucl_status write_output(tpucl_run *run)
{
    if (!*run->info.output_dir) return TPUCL_OK;
    char *result = NULL;
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    const char *params = tp_file_join(run->arena, run->info.output_dir, "params.safetensors");
    if (!params) return status;
    TP_TRY_GOTO(status, tp_session_save_params(run->session, params), done);
    TP_TRY_GOTO(status, write_config(run), done);
    TP_TRY_GOTO(status, tpucl_run_result_json(run, &result), done);
    TP_TRY_GOTO(status, write_text(run, "result.json", result), done);
done:
    tp_free(result);
    return status;
}

/* What is known to go wrong is said once, in the log, not found out after hours. */
static tpucl_status warn_of_hazards(const tpucl_run *run)
{
    tp_check_report *report = NULL;
    const tp_check_input input = {.train = tp_session_train_graph(run->session),
                                  .config = tp_session_config(run->session),
                                  .topology = tp_session_topology(run->session),
                                  .train_examples = run->info.train_examples};
    TP_TRY(tp_check_create(&report));
    const tpucl_status status = tp_check_run_hazards(&input, report);
    for (size_t i = 0; status == TPUCL_OK && i < report->findings.count; i++) {
        const tp_finding *finding = &report->findings.items[i];
        if (finding->severity <= TP_SEVERITY_WARNING)
            TP_LOG_WARNING("check", "%s: %s [%s]; %s", finding->where, finding->text, finding->rule,
                           finding->remedy);
    }
    tp_check_destroy(report);
    return status;
}

static tpucl_status finish_training(tpucl_run *run, bool interrupted)
{
    TP_TRY(fill_result(run, interrupted));
    return write_output(run);
}

tpucl_status tpucl_run_train(tpucl_run *run, const tpucl_run_callbacks *callbacks,
                             tpucl_run_result *out_result)
{
    TP_API_NEED(run);
    TP_TRY(prepare_output(run));
    TP_TRY(tp_session_prepare_checkpoints(run->session, run->overwrite));
    TP_TRY(warn_of_hazards(run));
    bridge user = {run, callbacks};
    tp_session_callbacks session = {on_progress, on_epoch, &user};
    tpucl_status status = tp_session_train(run->session, &session);
    bool interrupted = status == TPUCL_INTERRUPTED;
    /* A last checkpoint that could not be saved does not keep the results from where they can be. */
    const bool is_trained = interrupted || tp_session_steps_done(run->session) == run->info.steps;
    if (status != TPUCL_OK && !is_trained) TP_TRY(status);
    tpucl_error error;
    tp_error_capture(&error);
    const tpucl_status written = finish_training(run, interrupted);
    if (status != TPUCL_OK && !interrupted) {
        tp_error_restore(&error);
        return status;
    }
    TP_TRY(written);
    if (out_result) *out_result = run->result;
    if (interrupted)
        return TP_FAIL(TPUCL_INTERRUPTED, "stopped after step %lld of %lld",
                       (long long)run->result.steps, (long long)run->info.steps);
    return TPUCL_OK;
}

tpucl_status tpucl_run_resume(tpucl_run *run, const char *path, tpucl_resumed *out_resumed)
{
    TP_API_NEED(run);
    tp_session_resumed resumed;
    TP_TRY(tp_session_resume(run->session, path, &resumed));
    const char *copy = tp_arena_strdup(run->arena, resumed.path);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    if (out_resumed) *out_resumed = (tpucl_resumed){copy, resumed.step};
    return TPUCL_OK;
}

void tpucl_run_stop(tpucl_run *run)
{
    if (run) tp_session_stop(run->session);
}

/* ---- evaluation, parameters ---- */

tpucl_status tpucl_run_evaluate(tpucl_run *run, const char *part, tpucl_epoch *out_result)
{
    TP_API_NEED(run);
    TP_API_NEED(out_result);
    tp_session_epoch epoch; /* the session reports an evaluation in the fields of training */
    TP_TRY(tp_session_evaluate(run->session, part ? part : "test", &epoch));
    *out_result = (tpucl_epoch){.epoch = epoch.epoch,
                                .train_loss = -1,
                                .train_accuracy = -1,
                                .eval_loss = epoch.train_loss,
                                .eval_accuracy = epoch.train_accuracy,
                                .eval_seconds = epoch.seconds,
                                .has_eval = true,
                                .metric_count = run->metric_count,
                                .metric_names = run->metric_names};
    copy_metrics(run, epoch.train_metrics, out_result->eval_metrics);
    return TPUCL_OK;
}

tpucl_status tpucl_run_load_params(tpucl_run *run, const char *path)
{
    TP_API_NEED(run);
    TP_API_NEED(path);
    TP_TRY(tp_session_load_params(run->session, path));
    return TPUCL_OK;
}

tpucl_status tpucl_run_params_sha256(tpucl_run *run, char out_hex[65])
{
    TP_API_NEED(run);
    TP_API_NEED(out_hex);
    TP_TRY(tp_session_params_sha256(run->session, out_hex));
    return TPUCL_OK;
}
