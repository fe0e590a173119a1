/* SPDX-License-Identifier: Apache-2.0
 * Options structs of other versions, dtypes, shapes. */
#include <criterion/criterion.h>
#include "api/handles.h"

Test(types, null_options_are_all_defaults)
{
    tpucl_runtime_options out;
    memset(&out, 0xab, sizeof out);
    cr_assert_eq(TP_API_OPTIONS(NULL, &out, tpucl_runtime_options), TPUCL_OK);
    cr_assert_eq(out.struct_size, sizeof out);
    cr_assert_null(out.topology);
    cr_assert_eq(out.synchronous, false);
}

Test(types, an_older_smaller_struct_is_filled_up)
{
    struct older {
        size_t struct_size;
        const char *topology;
    } older = {sizeof older, "k80"};
    tpucl_runtime_options out;
    memset(&out, 0xab, sizeof out);
    cr_assert_eq(TP_API_OPTIONS(&older, &out, tpucl_runtime_options), TPUCL_OK);
    cr_assert_str_eq(out.topology, "k80");
    cr_assert_null(out.device);
    cr_assert_eq(out.wave_cores, 0);
}

Test(types, a_newer_larger_struct_is_cut)
{
    struct newer {
        tpucl_runtime_options known;
        char unknown[100];
    } newer;
    memset(&newer, 0x55, sizeof newer);
    newer.known = tpucl_runtime_options_default();
    newer.known.struct_size = sizeof newer;
    newer.known.split = 3;
    struct {
        tpucl_runtime_options options;
        char guard[16];
    } out = {.guard = "untouched"};
    cr_assert_eq(TP_API_OPTIONS(&newer, &out.options, tpucl_runtime_options), TPUCL_OK);
    cr_assert_eq(out.options.split, 3);
    cr_assert_str_eq(out.guard, "untouched");
}

Test(types, an_unfilled_struct_is_refused)
{
    tpucl_runtime_options empty, out;
    memset(&empty, 0, sizeof empty);
    cr_assert_eq(TP_API_OPTIONS(&empty, &out, tpucl_runtime_options), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "tpucl_runtime_options_default()"));
    empty.struct_size = sizeof empty - 1; /* half a field would be taken over */
    cr_assert_eq(TP_API_OPTIONS(&empty, &out, tpucl_runtime_options), TPUCL_INVALID_ARGUMENT);
    empty.struct_size = (size_t)-1;
    cr_assert_eq(TP_API_OPTIONS(&empty, &out, tpucl_runtime_options), TPUCL_INVALID_ARGUMENT);
}

Test(types, dtypes_map_both_ways)
{
    static const struct {
        tpucl_dtype dtype;
        const char *name;
        size_t bytes;
    } rows[] = {{TPUCL_F32, "f32", 4}, {TPUCL_BF16, "bf16", 2}, {TPUCL_S32, "s32", 4},
                {TPUCL_U32, "u32", 4}, {TPUCL_U8, "u8", 1},     {TPUCL_PRED, "pred", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tp_dtype internal;
        cr_assert_eq(tp_api_dtype(rows[i].dtype, &internal), TPUCL_OK);
        cr_assert_eq(tp_api_dtype_public(internal), rows[i].dtype);
        cr_assert_str_eq(tpucl_dtype_name(rows[i].dtype), rows[i].name);
        cr_assert_eq(tpucl_dtype_bytes(rows[i].dtype), rows[i].bytes);
    }
    cr_assert_null(tpucl_dtype_name((tpucl_dtype)77));
    cr_assert_eq(tpucl_dtype_bytes((tpucl_dtype)0), 0);
}

Test(types, shapes_are_checked)
{
    tp_shape out;
    tpucl_shape shape = tpucl_shape3(2, 3, 4);
    cr_assert_eq(tp_api_shape(shape, &out), TPUCL_OK);
    cr_assert_eq(tp_shape_elems(&out), 24);
    shape.rank = TPUCL_MAX_RANK + 1;
    cr_assert_eq(tp_api_shape(shape, &out), TPUCL_INVALID_ARGUMENT);
    shape = tpucl_shape2(-1, 4);
    cr_assert_eq(tp_api_shape(shape, &out), TPUCL_INVALID_ARGUMENT);
    shape = tpucl_shape2(INT64_MAX, INT64_MAX);
    cr_assert_eq(tp_api_shape(shape, &out), TPUCL_INVALID_ARGUMENT);
}
