/* SPDX-License-Identifier: Apache-2.0
 * Streams: files and memory, from the beginning and from an offset; what is written shows up at commit only. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "io/stream.h"

static char folder[] = "/tmp/tpucl_stream_XXXXXX", path[64];

static void setup(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/ten", folder);
    cr_assert(tp_file_write_atomic(path, "0123456789", 10) == TPUCL_OK);
}

static void teardown(void)
{
    unlink(path);
    rmdir(folder);
}

TestSuite(stream, .init = setup, .fini = teardown);

static void expect(tp_reader *reader, size_t bytes, const char *text)
{
    char got[16] = {0};
    size_t count = 0;
    cr_assert(tp_reader_read(reader, got, bytes, &count) == TPUCL_OK);
    cr_assert_eq(count, strlen(text));
    cr_assert_str_eq(got, text);
}

static void check_ten(tp_reader *reader, uint64_t begin)
{
    uint64_t skipped = 0;
    cr_assert_eq(reader->offset, begin);
    expect(reader, 2, begin ? "34" : "01");
    cr_assert(tp_reader_skip(reader, 1, &skipped) == TPUCL_OK && skipped == 1);
    expect(reader, 16, begin ? "6789" : "3456789");
    cr_assert_eq(reader->offset, 10);
    expect(reader, 1, "");
    cr_assert(tp_reader_skip(reader, 5, &skipped) == TPUCL_OK && skipped == 0);
    tp_reader_close(reader);
}

Test(stream, a_file_is_read_from_any_offset)
{
    tp_reader *reader = NULL;
    cr_assert(tp_reader_open_file(path, 0, &reader) == TPUCL_OK);
    cr_assert_str_eq(reader->name, path);
    check_ten(reader, 0);
    cr_assert(tp_reader_open_file(path, 3, &reader) == TPUCL_OK);
    check_ten(reader, 3);
}

Test(stream, memory_is_read)
{
    tp_reader *reader = NULL;
    cr_assert(tp_reader_open_bytes("0123456789", 10, "ten", &reader) == TPUCL_OK);
    check_ten(reader, 0);
    cr_assert(tp_reader_open_bytes(NULL, 0, "none", &reader) == TPUCL_OK);
    expect(reader, 4, "");
    tp_reader_close(reader);
}

Test(stream, what_cannot_be_read_is_named)
{
    tp_reader *reader = NULL;
    cr_assert(tp_reader_open_file("/nowhere/at/all", 0, &reader) == TPUCL_NOT_FOUND);
    cr_assert(strstr(tpucl_last_error()->message, "/nowhere/at/all") != NULL);
    char byte;
    size_t got;
    cr_assert(tp_reader_open_file(folder, 0, &reader) == TPUCL_OK);
    cr_assert(tp_reader_read(reader, &byte, 1, &got) == TPUCL_IO_ERROR); /* a folder */
    tp_reader_close(reader);
    tp_reader_close(NULL);
}

Test(stream, what_is_written_shows_up_at_commit)
{
    tp_writer *writer = NULL;
    char *text = NULL;
    cr_assert(tp_writer_open_file(path, &writer) == TPUCL_OK);
    cr_assert(tp_writer_write(writer, "new", 3) == TPUCL_OK);
    cr_assert_eq(writer->offset, 3);
    tp_writer_abort(writer);
    cr_assert(tp_file_read(path, 100, &text, NULL) == TPUCL_OK);
    cr_assert_str_eq(text, "0123456789");
    tp_free(text);
    cr_assert(tp_writer_open_file(path, &writer) == TPUCL_OK);
    cr_assert(tp_writer_write(writer, "new", 3) == TPUCL_OK);
    cr_assert(tp_writer_commit(writer) == TPUCL_OK);
    cr_assert(tp_file_read(path, 100, &text, NULL) == TPUCL_OK);
    cr_assert_str_eq(text, "new");
    tp_free(text);
    tp_writer_abort(NULL);
}

Test(stream, a_file_that_cannot_be_written_is_named)
{
    tp_writer *writer = NULL;
    cr_assert(tp_writer_open_file("/nowhere/at/all", &writer) == TPUCL_NOT_FOUND);
    cr_assert(strstr(tpucl_last_error()->message, "/nowhere/at/all") != NULL);
}
