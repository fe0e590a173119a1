/* SPDX-License-Identifier: Apache-2.0
 * tpucl train: a run from its configuration file. The table of epochs is the data, on standard
 * output; everything else (summary, progress, where files went) is for people, on standard
 * error. */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "keras_run.h"
#include "run_options.h"
#include "ui.h"

static const tp_opt_row options[] = {
    TP_RUN_OPTION_ROWS,
    {.name = "epochs",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .offset = offsetof(tp_run_values, epochs),
     .help = "as --set epochs=N"},
    {.name = "steps",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = INT64_MAX,
     .offset = offsetof(tp_run_values, steps),
     .help = "stop after N steps, whatever the number of epochs"},
    TP_RUN_OPTION_DATA,
    {.name = "params",
     .kind = TP_OPT_TEXT,
     .value = "FILE",
     .complete = TP_COMPLETE_FILE,
     .offset = offsetof(tp_run_values, params),
     .help = "begin with these parameters, a safetensors file, instead of new ones"},
    TP_RUN_OPTION_WEIGHTS,
    {.name = "output-dir",
     .kind = TP_OPT_TEXT,
     .value = "FOLDER",
     .complete = TP_COMPLETE_FOLDER,
     .offset = offsetof(tp_run_values, output_dir),
     .help = "leave params.safetensors, config.json, result.json, checkpoints and logs there"},
    {.name = "resume",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(tp_run_values, resume),
     .help = "go on from the newest whole checkpoint; from the beginning when there is none"},
    {.name = "resume-from",
     .kind = TP_OPT_TEXT,
     .value = "CHECKPOINT",
     .complete = TP_COMPLETE_FOLDER,
     .offset = offsetof(tp_run_values, resume_from),
     .help = "go on from this one, a folder step-..."},
    {.name = "overwrite",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(tp_run_values, overwrite),
     .help = "begin anew where an earlier run left checkpoints, and remove those"},
    {.name = NULL},
};

/* ---- interruption ---- */

static tpucl_run *running; /* what the signal handler stops */

static void on_signal(int number)
{
    (void)number;
    tpucl_run_stop(running);
}

/* Under nohup a terminal that goes away is ignored. Asked before any driver is loaded: LLVM, for one, catches
 * the signal whatever became of it before. */
static bool hangup_is_ignored(void)
{
    struct sigaction action;
    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* The first signal ends the run after its step, the second one ends the process. */
static void catch_signals(tpucl_run *run, bool ignores_hangup)
{
    running = run;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = run ? on_signal : SIG_DFL;
    action.sa_flags = run ? (int)SA_RESETHAND : 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (ignores_hangup) action.sa_handler = SIG_IGN;
    sigaction(SIGHUP, &action, NULL);
    /* "train ... | head": hours of training outlive whoever read the table; main() reports it. */
    action.sa_handler = SIG_IGN;
    action.sa_flags = 0;
    sigaction(SIGPIPE, &action, NULL);
}

/* ---- what is shown while it runs ---- */

typedef struct display {
    tp_ui_progress progress;
    bool wants_table, has_head;
} display;

static void print_number(bool exists, double value, const char *format)
{
    char text[32] = "-";
    if (exists && !isnan(value)) snprintf(text, sizeof text, format, value);
    printf("  %10s", text);
}

static void print_metrics(const tpucl_epoch *epoch)
{
    for (int32_t i = 0; i < epoch->metric_count; i++) {
        printf("%8s%-50s", "", epoch->metric_names[i]);
        print_number(true, epoch->train_metrics[i], "%.4f");
        print_number(false, 0, "");
        print_number(epoch->has_eval, epoch->eval_metrics[i], "%.4f");
        printf("\n");
    }
}

static void print_epoch(void *user, const tpucl_epoch *epoch)
{
    display *shown = user;
    tp_ui_progress_clear();
    if (!shown->wants_table) return;
    if (!shown->has_head)
        printf("%s%6s  %8s  %10s  %10s  %10s  %10s  %10s  %10s%s\n", tp_ui_bold(stdout), "epoch",
               "steps", "seconds", "examples/s", "loss", "accuracy", "test loss", "test acc.",
               tp_ui_plain(stdout));
    shown->has_head = true;
    printf("%6lld  %8lld", (long long)epoch->epoch, (long long)epoch->steps);
    print_number(true, epoch->seconds, "%.2f");
    print_number(true, epoch->examples_per_second, "%.0f");
    print_number(true, epoch->train_loss, "%.4f");
    print_number(epoch->train_accuracy >= 0, 100 * epoch->train_accuracy, "%.2f %%");
    print_number(epoch->has_eval, epoch->eval_loss, "%.4f");
    print_number(epoch->eval_accuracy >= 0, 100 * epoch->eval_accuracy, "%.2f %%");
    printf("\n");
    print_metrics(epoch);
    fflush(stdout);
}

static void draw_progress(void *user, const tpucl_progress *progress)
{
    display *shown = user;
    char label[48], detail[48] = "";
    snprintf(label, sizeof label, "epoch %lld/%lld", (long long)progress->epoch,
             (long long)progress->epochs);
    if (!isnan(progress->loss)) snprintf(detail, sizeof detail, "loss %.4f", progress->loss);
    tp_ui_progress_draw(&shown->progress, label, progress->step, progress->steps,
                        progress->examples_per_second, "examples", detail);
}

/* ---- the end ---- */

static void print_end(const tpucl_run *run, const tpucl_run_result *result)
{
    const char *folder = tpucl_run_get_info(run)->output_dir;
    const tpucl_breakdown *breakdown = &result->breakdown;
    fprintf(stderr, "first step after %.2f s, %.2f s of it building kernels\n",
            result->first_step_seconds, result->build_seconds);
    fprintf(stderr, "time: input %.0f %%, compute %.0f %%, memory %.0f %%, idle %.0f %%; %s\n",
            100 * breakdown->input, 100 * breakdown->compute, 100 * breakdown->memory,
            100 * breakdown->idle, breakdown->verdict);
    if (*folder)
        fprintf(stderr, "parameters, configuration, result and checkpoints are in '%s'\n", folder);
}

static void print_interrupted(const tpucl_run *run, const tpucl_run_result *result)
{
    const char *folder = tpucl_run_get_info(run)->output_dir;
    if (*folder)
        fprintf(stderr,
                "tpucl train: interrupted after step %lld; the state is in '%s', --resume goes on "
                "from there\n",
                (long long)result->steps, folder);
    else
        fprintf(stderr,
                "tpucl train: interrupted after step %lld; nothing was kept, as there is no "
                "output folder (--output-dir)\n",
                (long long)result->steps);
}

static tp_exit train(const tp_cmd *cmd, const tp_run_values *values, tpucl_run *run,
                     bool ignores_hangup)
{
    display shown = {.wants_table = tp_cmd_wants_table(&values->common)};
    tpucl_run_callbacks callbacks = {draw_progress, print_epoch, &shown};
    tpucl_run_result result;
    tp_run_print_summary(run);
    catch_signals(run, ignores_hangup);
    tpucl_status status = tpucl_run_train(run, &callbacks, &result);
    catch_signals(NULL, ignores_hangup);
    tp_ui_progress_clear();
    if (status != TPUCL_OK && status != TPUCL_INTERRUPTED) return tp_cmd_fail(cmd, status);

    tp_exit code = TP_EXIT_DONE;
    if (shown.wants_table) printf("params_sha256 %s\n", result.params_sha256);
    if (values->common.json) {
        char *json = NULL;
        tpucl_status json_status = tpucl_run_result_json(run, &json);
        if (json_status != TPUCL_OK) return tp_cmd_fail(cmd, json_status);
        code = tp_cmd_write_json(cmd, values->common.json, json);
        tpucl_free(json);
    }
    if (status == TPUCL_INTERRUPTED) {
        print_interrupted(run, &result);
        return TP_EXIT_INTERRUPTED;
    }
    print_end(run, &result);
    return code;
}

/* Prints where it goes on. */
static tpucl_status resume(tpucl_run *run, const tp_run_values *values)
{
    tpucl_resumed resumed;
    const tpucl_status status = tpucl_run_resume(run, values->resume_from, &resumed);
    if (status == TPUCL_OK)
        fprintf(stderr, "goes on from '%s', step %lld of %lld\n", resumed.path,
                (long long)resumed.step, (long long)tpucl_run_get_info(run)->steps);
    if (status != TPUCL_NOT_FOUND || values->resume_from) return status;
    fprintf(stderr, "no checkpoint yet: begins with step 1\n");
    return TPUCL_OK;
}

static tp_exit run_train(const tp_cmd *cmd, int argc, char **argv)
{
    tp_run_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    tpucl_status status;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    tpucl_run *run = NULL;
    const bool ignores_hangup = hangup_is_ignored();
    if (tp_keras_run_is_model(operands.items[0])) {
        if (!tp_keras_run_open(cmd, &values, operands.items[0], &run, &code)) {
            tpucl_run_destroy(run);
            return code;
        }
    } else if ((status = tp_run_open(&values, operands.items[0], &run)) != TPUCL_OK) {
        return tp_cmd_fail(cmd, status);
    }
    if (values.params && (status = tpucl_run_load_params(run, values.params)) != TPUCL_OK) {
        tpucl_run_destroy(run);
        return tp_cmd_fail(cmd, status);
    }
    if ((values.resume || values.resume_from) && (status = resume(run, &values)) != TPUCL_OK) {
        tpucl_run_destroy(run);
        return tp_cmd_fail(cmd, status);
    }
    code = train(cmd, &values, run, ignores_hangup);
    tpucl_run_destroy(run);
    return code;
}

const tp_cmd tp_cmd_train = {
    .name = "train",
    .summary = "train a model as its configuration says",
    .operands = "CONFIG|MODEL",
    .min_operands = 1,
    .max_operands = 1,
    .complete = TP_COMPLETE_FILE,
    .description =
        "Trains what CONFIG, a JSON file, describes: topology, model, data, optimizer. Every "
        "problem of "
        "the file is reported at once, before any work starts. MODEL is a file of Keras (.keras, "
        ".h5, or the JSON of to_json() with --weights): its model, weights, loss, metrics and "
        "optimizer, on the data that --data and --set "
        "name; 'tpucl import' shows what is in it.\n\n"
        "A line per epoch goes to standard output, then params_sha256, the digest of the trained "
        "parameters. It depends on the configuration alone: not on the device, --split, "
        "--wave-cores or "
        "--synchronous.\n\n"
        "With an output folder the state is saved at the end of each epoch, or every "
        "checkpoint.every steps. --resume goes on from there, whatever ended the run, to the same "
        "params_sha256 as if nothing had.\n\n"
        "Interrupting (Ctrl-C) ends the run after the step that is being computed, saves its "
        "state, writes what the end "
        "would have written, and gives exit code 5. A second Ctrl-C ends it at once. SIGTERM does "
        "the "
        "same, and so does a terminal that goes away (SIGHUP), unless nohup is in front.",
    .examples =
        "tpucl train configs/fashion-mlp.json\nas the file says\n"
        "tpucl train configs/fashion-mlp.json --set seed=7 --set optimizer.learning_rate=2e-3\n"
        "with other values\n"
        "tpucl train run.json --topology k80 --json result.json --output-dir out\n"
        "on another machine, keeping everything\n"
        "tpucl train run.json --output-dir out --resume\n"
        "begin, or go on where the last one was interrupted or killed\n"
        "tpucl train model.keras --data fashion-mnist --output-dir out\n"
        "a Keras model, from the weights in the file\n"
        "tpucl train run.json --device cpu --split 2\nsame bits, on two sub-devices",
    .options = options,
    .run = run_train,
};
