/* SPDX-License-Identifier: Apache-2.0
 * Round trip of what tpucl writes; files with what models do not have. The latter are made here with libhdf5
 * itself: this test and src/io/hdf5_library.h are the only ones that include it. */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "io/hdf5.h"

static char path[64];

static void make_path(void)
{
    strcpy(path, "/tmp/tpucl-hdf5-XXXXXX");
    int handle = mkstemp(path);
    cr_assert_geq(handle, 0);
    close(handle);
}

static void remove_path(void)
{
    unlink(path);
}

TestSuite(hdf5, .init = make_path, .fini = remove_path);

static const float values[6] = {1, -2, 3.5f, 0, 1e-20f, 7};
static const uint16_t halves[2] = {0x3f80, 0xc000};
static const int32_t step = 12;

static tp_hdf5 *write_and_open(char **out_bytes)
{
    tp_hdf5_writer *writer;
    tp_hdf5 *file = NULL;
    tp_shape matrix, pair, scalar;
    size_t length;
    cr_assert_eq(tp_shape_init(&matrix, 2, (int64_t[]){2, 3}), TPUCL_OK);
    cr_assert_eq(tp_shape_init(&pair, 1, (int64_t[]){2}), TPUCL_OK);
    cr_assert_eq(tp_shape_init(&scalar, 0, NULL), TPUCL_OK);
    cr_assert_eq(tp_hdf5_writer_create(&writer), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_hdf5_put_group(writer, "layers/empty"), TPUCL_OK);
    cr_assert_eq(tp_hdf5_put_group(writer, "layers"), TPUCL_OK);
    cr_assert_eq(tp_hdf5_put_dataset(writer, "layers/dense/vars/0", TP_F32, &matrix, values),
                 TPUCL_OK);
    cr_assert_eq(tp_hdf5_put_dataset(writer, "layers/dense/vars/1", TP_BF16, &pair, halves),
                 TPUCL_OK);
    cr_assert_eq(tp_hdf5_put_dataset(writer, "step", TP_S32, &scalar, &step), TPUCL_OK);
    cr_assert_eq(tp_hdf5_put_text(writer, "layers/dense", "name", "dense_7"), TPUCL_OK);
    cr_assert_eq(tp_hdf5_writer_finish(writer, out_bytes, &length), TPUCL_OK);
    tp_hdf5_writer_destroy(writer);
    cr_assert_eq(tp_hdf5_open_bytes(*out_bytes, length, "memory", &file), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    return file;
}

Test(hdf5, round_trip)
{
    char *bytes;
    float read[6];
    uint16_t read_halves[2];
    int32_t read_step;
    tp_hdf5 *file = write_and_open(&bytes);
    cr_assert_eq(tp_hdf5_dataset_count(file), 3);
    const tp_hdf5_dataset *kernel = tp_hdf5_find_dataset(file, "layers/dense/vars/0");
    cr_assert_not_null(kernel);
    cr_assert_eq(kernel->dtype, TP_F32);
    cr_assert_eq(kernel->shape.dims[1], 3);
    cr_assert_eq(tp_hdf5_read(file, kernel, read), TPUCL_OK);
    cr_assert_arr_eq(read, values, sizeof values);
    const tp_hdf5_dataset *half = tp_hdf5_find_dataset(file, "layers/dense/vars/1");
    cr_assert_eq(half->dtype, TP_BF16);
    cr_assert_eq(tp_hdf5_read(file, half, read_halves), TPUCL_OK);
    cr_assert_arr_eq(read_halves, halves, sizeof halves);
    cr_assert_eq(tp_hdf5_read(file, tp_hdf5_find_dataset(file, "step"), &read_step), TPUCL_OK);
    cr_assert_eq(read_step, 12);
    cr_assert(tp_hdf5_has_group(file, "layers/empty") && tp_hdf5_has_group(file, ""));
    cr_assert_not(tp_hdf5_has_group(file, "layers/dense/vars/0"));
    tp_hdf5_close(file);
    tp_free(bytes);
}

Test(hdf5, text_attributes)
{
    char *bytes;
    const char *text = NULL;
    tp_arena *arena;
    tp_hdf5 *file = write_and_open(&bytes);
    cr_assert_eq(tp_arena_create(0, &arena), TPUCL_OK);
    cr_assert_eq(tp_hdf5_attribute_text(file, "layers/dense", "name", arena, &text), TPUCL_OK);
    cr_assert_str_eq(text, "dense_7");
    cr_assert_eq(tp_hdf5_attribute_text(file, "layers", "name", arena, &text), TPUCL_OK);
    cr_assert_null(text);
    tp_arena_destroy(arena);
    tp_hdf5_close(file);
    tp_free(bytes);
}

/* ---- files with what models do not have ---- */

static hid_t create(void)
{
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(file, 0);
    return file;
}

static void expect_refused(const char *sentence)
{
    tp_hdf5 *file = NULL;
    cr_assert_eq(tp_hdf5_open(path, &file), TPUCL_CORRUPT_DATA, "%s", sentence);
    cr_assert_not_null(strstr(tpucl_last_error()->message, sentence), "'%s' in '%s'", sentence,
                       tpucl_last_error()->message);
}

Test(hdf5, links_are_refused)
{
    hid_t file = create();
    cr_assert_geq(H5Lcreate_soft("/elsewhere", file, "soft", H5P_DEFAULT, H5P_DEFAULT), 0);
    H5Fclose(file);
    expect_refused("is a link");
    file = create();
    cr_assert_geq(
        H5Lcreate_external("/etc/passwd", "/", file, "external", H5P_DEFAULT, H5P_DEFAULT), 0);
    H5Fclose(file);
    expect_refused("is a link");
}

Test(hdf5, circles_end)
{
    const hid_t file = create();
    const hid_t group = H5Gcreate2(file, "around", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(H5Lcreate_hard(file, "/", group, "again", H5P_DEFAULT, H5P_DEFAULT), 0);
    H5Gclose(group);
    H5Fclose(file);
    expect_refused("inside more than 32 others");
}

static void write_dataset(int rank, hsize_t each, hid_t creation, hid_t type)
{
    hsize_t dims[H5S_MAX_RANK], limits[H5S_MAX_RANK];
    const bool is_chunked = H5Pget_layout(creation) == H5D_CHUNKED;
    for (int i = 0; i < rank; i++) {
        dims[i] = each;
        limits[i] = H5S_UNLIMITED;
    }
    const hid_t file = create(), space = H5Screate_simple(rank, dims, is_chunked ? limits : NULL);
    const hid_t dataset = H5Dcreate2(file, "w", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    cr_assert_geq(dataset, 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(file);
}

Test(hdf5, sizes_are_checked_before_memory_is_asked_for)
{
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    write_dataset(9, 1, creation, H5T_IEEE_F32LE);
    expect_refused("more than 8 dimensions");
    write_dataset(1, (hsize_t)1 << 34, creation,
                  H5T_IEEE_F32LE); /* never written: 64 GiB of zeros */
    expect_refused("1000 times");
    const hsize_t chunk = 1 << 24;
    H5Pset_chunk(creation, 1, &chunk);
    write_dataset(1, 8, creation, H5T_IEEE_F32LE);
    expect_refused("chunks");
    H5Pclose(creation);
}

Test(hdf5, filters_and_other_files_are_refused)
{
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 8;
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_fletcher32(creation);
    write_dataset(1, 8, creation, H5T_IEEE_F32LE);
    expect_refused("filter other than");
    H5Pclose(creation);
    creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, "/etc/passwd", 0, 32);
    write_dataset(1, 8, creation, H5T_IEEE_F32LE);
    expect_refused("in other files");
    H5Pclose(creation);
}

Test(hdf5, other_number_types_are_converted)
{
    const double doubles[2] = {0.5, -3};
    const int64_t wide[2] = {7, 1LL << 40};
    const hsize_t two = 2;
    const hid_t file = create(), space = H5Screate_simple(1, &two, NULL);
    const hid_t a = H5Dcreate2(file, "a", H5T_IEEE_F64BE, space, H5P_DEFAULT, H5P_DEFAULT, 0);
    const hid_t b = H5Dcreate2(file, "b", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, 0);
    const hid_t c = H5Dcreate2(file, "c", H5T_STD_REF_OBJ, space, H5P_DEFAULT, H5P_DEFAULT, 0);
    H5Dwrite(a, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, doubles);
    H5Dwrite(b, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, wide);
    H5Dclose(a);
    H5Dclose(b);
    H5Dclose(c);
    H5Sclose(space);
    H5Fclose(file);
    tp_hdf5 *opened;
    float floats[2];
    int32_t narrow[2];
    cr_assert_eq(tp_hdf5_open(path, &opened), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_hdf5_read(opened, tp_hdf5_find_dataset(opened, "a"), floats), TPUCL_OK);
    cr_assert(floats[0] == 0.5f && floats[1] == -3.0f);
    cr_assert_eq(tp_hdf5_read(opened, tp_hdf5_find_dataset(opened, "b"), narrow),
                 TPUCL_CORRUPT_DATA);
    cr_assert_not_null(strstr(tpucl_last_error()->message, "1099511627776"));
    cr_assert_not(tp_hdf5_find_dataset(opened, "c")->is_readable);
    cr_assert_eq(tp_hdf5_read(opened, tp_hdf5_find_dataset(opened, "c"), narrow),
                 TPUCL_UNSUPPORTED);
    tp_hdf5_close(opened);
}

Test(hdf5, no_file_at_all)
{
    tp_hdf5 *file;
    cr_assert_eq(tp_hdf5_open_bytes("nothing of the kind", 19, "text", &file), TPUCL_CORRUPT_DATA);
    cr_assert_eq(tp_hdf5_open("/nowhere/at/all.h5", &file), TPUCL_NOT_FOUND);
}
