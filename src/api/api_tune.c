/* SPDX-License-Identifier: Apache-2.0
 * Tuning. */
#include "api/run_internal.h"
#include "api/tune_internal.h"
#include "compile/compile.h"
#include "core/alloc.h"
#include "core/env.h"
#include "device/program_cache.h"
#include "kernel/records.h"
#include "train/session.h"
#include "tune/problem_line.h"
#include "tune/tuner.h"

/* Cores of a wave for products that do not fill a device by themselves; those of more work are
 * timed for one core. */
enum { MAX_CORES = 8 };
#define LARGE_FLOPS 1e8
enum { DEFAULT_ROUNDS = 7, MAX_SUB_DEVICES = 256 };

struct tpucl_tune_report {
    tp_arena *arena;
    tp_tune_problems problems;
    tp_tune_result *results;
    const char *file;
    tpucl_device_info device;
    char device_class[TP_DEVICE_CLASS_BYTES];
    const char **texts; /* best and heuristic of each result */
    const char **wrong; /* sentences */
    int32_t wrong_count;
    bool was_stopped;
};

/* ---- the device ---- */

static tpucl_status open_first(const char *selector, const tp_device_options *options,
                               tp_device **out_device)
{
    tp_device_list *list = NULL;
    tp_device_choice choice;
    tp_device *devices[MAX_SUB_DEVICES];
    TP_TRY(tp_device_list_create(&list));
    tpucl_status status = tp_device_list_select(list, selector, &choice);
    if (status == TPUCL_OK && choice.split > MAX_SUB_DEVICES)
        status = TP_FAIL(TPUCL_UNSUPPORTED, "%u sub-devices, at most %d are supported",
                         choice.split, MAX_SUB_DEVICES);
    if (status == TPUCL_OK)
        status = tp_device_open_split(list, choice.index, choice.split, options, devices);
    tp_device_list_destroy(list);
    TP_TRY(status);
    for (uint32_t i = 1; i < choice.split; i++)
        tp_device_close(devices[i]);
    *out_device = devices[0];
    return TPUCL_OK;
}

tpucl_status tp_api_tune_open(const char *selector, tp_api_tune_device *out_device)
{
    *out_device = (tp_api_tune_device){0};
    tpucl_status status = tp_program_cache_open(NULL, 0, &out_device->cache);
    if (status == TPUCL_NOT_FOUND) { /* no folder: kernels are built every time */
        tp_error_clear();
        status = TPUCL_OK;
    }
    const tp_device_options options = {.cache = out_device->cache};
    if (status == TPUCL_OK) status = open_first(selector, &options, &out_device->device);
    if (status == TPUCL_OK)
        status =
            tp_verdicts_open(out_device->device,
                             out_device->cache ? tp_program_cache_folder(out_device->cache) : NULL,
                             NULL, NULL, &out_device->verdicts);
    if (status != TPUCL_OK) tp_api_tune_close(out_device);
    return status;
}

void tp_api_tune_close(tp_api_tune_device *device)
{
    tp_verdicts_close(device->verdicts);
    tp_device_close(device->device);
    if (device->cache) tp_program_cache_close(device->cache);
    *device = (tp_api_tune_device){0};
}

/* ---- what to tune ---- */

typedef struct collector {
    tpucl_tune_report *report;
    int32_t cores;
    tpucl_status status;
} collector;

/* Compiling asks of every product whether a variant may run it; the first one that is asked for does. */
static bool collect(void *user, const char *variant, const tp_mxu_problem *problem,
                    const tp_mxu_choice *choice)
{
    collector *c = user;
    const double flops =
        2.0 * (double)problem->batch * (double)problem->m * (double)problem->n * (double)problem->k;
    (void)variant;
    (void)choice;
    if (c->status == TPUCL_OK)
        c->status = tp_tune_problems_add(&c->report->problems, problem, 1,
                                         flops > LARGE_FLOPS ? 1 : c->cores, c->report->arena);
    return true;
}

static tpucl_status collect_graph(const tp_graph *graph, const tp_device *device, collector *c)
{
    tp_program *program = NULL;
    const tp_mxu_allow allow = {.is_allowed = collect, .user = c};
    const tp_compile_options options = {
        .name = "tune", .caps = tp_device_get_caps(device), .allow = &allow};
    TP_TRY(tp_compile(graph, &options, &program));
    tp_program_destroy(program);
    return c->status;
}

static tpucl_status collect_run(const tpucl_run_options *run, const tp_device *device,
                                tpucl_tune_report *report)
{
    tp_session_options settings = {.plan_only = true};
    tp_session *session = NULL;
    tp_graph *graphs[2] = {NULL, NULL};
    tpucl_status status = TPUCL_OK;
    TP_TRY(tp_api_read_config(run, &settings.config));
    TP_TRY(tp_session_create(&settings, &session));
    const int32_t cores = tp_session_topology(session)->cores;
    collector c = {report, cores < MAX_CORES ? cores : MAX_CORES, TPUCL_OK};
    const int64_t batch = tp_session_config(session)->per_core_batch;
    TP_TRY_GOTO(status, tp_session_build_graphs(session, batch, &graphs[0], &graphs[1]), done);
    for (int i = 0; i < 2; i++)
        TP_TRY_GOTO(status, collect_graph(graphs[i], device, &c), done);
done:
    for (int i = 0; i < 2; i++)
        if (graphs[i]) tp_graph_destroy(graphs[i]);
    tp_session_destroy(session);
    return status;
}

static tpucl_status collect_file(const char *path, tpucl_tune_report *report)
{
    tp_problem_lines lines = {0};
    tpucl_status status = tp_problem_lines_read(path, &lines);
    for (size_t i = 0; i < lines.count && status == TPUCL_OK; i++) {
        tp_mxu_problem problem;
        tp_problem_line_to_mxu(&lines.items[i], TP_PRECISION_DEFAULT, &problem);
        status = tp_tune_problems_add(&report->problems, &problem, lines.items[i].times, 1,
                                      report->arena);
    }
    if (status == TPUCL_OK && lines.count == 0)
        status = TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' has no problem line", path);
    tp_problem_lines_deinit(&lines);
    return status;
}

/* ---- tuning ---- */

static tpucl_status prove(void *user, const tp_mxu_problem *problem, const tp_mxu_choice *choice,
                          bool *out_is_right, char out_text[256])
{
    return tp_verdicts_prove_choice(user, problem, choice, out_is_right, out_text);
}

static void on_progress(void *user, const tp_tune_progress *progress)
{
    const tpucl_tune_options *options = user;
    const tpucl_tune_progress public = {progress->index, progress->count, progress->share,
                                        progress->key, progress->best_ratio};
    options->progress(options->user, &public);
}

static bool on_stop(void *user)
{
    const tpucl_tune_options *options = user;
    return options->should_stop(options->user);
}

static tpucl_status print_choices(tpucl_tune_report *report)
{
    char text[TP_MXU_CHOICE_BYTES];
    report->texts = TP_ARENA_NEW_ARRAY(report->arena, const char *, 2 * report->problems.count + 1);
    if (!report->texts) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < report->problems.count; i++) {
        const tp_mxu_record *record = &report->results[i].record;
        const tp_mxu_choice *both[2] = {record->has_best ? &record->best : &record->heuristic,
                                        &record->heuristic};
        for (size_t k = 0; k < 2; k++) {
            report->texts[2 * i + k] = NULL;
            if (!both[k]->variant) continue;
            report->texts[2 * i + k] =
                tp_arena_strdup(report->arena, tp_mxu_choice_print(both[k], text));
            if (!report->texts[2 * i + k]) return TPUCL_OUT_OF_MEMORY;
        }
    }
    return TPUCL_OK;
}

static tpucl_status print_wrong(tpucl_tune_report *report)
{
    size_t count = 0;
    for (size_t i = 0; i < report->problems.count; i++)
        count += report->results[i].wrong.count;
    report->wrong = TP_ARENA_NEW_ARRAY(report->arena, const char *, count + 1);
    if (!report->wrong) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < report->problems.count; i++) {
        const tp_tune_wrongs *wrong = &report->results[i].wrong;
        for (size_t k = 0; k < wrong->count; k++) {
            const char *text =
                tp_arena_printf(report->arena, "%s with %s: %s", report->problems.items[i].key,
                                wrong->items[k].choice, wrong->items[k].reason);
            if (!text) return TPUCL_OUT_OF_MEMORY;
            report->wrong[report->wrong_count++] = text;
        }
    }
    return TPUCL_OK;
}

static tpucl_status run_tuner(const tpucl_tune_options *options, tp_api_tune_device *opened,
                              tpucl_tune_report *report)
{
    tpucl_tune_options copy = *options;
    const tp_mxu_allow allow = tp_verdicts_allow(opened->verdicts);
    bool is_verified = true; /* of variants; settings prove themselves in any case */
    TP_TRY(tp_env_flag(TP_ENV_VERIFY, true, &is_verified));
    const tp_tuner tuner = {.device = opened->device,
                            .arena = report->arena,
                            .allow = is_verified ? &allow : NULL,
                            .prove = prove,
                            .prove_user = opened->verdicts,
                            .folder = options->folder ? options->folder
                                                      : tp_records_folder(report->arena),
                            .seconds = options->seconds,
                            .rounds = options->rounds ? options->rounds : DEFAULT_ROUNDS,
                            .again = options->again,
                            .counts_processor_time = options->cpu_time,
                            .progress = options->progress ? on_progress : NULL,
                            .should_stop = options->should_stop ? on_stop : NULL,
                            .user = &copy};
    if (!tuner.folder)
        return TP_FAIL(TPUCL_NOT_FOUND, "no place for tuning records: none of TPUCL_TUNING_DIR, "
                                        "XDG_DATA_HOME and HOME is set");
    report->file = tp_tuner_path(&tuner);
    report->results = TP_ARENA_NEW_ARRAY(report->arena, tp_tune_result, report->problems.count + 1);
    if (!report->file || !report->results) return TPUCL_OUT_OF_MEMORY;
    memset(report->results, 0, (report->problems.count + 1) * sizeof *report->results);
    TP_TRY(tp_tuner_run(&tuner, &report->problems, report->results));
    report->was_stopped = options->should_stop && options->should_stop(options->user);
    TP_TRY(print_choices(report));
    return print_wrong(report);
}

static tpucl_status check_options(const tpucl_tune_options *options)
{
    if (!options->run == !options->problems_file)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "what to tune: expected either 'run' or "
                                               "'problems_file'");
    if (options->seconds < 0 || options->rounds < 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' is below 0",
                       options->rounds < 0 ? "rounds" : "seconds");
    return TPUCL_OK;
}

tpucl_status tpucl_tune(const tpucl_tune_options *options, tpucl_tune_report **out_report)
{
    TP_API_NEED(out_report);
    *out_report = NULL;
    tpucl_tune_options all;
    tp_api_tune_device opened = {0};
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_tune_options));
    TP_TRY(check_options(&all));
    tpucl_tune_report *report = TP_NEW(tpucl_tune_report);
    if (!report) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_arena_create(0, &report->arena), done);
    if (all.problems_file) TP_TRY_GOTO(status, collect_file(all.problems_file, report), done);
    TP_TRY_GOTO(status, tp_api_tune_open(all.device, &opened), done);
    if (all.run) TP_TRY_GOTO(status, collect_run(all.run, opened.device, report), done);
    tp_api_device_info(tp_device_label(opened.device), tp_device_get_caps(opened.device), true, "",
                       &report->device);
    tp_device_class_print(tp_device_get_caps(opened.device), report->device_class);
    TP_TRY_GOTO(status, run_tuner(&all, &opened, report), done);
    *out_report = report;
    report = NULL;
done:
    tp_api_tune_close(&opened);
    tpucl_tune_report_destroy(report);
    return status;
}

void tpucl_tune_report_destroy(tpucl_tune_report *report)
{
    if (!report) return;
    for (size_t i = 0; report->results && i < report->problems.count; i++)
        tp_tune_result_deinit(&report->results[i]);
    tp_tune_problems_deinit(&report->problems);
    tp_arena_destroy(report->arena);
    tp_free(report);
}

/* ---- the report ---- */

tpucl_tune_product tpucl_tune_report_product(const tpucl_tune_report *report, int32_t index)
{
    if (!report || index < 0 || (size_t)index >= report->problems.count)
        return (tpucl_tune_product){0};
    const tp_tune_result *result = &report->results[index];
    const tp_mxu_record *record = &result->record;
    tpucl_tune_product product = {.name = result->problem->key,
                                  .state = tp_tune_state_name(result->state),
                                  .uses = result->problem->uses,
                                  .timed = result->timed,
                                  .wrong = (int32_t)result->wrong.count,
                                  .text = result->text};
    if (result->state == TP_TUNE_LEFT || result->state == TP_TUNE_FAILED) return product;
    product.best = report->texts[2 * (size_t)index];
    product.heuristic = report->texts[2 * (size_t)index + 1];
    product.ratio = record->has_best ? record->ratio : 1.0;
    product.spread = record->spread;
    product.best_seconds = record->has_best ? record->best_seconds : record->default_seconds;
    product.default_seconds = record->default_seconds;
    product.rounds = record->rounds;
    return product;
}

const char *tpucl_tune_report_wrong(const tpucl_tune_report *report, int32_t index)
{
    return !report || index < 0 || index >= report->wrong_count ? NULL : report->wrong[index];
}

const char *tpucl_tune_report_file(const tpucl_tune_report *report)
{
    return report ? report->file : NULL;
}

bool tpucl_tune_report_stopped(const tpucl_tune_report *report)
{
    return report && report->was_stopped;
}

static void write_result(tp_json_writer *writer, const tp_tune_result *result)
{
    const bool has_record = result->state != TP_TUNE_LEFT && result->state != TP_TUNE_FAILED;
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "name", result->problem->key);
    tp_json_put_string(writer, "state", tp_tune_state_name(result->state));
    tp_json_put_int(writer, "uses", result->problem->uses);
    tp_json_put_int(writer, "cores", result->problem->cores);
    tp_json_put_int(writer, "timed", result->timed);
    tp_json_put_double(writer, "seconds", result->seconds);
    tp_json_put_string(writer, "reason", *result->text ? result->text : NULL);
    tp_json_key(writer, "wrong");
    tp_json_begin_array(writer);
    for (size_t i = 0; i < result->wrong.count; i++) {
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "choice", result->wrong.items[i].choice);
        tp_json_put_string(writer, "reason", result->wrong.items[i].reason);
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
    tp_json_key(writer, "record");
    if (has_record) {
        tp_json_begin_object(writer);
        tp_mxu_record_write(writer, &result->record);
        tp_json_end_object(writer);
    } else {
        tp_json_write_null(writer);
    }
    tp_json_end_object(writer);
}

tpucl_status tpucl_tune_report_json(const tpucl_tune_report *report, char **out_text)
{
    TP_API_NEED(report);
    TP_API_NEED(out_text);
    tp_json_writer writer = {0};
    tp_api_begin_report(&writer, &report->device);
    tp_json_put_string(&writer, "device_class", report->device_class);
    tp_json_put_string(&writer, "file", report->file);
    tp_json_put_bool(&writer, "stopped", report->was_stopped);
    tp_json_key(&writer, "products");
    tp_json_begin_array(&writer);
    for (size_t i = 0; i < report->problems.count; i++)
        write_result(&writer, &report->results[i]);
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}
