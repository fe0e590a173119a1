/* SPDX-License-Identifier: Apache-2.0
 * tpucl records: make files of records, look into them, check, count and rewrite them. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tpucl/records.h>
#include <tpucl/types.h>
#include "cmd.h"
#include "ui.h"

typedef struct records_values {
    tp_cmd_common common;
    const char *output, *labels, *preset, *compression, *input_compression, *resize;
    int64_t shards, seed, png_level, limit, height, width, quality;
    bool force, skip_faults, upright;
} records_values;

static const tp_opt_row options[] = {
    {.name = "output",
     .letter = 'o',
     .kind = TP_OPT_TEXT,
     .value = "FOLDER/NAME",
     .complete = TP_COMPLETE_FILE,
     .offset = offsetof(records_values, output),
     .help = "make, convert: write FOLDER/NAME-00000-of-00008 and so on"},
    {.name = "labels",
     .kind = TP_OPT_TEXT,
     .value = "FILE",
     .complete = TP_COMPLETE_FILE,
     .offset = offsetof(records_values, labels),
     .help = "make: the labels, an IDX or .npy file as the inputs; not for a folder of images"},
    {.name = "preset",
     .kind = TP_OPT_TEXT,
     .value = "NAME",
     .offset = offsetof(records_values, preset),
     .help = "make: how features are called: tfds (default), imagenet (classes from 1), cifar, "
             "mnist, raw (bare samples instead of PNG)"},
    {.name = "shards",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 99999,
     .offset = offsetof(records_values, shards),
     .help = "make, convert: number of files; default 1"},
    {.name = "compression",
     .kind = TP_OPT_TEXT,
     .value = "KIND",
     .offset = offsetof(records_values, compression),
     .help = "make, convert: none (default), gzip or zlib, of whole files"},
    {.name = "input-compression",
     .kind = TP_OPT_TEXT,
     .value = "KIND",
     .offset = offsetof(records_values, input_compression),
     .help = "of what is read: auto (default), none, gzip or zlib"},
    {.name = "shuffle",
     .kind = TP_OPT_INT,
     .value = "SEED",
     .min = 1,
     .max = INT64_MAX,
     .offset = offsetof(records_values, seed),
     .help = "make: all records in an order that the seed decides; default as they come"},
    {.name = "png-level",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 9,
     .offset = offsetof(records_values, png_level),
     .help = "make: 1 is fast, 9 is small"},
    {.name = "height",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 65535,
     .offset = offsetof(records_values, height),
     .help =
         "make: bring the images of a folder to this height, with --width, and encode them again"},
    {.name = "width",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 65535,
     .offset = offsetof(records_values, width),
     .help = "make: likewise the width"},
    {.name = "resize",
     .kind = TP_OPT_TEXT,
     .value = "HOW",
     .offset = offsetof(records_values, resize),
     .help = "make: stretch (default), crop the middle, or pad with black"},
    {.name = "jpeg",
     .kind = TP_OPT_INT,
     .value = "QUALITY",
     .min = 1,
     .max = 100,
     .offset = offsetof(records_values, quality),
     .help =
         "make: encode the images of a folder as JPEG; default as they are, or PNG in a new size"},
    {.name = "upright",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(records_values, upright),
     .help = "make: turn images as their EXIF data say, when they are encoded again"},
    {.name = "limit",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = INT64_MAX,
     .offset = offsetof(records_values, limit),
     .help = "inspect: look into the first N records of each file only"},
    {.name = "skip-faults",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(records_values, skip_faults),
     .help = "convert: leave damaged records out instead of stopping"},
    {.name = "force",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(records_values, force),
     .help = "make, convert: replace files that are there and were made of other things"},
    {.name = NULL},
};

/* ---- while it works ---- */

static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
}

/* The second signal ends it at once: files appear when they are complete, so nothing is lost by it. */
static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static bool on_bytes(void *user, uint64_t done, uint64_t total)
{
    tp_ui_progress_draw(user, "records", (int64_t)(done >> 20), (int64_t)(total >> 20), 0, "MiB",
                        "");
    return !stop_asked;
}

static bool on_records(void *user, int64_t done, int64_t total)
{
    tp_ui_progress_draw(user, "records", done, total, 0, "records", "");
    return !stop_asked;
}

/* ---- reading ---- */

static void print_files(const tpucl_records_report *report)
{
    tp_ui_table table;
    tpucl_records_file file;
    char bytes[TP_UI_TEXT_BYTES];
    tp_ui_table_begin(&table, "file|compression|>size|>records|>faults");
    for (int32_t i = 0; (file = tpucl_records_report_file(report, i)).path; ++i) {
        tp_ui_cell(&table, "%s", file.path);
        tp_ui_cell(&table, "%s", file.compression);
        tp_ui_cell(&table, "%s", tp_ui_bytes(file.file_bytes, bytes));
        tp_ui_cell(&table, "%llu", (unsigned long long)file.records);
        tp_ui_cell(&table, "%llu", (unsigned long long)file.faults);
    }
    tp_ui_table_end(&table, stdout);
}

static void print_features(const tpucl_records_report *report)
{
    tp_ui_table table;
    tpucl_records_feature feature;
    tp_ui_table_begin(&table, "feature|kind|>in records|>values|first");
    for (int32_t i = 0; (feature = tpucl_records_report_feature(report, i)).key; ++i) {
        tp_ui_cell(&table, "%s", feature.key);
        tp_ui_cell(&table, "%s", feature.kind);
        tp_ui_cell(&table, "%lld", (long long)feature.records);
        if (feature.min_count == feature.max_count)
            tp_ui_cell(&table, "%lld", (long long)feature.min_count);
        else
            tp_ui_cell(&table, "%lld to %lld", (long long)feature.min_count,
                       (long long)feature.max_count);
        tp_ui_cell(&table, "%.60s", feature.sample);
    }
    tp_ui_table_end(&table, stdout);
}

static void print_faults(const tpucl_records_report *report)
{
    tpucl_records_file file;
    for (int32_t i = 0; (file = tpucl_records_report_file(report, i)).path; ++i)
        if (file.faults)
            fprintf(stderr, "%sfault:%s %s%s\n", tp_ui_red(stderr), tp_ui_plain(stderr), file.fault,
                    file.faults > 1 ? " (and more)" : "");
}

static void print_report(const char *action, const tpucl_records_report *report)
{
    const tpucl_records_summary *s = tpucl_records_report_summary(report);
    char bytes[TP_UI_TEXT_BYTES], rate[TP_UI_TEXT_BYTES];
    if (strcmp(action, "count") != 0) print_files(report);
    if (strcmp(action, "inspect") == 0 && s->features) print_features(report);
    printf("%llu records, %s, in %d file%s", (unsigned long long)s->records,
           tp_ui_bytes(s->bytes, bytes), (int)s->files, s->files == 1 ? "" : "s");
    if (strcmp(action, "verify") == 0)
        printf(", checked at %s/s",
               tp_ui_bytes((uint64_t)((double)s->bytes / (s->seconds > 0 ? s->seconds : 1)), rate));
    if (s->not_examples)
        printf(", %lld of %lld no Examples", (long long)s->not_examples, (long long)s->parsed);
    printf(", %llu fault%s\n", (unsigned long long)s->faults, s->faults == 1 ? "" : "s");
}

static tp_exit run_reading(const tp_cmd *cmd, const records_values *values, const char *action,
                           const char *const *paths, int32_t count)
{
    tp_ui_progress progress = {0};
    tpucl_records_report *report = NULL;
    tpucl_records_options settings = tpucl_records_options_default();
    settings.paths = paths;
    settings.path_count = count;
    settings.compression = values->input_compression;
    settings.unchecked = strcmp(action, "count") == 0;
    settings.with_features = strcmp(action, "inspect") == 0;
    settings.feature_limit = values->limit;
    settings.progress = on_bytes;
    settings.user = &progress;
    tpucl_status status = tpucl_records_read(&settings, &report);
    tp_ui_progress_clear();
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    char *json = NULL;
    tp_exit code = TP_EXIT_DONE;
    if (tp_cmd_wants_table(&values->common)) print_report(action, report);
    print_faults(report);
    status = tpucl_records_report_json(report, &json);
    code = status == TPUCL_OK ? tp_cmd_write_json(cmd, values->common.json, json)
                              : tp_cmd_fail(cmd, status);
    if (code == TP_EXIT_DONE && tpucl_records_report_summary(report)->faults) code = TP_EXIT_FAILED;
    tpucl_free(json);
    tpucl_records_report_destroy(report);
    return code;
}

/* ---- writing ---- */

static tp_exit run_writing(const tp_cmd *cmd, const records_values *values, bool is_make,
                           const char *const *paths, int32_t count)
{
    tp_ui_progress progress = {0};
    tpucl_records_made made;
    tpucl_records_make_options to = tpucl_records_make_options_default();
    tpucl_records_options from = tpucl_records_options_default();
    to.inputs = paths[0];
    to.labels = values->labels;
    to.output = values->output;
    to.preset = values->preset;
    to.shards = (int32_t)values->shards;
    to.compression = values->compression;
    to.png_level = (int32_t)values->png_level;
    to.height = (int32_t)values->height;
    to.width = (int32_t)values->width;
    to.resize = values->resize;
    to.jpeg_quality = (int32_t)values->quality;
    to.upright = values->upright;
    to.shuffle = values->seed != 0;
    to.seed = (uint64_t)values->seed;
    to.force = values->force;
    to.progress = on_records;
    to.user = &progress;
    from.paths = paths;
    from.path_count = count;
    from.compression = values->input_compression;
    tpucl_status status = is_make ? tpucl_records_make(&to, &made)
                                  : tpucl_records_convert(&from, values->skip_faults, &to, &made);
    tp_ui_progress_clear();
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    if (tp_cmd_wants_table(&values->common)) {
        char bytes[TP_UI_TEXT_BYTES];
        printf("%lld records in %d file%s %s-*: %s written", (long long)made.records,
               (int)made.files, made.files == 1 ? "" : "s", values->output,
               tp_ui_bytes(made.bytes, bytes));
        if (made.found)
            printf(", %d file%s there already", (int)made.found,
                   made.found == 1 ? " was" : "s were");
        if (made.classes)
            printf("; %d classes in %s.labels.txt", (int)made.classes, values->output);
        printf("\n");
    }
    char *json = NULL;
    status = tpucl_records_made_json(&made, &json);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    const tp_exit code = tp_cmd_write_json(cmd, values->common.json, json);
    tpucl_free(json);
    return code;
}

static tp_exit run_records(const tp_cmd *cmd, int argc, char **argv)
{
    static const char *const actions[] = {"make", "convert", "inspect", "verify", "count"};
    records_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    int action = 0;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    while (action < 5 && strcmp(actions[action], operands.items[0]) != 0)
        action++;
    if (action == 5)
        return tp_cmd_fail_usage(
            cmd, "unknown action '%s'; expected make, convert, inspect, verify or count",
            operands.items[0]);
    const bool writes = action < 2;
    if (writes && !values.output) return tp_cmd_fail_usage(cmd, "--output is missing");
    if (!writes && values.output)
        return tp_cmd_fail_usage(cmd, "--output belongs to make and convert");
    if (action == 0 && operands.count > 2)
        return tp_cmd_fail_usage(cmd, "unexpected argument '%s'", operands.items[2]);
    catch_signals();
    const char *const *paths = operands.items + 1;
    return writes ? run_writing(cmd, &values, action == 0, paths, operands.count - 1)
                  : run_reading(cmd, &values, actions[action], paths, operands.count - 1);
}

const tp_cmd tp_cmd_records = {
    .name = "records",
    .summary = "make, inspect, verify, count and convert files of records",
    .operands = "ACTION PATH...",
    .min_operands = 2,
    .max_operands = TP_OPT_MAX_OPERANDS,
    .complete = TP_COMPLETE_FILE,
    .description =
        "Files of records are TensorFlow's TFRecords with an Example in each record; whole files "
        "may be gzip or zlib, which is noticed. PATH is a file, a folder with NAME-00000-of-00008 "
        "or *.tfrecord files, or a pattern in quotes.\n\n"
        "make: of an IDX or .npy file of images and --labels, or of a folder that holds a folder "
        "of images for each class. Arrays of bytes become PNG files, image files are taken as they "
        "are, unless a size or --jpeg is given. Each file appears when it is complete: the same "
        "command after an interruption goes "
        "on with the first one that is missing.\n\n"
        "convert: the same records in another number of files or another compression. inspect: "
        "which features there are. verify: every checksum; exit code 1 and the place when one is "
        "wrong. count: lengths alone, which is faster.",
    .examples =
        "tpucl records make train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz -o "
        "data/train --shards 8\n60,000 digits as PNG in eight files\n"
        "tpucl records make photos -o data/photos --preset imagenet --shuffle 1\na folder per "
        "class, mixed\n"
        "tpucl records make photos -o small/train --height 256 --width 256 --resize crop --jpeg "
        "90\nall of one size, as JPEG\n"
        "tpucl records inspect data\nwhich features the records have\n"
        "tpucl records verify 'data/train-*' --json -\nall checksums, as JSON\n"
        "tpucl records convert data -o packed/train --compression gzip --shards 2\nfewer, smaller "
        "files",
    .options = options,
    .run = run_records,
};
