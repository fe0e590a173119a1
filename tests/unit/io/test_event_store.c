/* SPDX-License-Identifier: Apache-2.0
 * Event files where nothing can be appended, with files that are replaced for objects: what readers see while one is
 * written, how one follows another, a store that is too slow or gone. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/file.h"
#include "harness/protoc.h"
#include "io/event_internal.h"
#include "io/event_summary.h"
#include "io/tfrecord.h"

static char folder[] = "/tmp/tpucl_event_store_XXXXXX";
static tp_arena *arena;

static void setup(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
}

static void teardown(void)
{
    char remove[64];
    tp_arena_destroy(arena);
    snprintf(remove, sizeof remove, "rm -r %s", folder);
    cr_assert_eq(system(remove), 0);
}

TestSuite(event_store, .init = setup, .fini = teardown);

static void must(tpucl_status status)
{
    cr_assert(status == TPUCL_OK, "%s", tpucl_last_error()->message);
}

static void put_and_flush(tp_event_file *file, int64_t step)
{
    tp_str_builder to = {0};
    tp_summary_scalar(&to, "loss", (float)step);
    must(tp_event_file_put(file, 1.5, step, (tp_view){to.data, to.length}));
    must(tp_event_file_flush(file));
    tp_str_builder_deinit(&to);
}

/* Events of all files in the order of their names; *out_text is that of protoc. */
static int64_t read_all(size_t *out_files, char **out_text)
{
    const char *const *names;
    int64_t count = 0;
    *out_text = calloc(1, 1 << 20);
    must(tp_file_list(folder, arena, &names, out_files));
    for (size_t i = 0; i < *out_files; i++) {
        tp_reader *source;
        tp_record_reader *reader;
        tp_record record;
        bool found = true;
        must(tp_reader_open_file(tp_file_join(arena, folder, names[i]), 0, &source));
        must(tp_record_reader_adopt(source, NULL, &reader));
        for (int64_t of_file = 0;; of_file++) {
            must(tp_record_reader_next(reader, &record, &found));
            if (!found) break;
            char *text = protoc_decode("event", "Event", record.bytes, record.length);
            cr_assert((strstr(text, "brain.Event:2") != NULL) == (of_file == 0), "%s", text);
            strncat(*out_text, text, (1 << 20) - strlen(*out_text) - 1);
            free(text);
            count++;
        }
        tp_record_reader_close(reader);
    }
    return count;
}

static tp_event_file *open_with(const tp_event_store_options *options)
{
    tp_event_file *file;
    tp_writer *writer;
    must(tp_event_store_open(folder, options, &writer));
    must(tp_event_file_adopt(writer, 0, &file));
    return file;
}

Test(event_store, what_waits_is_put_at_the_end_in_one_object)
{
    const tp_event_store_options options = {.pause_ns = 3600000000000u};
    tp_event_file *file = open_with(&options);
    size_t files;
    char *text;
    const uint64_t begin = tp_clock_now_ns();
    for (int64_t step = 1; step <= 20; step++)
        put_and_flush(file, step);
    must(tp_event_file_close(file));
    cr_assert(tp_clock_now_ns() - begin < 600000000000u, "the end waited for the pause");
    cr_assert_eq(read_all(&files, &text), 22);
    cr_assert_eq(files, 1);
    free(text);
}

Test(event_store, readers_see_it_grow_with_the_same_first_bytes)
{
    const tp_event_store_options options = {.pause_ns = 1};
    tp_event_file *file = open_with(&options);
    char before[4096], after[4096];
    size_t length = 0, longer = 0, count = 0;
    const char *const *names = NULL;
    put_and_flush(file, 1);
    for (int i = 0; i < 2000 && (count == 0 || longer <= length); i++) {
        tp_clock_sleep_ns(5000000);
        must(tp_file_list(folder, arena, &names, &count));
        if (count == 0 || strstr(names[count - 1], ".part")) continue;
        const char *path = tp_file_join(arena, folder, names[0]);
        if (length == 0) {
            must(tp_file_read_head(path, sizeof before, before, &length));
            put_and_flush(file, 2);
        }
        must(tp_file_read_head(path, sizeof after, after, &longer));
    }
    cr_assert(length > 0 && longer > length, "%zu, then %zu", length, longer);
    cr_assert(memcmp(before, after, length) == 0);
    must(tp_event_file_close(file));
}

Test(event_store, long_ones_are_followed_by_others_that_do_not_begin_the_run_again)
{
    const tp_event_store_options options = {.pause_ns = 1, .roll_bytes = 400};
    tp_event_file *file = open_with(&options);
    size_t files;
    char *text;
    for (int64_t step = 1; step <= 60; step++) {
        put_and_flush(file, step);
        tp_clock_sleep_ns(2000000); /* for the thread to take some and not all */
    }
    must(tp_event_file_close(file));
    const int64_t count = read_all(&files, &text);
    cr_assert(files > 1 && count == 61 + (int64_t)files, "%lld in %zu", (long long)count, files);
    char *first = strstr(text, "status: START");
    cr_assert(first && !strstr(first + 1, "status: START"), "one START for each run");
    const char *at = text;
    for (int64_t step = 1; step <= 60; step++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "step: %lld\n", (long long)step);
        at = strstr(at, wanted);
        cr_assert(at, "step %lld is missing or out of order", (long long)step);
    }
    free(text);
}

Test(event_store, too_much_for_a_slow_store_is_left_out_and_the_rest_is_whole)
{
    const tp_event_store_options options = {.pause_ns = 3600000000000u, .most_bytes = 1000};
    tp_event_file *file = open_with(&options);
    size_t files;
    char *text;
    for (int64_t step = 1; step <= 200; step++)
        put_and_flush(file, step);
    must(tp_event_file_close(file));
    const int64_t count = read_all(&files, &text);
    cr_assert(count > 4 && count < 60, "%lld", (long long)count);
    free(text);
}

Test(event_store, a_store_that_is_gone_is_an_error_of_a_later_write_and_of_the_end)
{
    tp_event_file *file;
    tp_writer *writer;
    must(tp_event_store_open("/proc/none", &(tp_event_store_options){.pause_ns = 1}, &writer));
    must(tp_event_file_adopt(writer, 0, &file));
    tpucl_status status = TPUCL_OK;
    for (int i = 0; i < 2000 && status == TPUCL_OK; i++) {
        tp_str_builder to = {0};
        tp_clock_sleep_ns(5000000);
        tp_summary_scalar(&to, "loss", 1);
        status = tp_event_file_put(file, 1, i, (tp_view){to.data, to.length});
        if (status == TPUCL_OK) status = tp_event_file_flush(file);
        tp_str_builder_deinit(&to);
    }
    cr_assert(status != TPUCL_OK);
    cr_assert(strstr(tpucl_last_error()->message, "/proc/none"), "%s", tpucl_last_error()->message);
    cr_assert(tp_event_file_close(file) == status);
}
