/* SPDX-License-Identifier: Apache-2.0
 * IDX and npy readers: right files, and every way of being wrong that a reader meets. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "core/alloc.h"
#include "core/file.h"
#include "data/source.h"
#include "num/bf16.h"

static char folder[] = "/tmp/tpucl-source-XXXXXX";

static void make_folder(void)
{
    cr_assert(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(source, .init = make_folder, .fini = remove_folder);

static const char *put(const char *name, const void *bytes, size_t length)
{
    static char paths[8][96];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 96, "%s/%s", folder, name);
    cr_assert_eq(tp_file_write_atomic(path, bytes, length), TPUCL_OK);
    return path;
}

static const char images[] = "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03"
                             "abcdefABCDEF";
static const char labels[] = "\0\0\x08\x01\0\0\0\x02\x07\x09";

static void expect(tpucl_status wanted, tpucl_status found, const char *words)
{
    cr_assert_eq(found, wanted, "%s: %s", tpucl_status_name(found), tpucl_last_error()->message);
    cr_assert(strstr(tpucl_last_error()->message, words), "'%s' is not in '%s'", words,
              tpucl_last_error()->message);
}

Test(source, idx_plain_and_gzip)
{
    const char *label_path = put("labels", labels, sizeof labels - 1);
    const char *plain = put("images", images, sizeof images - 1);
    char zipped[96];
    snprintf(zipped, sizeof zipped, "%s/images.gz", folder);
    gzFile file = gzopen(zipped, "wb");
    gzwrite(file, images, sizeof images - 1);
    gzclose(file);
    for (int i = 0; i < 2; i++) {
        tp_source *source = NULL;
        cr_assert_eq(tp_source_open_idx(i ? zipped : plain, label_path, &source), TPUCL_OK, "%s",
                     tpucl_last_error()->message);
        cr_assert_eq(source->example_count, 2);
        cr_assert_eq(source->fields[0].shape.rank, 3);
        cr_assert_eq(source->fields[0].shape.dims[2], 1);
        cr_assert_eq(memcmp(source->arrays[0], "abcdefABCDEF", 12), 0);
        cr_assert_eq(((int32_t *)source->arrays[1])[1], 9);
        cr_assert_eq(tp_source_find_field(source, "label"), 1);
        tp_source_destroy(source);
    }
}

Test(source, idx_faults_name_file_and_offset)
{
    tp_source *source = NULL;
    const char *label_path = put("labels", labels, sizeof labels - 1);
    expect(TPUCL_CORRUPT_DATA,
           tp_source_open_idx(put("cut", images, sizeof images - 5), label_path, &source),
           "ends at offset 24");
    expect(TPUCL_CORRUPT_DATA, tp_source_open_idx(put("head", images, 9), label_path, &source),
           "ends at offset 9");
    expect(TPUCL_CORRUPT_DATA,
           tp_source_open_idx(put("magic", "PNG\r\n...", 8), label_path, &source), "no IDX file");
    expect(TPUCL_CORRUPT_DATA,
           tp_source_open_idx(put("long", images, sizeof images), label_path, &source), "goes on");
    char huge[sizeof images];
    memcpy(huge, images, sizeof images);
    memset(huge + 4, 0x3f, 8);
    expect(TPUCL_CORRUPT_DATA,
           tp_source_open_idx(put("huge", huge, sizeof huge - 1), label_path, &source), "huge");
    memcpy(huge, images, sizeof images);
    huge[4] = 0x10; /* 2^28 rows of 6 bytes: representable, but not in 28 bytes of file */
    expect(TPUCL_CORRUPT_DATA,
           tp_source_open_idx(put("bomb", huge, sizeof huge - 1), label_path, &source),
           "more than any compression");
    expect(TPUCL_CORRUPT_DATA,
           tp_source_open_idx(put("images", images, sizeof images - 1),
                              put("three", "\0\0\x08\x01\0\0\0\x03\1\2\3", 11), &source),
           "equal numbers");
    expect(TPUCL_NOT_FOUND, tp_source_open_idx("/nowhere/x", label_path, &source), "/nowhere/x");
    expect(
        TPUCL_CORRUPT_DATA,
        tp_source_open_idx(put("gz", "\x1f\x8b\x08\0\0\0\0\0\0\3garbage", 17), label_path, &source),
        "gz");
}

/* Two images of `columns` bytes, not compressed, so that the file's length follows. */
static size_t put_gzip(const char *zipped, uint32_t columns)
{
    const size_t payload = 16 + 2 * (size_t)columns;
    uint64_t length = 0;
    unsigned char *bytes = calloc(1, payload);
    memcpy(bytes, "\0\0\x08\x03\0\0\0\x02\0\0\0\x01", 12);
    for (int i = 0; i < 4; i++)
        bytes[12 + i] = (unsigned char)(columns >> (24 - 8 * i));
    gzFile file = gzopen(zipped, "wb0");
    cr_assert_eq(gzwrite(file, bytes, (unsigned)payload), (int)payload);
    gzclose(file);
    free(bytes);
    cr_assert_eq(tp_file_size(zipped, &length), TPUCL_OK);
    return (size_t)length;
}

/* zlib decompresses the elements without a look at the checksum when its input buffer ends between them. */
Test(source, idx_gzip_checksum)
{
    enum { BUFFER = 6 << 18 }; /* six of those that the reader asks zlib for */
    tp_source *source = NULL;
    const char *label_path = put("labels", labels, sizeof labels - 1);
    char zipped[96], *bytes = NULL;
    size_t length = 0;
    uint32_t columns = BUFFER / 2 - 1024;
    snprintf(zipped, sizeof zipped, "%s/large.gz", folder);
    while ((length = put_gzip(zipped, columns)) <= BUFFER + 4) /* the buffer ends in the CRC32 */
        columns += (uint32_t)(BUFFER + 4 - length) / 2 + 1;
    cr_assert_lt(length, BUFFER + 8);
    cr_assert_eq(tp_source_open_idx(zipped, label_path, &source), TPUCL_OK);
    tp_source_destroy(source);
    cr_assert_eq(tp_file_read(zipped, 2 * BUFFER, &bytes, &length), TPUCL_OK);
    bytes[length - 8] ^= 1;
    expect(TPUCL_CORRUPT_DATA,
           tp_source_open_idx(put("damaged.gz", bytes, length), label_path, &source),
           "incorrect data check");
    tp_free(bytes);
}

static const char *put_npy(const char *name, const char *header, const void *data, size_t bytes)
{
    char file[512];
    size_t length = strlen(header);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (char)length;
    file[9] = (char)(length >> 8);
    memcpy(file + 10, header, length);
    memcpy(file + 10 + length, data, bytes);
    return put(name, file, 10 + length + bytes);
}

Test(source, npy_types)
{
    tp_source *source = NULL;
    float x[4] = {1.5f, -2.0f, 3.0f, 0.25f};
    int64_t y[2] = {4, -1};
    const char *in =
        put_npy("x", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", x, sizeof x);
    const char *out =
        put_npy("y", "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", y, sizeof y);
    cr_assert_eq(tp_source_open_npy(in, out, &source), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(source->fields[0].dtype, TP_F32);
    cr_assert_eq(((float *)source->arrays[0])[3], 0.25f);
    cr_assert_eq(source->fields[1].dtype, TP_S32);
    cr_assert_eq(((int32_t *)source->arrays[1])[1], -1);
    tp_source_destroy(source);
}

/* Rounded to nearest even; labels stay. */
Test(source, inputs_become_bf16)
{
    const float values[] = {1, 1.00390625f, 1.01171875f, -0.1f, NAN, 1e-40f};
    const float targets[] = {1.00390625f, 0.1f};
    tp_source *source = NULL;
    const char *in = put_npy("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                             values, sizeof values);
    const char *out =
        put_npy("y.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }", targets,
                sizeof targets);
    cr_assert_eq(tp_source_open_npy(in, out, &source), TPUCL_OK);
    cr_assert_eq(tp_source_narrow_inputs(source), TPUCL_OK);
    cr_assert(source->fields[0].dtype == TP_BF16 && source->fields[0].bytes == 6);
    cr_assert(source->fields[1].dtype == TP_F32 && source->fields[1].bytes == 4);
    const tp_bf16 *found = source->arrays[0];
    const tp_bf16 expected[] = {0x3f80, 0x3f80, 0x3f82, 0xbdcd};
    cr_expect_arr_eq(found, expected, sizeof expected);
    cr_expect(isnan(tp_bf16_to_f32(found[4])) && found[5] == 0);
    cr_expect_arr_eq(source->arrays[1], targets, sizeof targets);
    tp_source_destroy(source);
}

Test(source, npy_faults)
{
    tp_source *source = NULL;
    char data[64] = {0};
    const char *good =
        put_npy("y", "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", data, 2);
    struct {
        const char *header, *words;
        size_t bytes;
        tpucl_status status;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2)}", "'>f4'", 16,
         TPUCL_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", "Fortran", 16,
         TPUCL_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "promises 24", 16,
         TPUCL_CORRUPT_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999)}", "smaller number",
         16, TPUCL_CORRUPT_DATA},
        {"{'descr': '<f4', 'fortran_order': False}", "all of", 16, TPUCL_CORRUPT_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'x': 1}", "keys", 16,
         TPUCL_CORRUPT_DATA},
        {"{'descr' '<f4'", "expected ':'", 16, TPUCL_CORRUPT_DATA},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1)}", "outside 32 bits", 16,
         TPUCL_CORRUPT_DATA},
        {"", "'{'", 0, TPUCL_CORRUPT_DATA},
    };
    memset(data, 0x7f, sizeof data);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(
            cases[i].status,
            tp_source_open_npy(put_npy("x", cases[i].header, data, cases[i].bytes), good, &source),
            cases[i].words);
    expect(TPUCL_CORRUPT_DATA, tp_source_open_npy(put("z", "hello, world", 12), good, &source),
           "no .npy file");
}

Test(source, fashion_mnist_names_the_package)
{
    tp_source *source = NULL;
    expect(TPUCL_NOT_FOUND, tp_source_open_fashion_mnist(folder, false, &source),
           "dataset-fashion-mnist");
}
