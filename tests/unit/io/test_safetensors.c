/* SPDX-License-Identifier: Apache-2.0
 * Round trip, the exact bytes of a small file, and malformed files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "io/safetensors.h"

static char path[64];

static void make_path(void)
{
    strcpy(path, "/tmp/tpucl-safetensors-XXXXXX");
    int handle = mkstemp(path);
    cr_assert_geq(handle, 0);
    close(handle);
}

static void remove_path(void)
{
    unlink(path);
}

TestSuite(safetensors, .init = make_path, .fini = remove_path);

static const float weights[6] = {1, -2, 3.5f, 0, 1e-20f, 7};
static const uint16_t halves[2] = {0x3f80, 0xc000};

static void write_two(void)
{
    tp_tensor_entry entries[2] = {
        {.name = "b/half", .dtype = TP_BF16, .data = halves, .bytes = 4},
        {.name = "a/kernel", .dtype = TP_F32, .data = weights, .bytes = 24},
    };
    cr_assert_eq(tp_shape_init(&entries[0].shape, 1, (int64_t[]){2}), TPUCL_OK);
    cr_assert_eq(tp_shape_init(&entries[1].shape, 2, (int64_t[]){2, 3}), TPUCL_OK);
    const char *keys[] = {"contract"}, *values[] = {"1"};
    cr_assert_eq(tp_safetensors_write(path, entries, 2, keys, values, 1), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
}

Test(safetensors, round_trip)
{
    tp_safetensors *file = NULL;
    write_two();
    cr_assert_eq(tp_safetensors_open(path, &file), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_safetensors_count(file), 2);
    const tp_tensor_entry *kernel = tp_safetensors_find(file, "a/kernel");
    cr_assert_not_null(kernel);
    cr_assert_eq(kernel->shape.dims[1], 3);
    cr_assert_arr_eq(kernel->data, weights, sizeof weights);
    cr_assert_arr_eq(tp_safetensors_find(file, "b/half")->data, halves, sizeof halves);
    cr_assert_null(tp_safetensors_find(file, "c"));
    tp_safetensors_close(file);
}

Test(safetensors, bytes_are_those_of_the_format)
{
    static const char header[] =
        "{\"__metadata__\":{\"contract\":\"1\"},"
        "\"a/kernel\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"b/half\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[24,28]}}";
    char *bytes = NULL;
    size_t length = 0, padded = (sizeof header - 1 + 7) / 8 * 8;
    write_two();
    cr_assert_eq(tp_file_read(path, 1 << 20, &bytes, &length), TPUCL_OK);
    cr_assert_eq(length, 8 + padded + 28);
    cr_assert_eq((unsigned char)bytes[0], padded & 0xff);
    cr_assert_eq(memcmp(bytes + 8, header, sizeof header - 1), 0, "%.*s", (int)padded, bytes + 8);
    cr_assert_eq(memcmp(bytes + 8 + padded, weights, 24), 0);
    tp_free(bytes);
}

static void expect_refused(const char *header, size_t data_bytes)
{
    char file[1024] = {0};
    size_t length = strlen(header);
    file[0] = (char)length;
    file[1] = (char)(length >> 8);
    memcpy(file + 8, header, length);
    cr_assert_eq(tp_file_write_atomic(path, file, 8 + length + data_bytes), TPUCL_OK);
    tp_safetensors *opened = NULL;
    tpucl_status status = tp_safetensors_open(path, &opened);
    cr_assert(status == TPUCL_CORRUPT_DATA || status == TPUCL_UNSUPPORTED ||
                  status == TPUCL_INVALID_ARGUMENT,
              "%s: %s", header, tpucl_status_name(status));
    cr_assert(strlen(tpucl_last_error()->message) > 10);
}

Test(safetensors, malformed_files_are_refused)
{
    expect_refused("", 0);
    expect_refused("[]", 0);
    expect_refused("{\"a\":1}", 0);
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                   8); /* rest */
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                   0); /* short */
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8); /* gap */
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 8);
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4);
    expect_refused("{\"a\":{\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4);
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[9999999999,9999999999],"
                   "\"data_offsets\":[0,4]}}",
                   4);
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                   "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                   4);
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                   "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                   4); /* overlap */
}

Test(safetensors, huge_header_length_is_refused_before_allocation)
{
    tp_safetensors *opened = NULL;
    cr_assert_eq(tp_file_write_atomic(path, "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10), TPUCL_OK);
    cr_assert_eq(tp_safetensors_open(path, &opened), TPUCL_CORRUPT_DATA);
    cr_assert_eq(tp_file_write_atomic(path, "abc", 3), TPUCL_OK);
    cr_assert_eq(tp_safetensors_open(path, &opened), TPUCL_CORRUPT_DATA);
}

Test(safetensors, double_names_are_not_written)
{
    tp_tensor_entry entries[2] = {{.name = "x", .dtype = TP_F32, .data = weights, .bytes = 4},
                                  {.name = "x", .dtype = TP_F32, .data = weights, .bytes = 4}};
    cr_assert_eq(tp_safetensors_write(path, entries, 2, NULL, NULL, 0), TPUCL_INVALID_ARGUMENT);
}
