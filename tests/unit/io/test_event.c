/* SPDX-License-Identifier: Apache-2.0
 * Event files: protoc reads every kind of summary, files of a run sort in the order in which they were begun, a
 * failed write leaves no half of an event. */
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/file.h"
#include "harness/memory_writer.h"
#include "harness/protoc.h"
#include "io/event_file.h"
#include "io/event_summary.h"
#include "io/tfrecord.h"

static void expect(const char *text, const char *part)
{
    cr_assert(strstr(text, part), "'%s' is not in: %s", part, text);
}

/* protoc's text of one kind of summary. */
static char *decoded(tp_str_builder *summary)
{
    cr_assert(summary->status == TPUCL_OK);
    char *text = protoc_decode("event", "Summary", summary->data, summary->length);
    tp_str_builder_deinit(summary);
    return text;
}

Test(event, a_scalar_is_a_tensor_of_one_float)
{
    tp_str_builder to = {0};
    tp_summary_scalar(&to, "loss", 0.25f);
    tp_summary_scalar(&to, "accuracy", 1);
    char *text = decoded(&to);
    cr_assert_str_eq(text, "value {\n  tag: \"loss\"\n  tensor {\n    dtype: DT_FLOAT\n    "
                           "tensor_shape {\n    }\n    float_val: 0.25\n  }\n  metadata {\n    "
                           "plugin_data {\n      plugin_name: \"scalars\"\n    }\n    data_class: "
                           "SCALAR\n  }\n}\nvalue {\n  tag: \"accuracy\"\n  tensor {\n    dtype: "
                           "DT_FLOAT\n    tensor_shape {\n    }\n    float_val: 1\n  }\n  "
                           "metadata {\n    plugin_data {\n      plugin_name: \"scalars\"\n    "
                           "}\n    data_class: SCALAR\n  }\n}\n");
    free(text);
}

Test(event, images_are_strings_behind_width_and_height)
{
    tp_str_builder to = {0};
    const tp_view files[] = {{"\x89PNG", 4}, {"two", 3}};
    tp_summary_images(&to, "batch", 28, 30, files, 2);
    char *text = decoded(&to);
    expect(text, "string_val: \"28\"\n    string_val: \"30\"\n    string_val: \"\\211PNG\"\n    "
                 "string_val: \"two\"");
    expect(text, "size: 4");
    expect(text, "plugin_name: \"images\"");
    free(text);
}

Test(event, text_and_hyperparameters)
{
    tp_str_builder to = {0};
    const tp_hparam hparams[] = {{"optimizer", "Adam", 0}, {"lr", NULL, 0.001}};
    const char *const metrics[] = {"accuracy"};
    tp_summary_text(&to, "note", "**bold**");
    tp_summary_hparams_experiment(&to, hparams, 2, metrics, 1);
    tp_summary_hparams_start(&to, hparams, 2, "group", 12);
    tp_summary_hparams_end(&to, true, 13);
    char *text = decoded(&to);
    expect(text, "string_val: \"**bold**\"");
    expect(text, "tag: \"_hparams_/experiment\"");
    expect(text, "tag: \"_hparams_/session_start_info\"");
    expect(text, "tag: \"_hparams_/session_end_info\"");
    expect(text, "plugin_name: \"hparams\"");
    free(text);
}

Test(event, a_histogram_holds_every_finite_value)
{
    float values[302];
    tp_histogram histogram;
    for (int i = 0; i < 300; i++)
        values[i] = (float)i;
    values[300] = NAN;
    values[301] = INFINITY;
    tp_histogram_of(values, 302, &histogram);
    double sum = 0;
    for (int i = 0; i < TP_HISTOGRAM_BUCKETS; i++) {
        sum += histogram.counts[i];
        cr_assert(histogram.edges[i] < histogram.edges[i + 1]);
    }
    cr_assert(sum == 300 && histogram.edges[0] == 0 &&
              histogram.edges[TP_HISTOGRAM_BUCKETS] == 299);
    cr_assert(histogram.counts[0] == 10 && histogram.counts[29] == 10);
    values[0] = 7;
    tp_histogram_of(values, 1, &histogram);
    cr_assert(histogram.counts[29] == 1 && histogram.edges[0] == 7 && histogram.edges[30] == 7);
    tp_histogram_of(values + 300, 2, &histogram);
    cr_assert(histogram.counts[29] == 0);
    tp_str_builder to = {0};
    tp_summary_histogram(&to, "weights", &histogram);
    char *text = decoded(&to);
    expect(text, "size: 30");
    expect(text, "size: 3\n");
    expect(text, "dtype: DT_DOUBLE");
    free(text);
}

/* ---- files ---- */

static char folder[] = "/tmp/tpucl_event_XXXXXX";

static void put_scalar(tp_event_file *file, int64_t step, float value)
{
    tp_str_builder to = {0};
    tp_summary_scalar(&to, "loss", value);
    cr_assert(tp_event_file_put(file, 1.5, step, (tp_view){to.data, to.length}) == TPUCL_OK);
    tp_str_builder_deinit(&to);
}

/* The texts of all events of a file. */
static char *read_events(tp_reader *source)
{
    tp_record_reader *reader = NULL;
    tp_record record;
    bool found;
    char *all = calloc(1, 1 << 16);
    cr_assert(tp_record_reader_adopt(source, NULL, &reader) == TPUCL_OK);
    while (tp_record_reader_next(reader, &record, &found) == TPUCL_OK && found) {
        char *text = protoc_decode("event", "Event", record.bytes, record.length);
        strncat(all, text, (1 << 16) - strlen(all) - 1);
        free(text);
    }
    cr_assert(!found);
    tp_record_reader_close(reader);
    return all;
}

static char *read_file(const char *path)
{
    tp_reader *source = NULL;
    cr_assert(tp_reader_open_file(path, 0, &source) == TPUCL_OK);
    return read_events(source);
}

Test(event, files_of_a_run_sort_as_they_were_begun)
{
    cr_assert(mkdtemp(folder) != NULL);
    char previous[512] = "", path[512], remove[600];
    /* A clock that was ahead. */
    snprintf(path, sizeof path, "%s/events.out.tfevents.%010lld.host.1.0", folder,
             (long long)time(NULL) + 1000);
    cr_assert(tp_file_write_atomic(path, "", 0) == TPUCL_OK);
    snprintf(previous, sizeof previous, "%s", path);
    for (int i = 0; i < 3; i++) {
        tp_event_file *file = NULL;
        cr_assert(tp_event_file_open(folder, 10 * i, &file) == TPUCL_OK);
        snprintf(path, sizeof path, "%s", tp_event_file_name(file));
        cr_assert(strcmp(previous, path) < 0, "%s %s", previous, path);
        put_scalar(file, 10 * i, 0.5f);
        cr_assert(tp_event_file_flush(file) == TPUCL_OK);
        char *text = read_file(path); /* readable while it is open */
        expect(text, "file_version: \"brain.Event:2\"");
        expect(text, "float_val: 0.5");
        static const char *const starts[] = {"session_log {\n  status: START",
                                             "step: 10\nsession_log", "step: 20\nsession_log"};
        expect(text, starts[i]);
        free(text);
        cr_assert(tp_event_file_close(file) == TPUCL_OK);
        snprintf(previous, sizeof previous, "%s", path);
    }
    snprintf(remove, sizeof remove, "rm -r %s", folder);
    cr_assert_eq(system(remove), 0);
}

static int failures_left;

static tpucl_status write_or_fail(tp_writer *writer, const void *bytes, size_t length)
{
    if (failures_left-- > 0) return TP_FAIL(TPUCL_IO_ERROR, "no room");
    return memory_write(writer, bytes, length);
}

Test(event, events_wait_when_a_write_fails)
{
    static tp_writer_ops ops;
    memory_writer memory;
    tp_event_file *file = NULL;
    tp_writer *target = memory_writer_init(&memory);
    ops = *target->ops;
    ops.write = write_or_fail;
    target->ops = &ops;
    cr_assert(tp_event_file_adopt(target, 0, &file) == TPUCL_OK);
    failures_left = 2;
    put_scalar(file, 1, 3);
    cr_assert_eq(tp_event_file_flush(file), TPUCL_IO_ERROR);
    put_scalar(file, 2, 4);
    cr_assert_eq(tp_event_file_flush(file), TPUCL_IO_ERROR);
    cr_assert(tp_event_file_close(file) == TPUCL_OK);
    tp_reader *source = NULL;
    cr_assert(tp_reader_open_bytes(memory.bytes, memory.length, "memory", &source) == TPUCL_OK);
    char *text = read_events(source);
    expect(text, "float_val: 3");
    expect(text, "float_val: 4");
    free(text);
    free(memory.bytes);
}

/* The limit on a file's size stands for a full disk: a write comes to its half. */
Test(event, a_full_disk_leaves_no_half_of_an_event)
{
    char run[] = "/tmp/tpucl_event_XXXXXX", remove[64];
    cr_assert(mkdtemp(run) != NULL);
    tp_event_file *file = NULL;
    tp_str_builder to = {0};
    struct rlimit limit;
    uint64_t before = 0, after = 0;
    char *long_text = calloc(1, 100001);
    memset(long_text, 'x', 100000);
    cr_assert(tp_event_file_open(run, 0, &file) == TPUCL_OK);
    cr_assert(tp_file_size(tp_event_file_name(file), &before) == TPUCL_OK);
    tp_summary_text(&to, "long", long_text);
    cr_assert(tp_event_file_put(file, 1, 1, (tp_view){to.data, to.length}) == TPUCL_OK);

    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t usual = limit.rlim_cur;
    limit.rlim_cur = 50000;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(tp_event_file_flush(file), TPUCL_IO_ERROR);
    cr_assert(strstr(tpucl_last_error()->message, tp_event_file_name(file)));
    cr_assert(tp_file_size(tp_event_file_name(file), &after) == TPUCL_OK);
    cr_assert_eq(before, after);
    limit.rlim_cur = usual;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);

    cr_assert(tp_event_file_flush(file) == TPUCL_OK);
    char path[512];
    snprintf(path, sizeof path, "%s", tp_event_file_name(file));
    cr_assert(tp_event_file_close(file) == TPUCL_OK);
    tp_reader *source = NULL;
    tp_record_reader *reader = NULL;
    tp_record record;
    bool found = true;
    cr_assert(tp_reader_open_file(path, 0, &source) == TPUCL_OK);
    cr_assert(tp_record_reader_adopt(source, NULL, &reader) == TPUCL_OK);
    while (found)
        cr_assert(tp_record_reader_next(reader, &record, &found) == TPUCL_OK);
    cr_assert_eq(tp_record_reader_counts(reader).records, 3);
    tp_record_reader_close(reader);
    tp_str_builder_deinit(&to);
    free(long_text);
    snprintf(remove, sizeof remove, "rm -r %s", run);
    cr_assert_eq(system(remove), 0);
}
