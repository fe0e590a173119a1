/* SPDX-License-Identifier: Apache-2.0
 * TFRecord files: what is written is read again under every compression, damage of any byte is noticed, and lengths
 * cost no memory before their bytes are there. */
#include <criterion/criterion.h>
#include <stdio.h>
#include "core/alloc.h"
#include "core/crc32c.h"
#include "harness/memory_writer.h"
#include "io/tfrecord.h"

typedef struct file {
    unsigned char *bytes;
    size_t length;
} file;

/* Records of `lengths` bytes, each filled with its index. */
static file make(const size_t *lengths, size_t count, tp_compression compression)
{
    memory_writer memory;
    tp_record_writer *writer = NULL;
    cr_assert(tp_record_writer_adopt(memory_writer_init(&memory), compression, &writer) ==
              TPUCL_OK);
    for (size_t i = 0; i < count; i++) {
        unsigned char *bytes = malloc(lengths[i] + 1);
        memset(bytes, (int)i, lengths[i]);
        cr_assert(tp_record_writer_put(writer, bytes, lengths[i]) == TPUCL_OK);
        free(bytes);
    }
    cr_assert(tp_record_writer_commit(writer) == TPUCL_OK);
    cr_assert(memory.committed);
    return (file){memory.bytes, memory.length};
}

static tp_record_reader *open_bytes(const void *bytes, size_t length,
                                    const tp_record_options *options)
{
    tp_reader *source = NULL;
    tp_record_reader *reader = NULL;
    cr_assert(tp_reader_open_bytes(bytes, length, "shard", &source) == TPUCL_OK);
    cr_assert(tp_record_reader_adopt(source, options, &reader) == TPUCL_OK);
    return reader;
}

/* Reads to the end or the first failure. */
static tpucl_status read_all(const void *bytes, size_t length, const tp_record_options *options,
                             tp_record_counts *out_counts)
{
    tp_record_reader *reader = open_bytes(bytes, length, options);
    tp_record record;
    bool found = true;
    tpucl_status status = TPUCL_OK;
    while (status == TPUCL_OK && found)
        status = tp_record_reader_next(reader, &record, &found);
    *out_counts = tp_record_reader_counts(reader);
    tp_record_reader_close(reader);
    return status;
}

/* 0,0 is the empty record of TensorFlow's own tests. */
Test(tfrecord, an_empty_record_is_these_sixteen_bytes)
{
    static const unsigned char expected[16] = {0,    0,    0,    0,    0,    0,    0,    0,
                                               0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2};
    const file made = make((size_t[]){0}, 1, TP_COMPRESSION_NONE);
    cr_assert_eq(made.length, 16);
    cr_assert_arr_eq(made.bytes, expected, 16);
    free(made.bytes);
}

static const size_t sizes[] = {0, 1, 11, 12, 13, 262128, 262144, 262145, 5, 1000000, 3, 0};
enum { SIZES = sizeof sizes / sizeof *sizes };

Test(tfrecord, comes_back_under_every_compression)
{
    for (tp_compression c = TP_COMPRESSION_NONE; c <= TP_COMPRESSION_ZLIB; c++) {
        const file made = make(sizes, SIZES, c);
        tp_record_reader *reader = open_bytes(made.bytes, made.length, NULL);
        cr_assert_eq(tp_record_reader_compression(reader), c);
        uint64_t offset = 0;
        for (size_t i = 0; i < SIZES; i++) {
            tp_record record;
            bool found;
            cr_assert(tp_record_reader_next(reader, &record, &found) == TPUCL_OK && found);
            cr_assert_eq(record.length, sizes[i]);
            cr_assert_eq(record.offset, offset);
            for (size_t k = 0; k < record.length; k++)
                cr_assert_eq(record.bytes[k], i);
            offset += sizes[i] + 16;
        }
        tp_record record;
        bool found;
        cr_assert(tp_record_reader_next(reader, &record, &found) == TPUCL_OK && !found);
        cr_assert_eq(tp_record_reader_counts(reader).records, SIZES);
        tp_record_reader_close(reader);
        free(made.bytes);
    }
}

Test(tfrecord, gzip_members_follow_one_another)
{
    file a = make((size_t[]){5, 700}, 2, TP_COMPRESSION_GZIP);
    const file b = make((size_t[]){9}, 1, TP_COMPRESSION_GZIP);
    tp_record_counts counts;
    a.bytes = realloc(a.bytes, a.length + b.length + 8);
    memcpy(a.bytes + a.length, b.bytes, b.length);
    memset(a.bytes + a.length + b.length, 0, 8); /* padding, as tapes have it */
    cr_assert(read_all(a.bytes, a.length + b.length + 8, NULL, &counts) == TPUCL_OK);
    cr_assert(counts.records == 3 && counts.bytes == 714);
    free(a.bytes);
    free(b.bytes);
}

/* Records whose length looks like a magic number: 1f8b, 7801, 789c. */
Test(tfrecord, a_good_record_is_no_compression)
{
    static const size_t lengths[] = {0x8b1f, 0x0178, 0x9c78};
    for (size_t i = 0; i < 3; i++) {
        const file made = make(&lengths[i], 1, TP_COMPRESSION_NONE);
        tp_record_counts counts;
        cr_assert_neq(tp_compression_sniff(made.bytes, made.length), TP_COMPRESSION_NONE);
        cr_assert(read_all(made.bytes, made.length, NULL, &counts) == TPUCL_OK);
        cr_assert_eq(counts.bytes, lengths[i]);
        free(made.bytes);
    }
}

Test(tfrecord, a_cut_file_is_noticed_wherever_it_was_cut)
{
    for (tp_compression c = TP_COMPRESSION_NONE; c <= TP_COMPRESSION_ZLIB; c++) {
        const file made = make((size_t[]){3, 0, 40}, 3, c);
        const tp_record_options options = {.compression = c};
        for (size_t length = 1; length < made.length; length++) {
            tp_record_counts counts;
            const tpucl_status status = read_all(made.bytes, length, &options, &counts);
            const bool at_border = c == TP_COMPRESSION_NONE && (length == 19 || length == 35);
            cr_assert_eq(status, at_border ? TPUCL_OK : TPUCL_CORRUPT_DATA, "%d %zu", c, length);
            if (!at_border) cr_assert(strstr(tpucl_last_error()->message, "'shard'"));
        }
        free(made.bytes);
    }
}

Test(tfrecord, any_changed_byte_is_noticed)
{
    const file made = make((size_t[]){3, 0, 40}, 3, TP_COMPRESSION_NONE);
    const tp_record_options options = {.compression = TP_COMPRESSION_NONE};
    for (size_t i = 0; i < made.length; i++) {
        tp_record_counts counts;
        made.bytes[i] ^= 16;
        cr_assert_eq(read_all(made.bytes, made.length, &options, &counts), TPUCL_CORRUPT_DATA);
        made.bytes[i] ^= 16;
    }
    free(made.bytes);
}

Test(tfrecord, skips_what_it_can)
{
    const file made = make((size_t[]){3, 8, 40, 2}, 4, TP_COMPRESSION_NONE);
    const tp_record_options skip = {.policy = TP_RECORD_SKIP};
    tp_record_counts counts;
    made.bytes[19 + 12 + 4] ^= 1; /* in the second record's bytes */
    cr_assert(read_all(made.bytes, made.length, &skip, &counts) == TPUCL_OK);
    cr_assert(counts.records == 3 && counts.faults == 1 && counts.bytes == 45);
    made.bytes[19 + 24] ^= 1; /* and in the third one's length: the rest is lost */
    tp_record_reader *reader = open_bytes(made.bytes, made.length, &skip);
    tp_record record;
    bool found = true;
    while (found)
        cr_assert(tp_record_reader_next(reader, &record, &found) == TPUCL_OK);
    counts = tp_record_reader_counts(reader);
    cr_assert(counts.records == 1 && counts.faults == 2);
    cr_assert(strstr(tp_record_reader_first_fault(reader), "at offset 19"));
    tp_record_reader_close(reader);
    free(made.bytes);
}

Test(tfrecord, leaves_sums_over_bytes_out_when_told)
{
    const file made = make((size_t[]){30}, 1, TP_COMPRESSION_NONE);
    tp_record_counts counts;
    made.bytes[20] ^= 1;
    const tp_record_options unchecked = {.is_unchecked = true};
    cr_assert(read_all(made.bytes, made.length, &unchecked, &counts) == TPUCL_OK);
    free(made.bytes);
}

/* A head that is right and promises 900 MB. */
Test(tfrecord, a_promise_costs_no_memory)
{
    unsigned char head[64] = {0};
    uint64_t length = 900000000;
    memcpy(head, &length, 8);
    const uint32_t sum = tp_crc32c_mask(tp_crc32c(0, head, 8));
    memcpy(head + 8, &sum, 4);
    tp_record_counts counts;
    tp_record_reader *reader = open_bytes(head, sizeof head, NULL);
    tp_alloc_test_fail_after(0);
    tp_record record;
    bool found;
    cr_assert_eq(tp_record_reader_next(reader, &record, &found), TPUCL_CORRUPT_DATA);
    tp_alloc_test_fail_after(-1);
    tp_record_reader_close(reader);
    const tp_record_options small = {.max_record_bytes = 1000};
    cr_assert_eq(read_all(head, sizeof head, &small, &counts), TPUCL_CORRUPT_DATA);
    cr_assert(strstr(tpucl_last_error()->message, "at most 1000"));
}

Test(tfrecord, an_empty_file_has_no_records)
{
    for (tp_compression c = TP_COMPRESSION_SNIFF; c <= TP_COMPRESSION_ZLIB; c++) {
        tp_record_counts counts;
        const tp_record_options options = {.compression = c};
        cr_assert(read_all("", 0, &options, &counts) == TPUCL_OK);
        cr_assert_eq(counts.records, 0);
    }
}

/* Each file there was written by TensorFlow (gen_records.py): 3 records. */
Test(tfrecord, reads_what_tensorflow_wrote)
{
    static const char *const names[] = {"none", "gzip", "zlib"};
    for (int i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, TPUCL_SOURCE_DIR "/tests/golden/records/examples.%s.tfrecord",
                 names[i]);
        tp_reader *source = NULL;
        tp_record_reader *reader = NULL;
        cr_assert(tp_reader_open_file(path, 0, &source) == TPUCL_OK);
        cr_assert(tp_record_reader_adopt(source, NULL, &reader) == TPUCL_OK);
        cr_assert_str_eq(tp_compression_name(tp_record_reader_compression(reader)), names[i]);
        tp_record record;
        bool found = true;
        while (found)
            cr_assert(tp_record_reader_next(reader, &record, &found) == TPUCL_OK);
        cr_assert_eq(tp_record_reader_counts(reader).records, 3);
        tp_record_reader_close(reader);
    }
}

/* Every allocation fails once; nothing leaks, nothing crashes. */
Test(tfrecord, survives_failing_allocations)
{
    const file made = make((size_t[]){300000, 7}, 2, TP_COMPRESSION_GZIP);
    int failures = 0;
    for (int64_t n = 0; n < 40; n++) {
        tp_reader *source = NULL;
        tp_record_reader *reader = NULL;
        tp_record record;
        bool found = true;
        tp_alloc_test_fail_after(n);
        tpucl_status status = tp_reader_open_bytes(made.bytes, made.length, "shard", &source);
        if (status == TPUCL_OK) status = tp_record_reader_adopt(source, NULL, &reader);
        while (status == TPUCL_OK && found)
            status = tp_record_reader_next(reader, &record, &found);
        tp_alloc_test_fail_after(-1);
        tp_record_reader_close(reader);
        cr_assert(status == TPUCL_OK || status == TPUCL_OUT_OF_MEMORY, "%s",
                  tpucl_last_error()->message);
        failures += status != TPUCL_OK;
    }
    cr_assert(failures > 5 && failures < 40, "%d", failures);
    free(made.bytes);
}
