/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "num/dtype.h"
#include "num/shape.h"

static tp_shape make(int rank, const int64_t *dims)
{
    tp_shape shape;
    cr_assert_eq(tp_shape_init(&shape, rank, dims), TPUCL_OK);
    return shape;
}
#define SHAPE(...)                                                                                 \
    make((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

Test(dtype, names_and_sizes_go_round)
{
    static const size_t sizes[TP_DTYPE_COUNT] = {4, 2, 4, 4, 1, 1};
    for (int i = 0; i < TP_DTYPE_COUNT; i++) {
        tp_dtype parsed = TP_DTYPE_COUNT;
        cr_assert_eq(tp_dtype_parse(tp_dtype_name((tp_dtype)i), &parsed), TPUCL_OK);
        cr_assert_eq(parsed, (tp_dtype)i);
        cr_assert_eq(tp_dtype_size((tp_dtype)i), sizes[i]);
    }
    tp_dtype untouched = TP_U8;
    cr_assert_eq(tp_dtype_parse("float32", &untouched), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "'float32'") != NULL);
    cr_assert_eq(untouched, TP_U8);
    cr_assert_eq(tp_dtype_size((tp_dtype)99), 0);
    cr_assert_str_eq(tp_dtype_name((tp_dtype)-1), "invalid");
    cr_assert(tp_dtype_is_float(TP_BF16) && !tp_dtype_is_float(TP_S32));
    cr_assert(tp_dtype_is_integer(TP_U8) && !tp_dtype_is_integer(TP_PRED));
}

Test(shape, counts_and_strides)
{
    const tp_shape shape = SHAPE(2, 3, 4);
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(&shape, strides);
    cr_assert(strides[0] == 12 && strides[1] == 4 && strides[2] == 1 && strides[3] == 0);
    cr_assert_eq(tp_shape_elems(&shape), 24);
    cr_assert_eq(tp_shape_bytes(&shape, TP_BF16), 48);
    const tp_shape scalar = make(0, NULL);
    cr_assert_eq(tp_shape_elems(&scalar), 1);
    const tp_shape empty = SHAPE(5, 0, 7);
    cr_assert_eq(tp_shape_elems(&empty), 0);
}

Test(shape, refuses_what_overflows)
{
    tp_shape shape;
    const int64_t large[] = {(int64_t)1 << 32, (int64_t)1 << 32};
    cr_assert_eq(tp_shape_init(&shape, 2, large), TPUCL_INVALID_ARGUMENT);
    const int64_t hidden[] = {(int64_t)1 << 39, 0, 4}; /* no elements, but strides would overflow */
    cr_assert_eq(tp_shape_init(&shape, 3, hidden), TPUCL_INVALID_ARGUMENT);
    const int64_t negative[] = {2, -1};
    cr_assert_eq(tp_shape_init(&shape, 2, negative), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "-1") != NULL);
    const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    cr_assert_eq(tp_shape_init(&shape, 9, nine), TPUCL_INVALID_ARGUMENT);
    cr_assert_eq(tp_shape_init(&shape, -1, nine), TPUCL_INVALID_ARGUMENT);
    int64_t product = 7;
    cr_assert(tp_size_multiply(3, 5, &product) && product == 15);
    cr_assert(!tp_size_multiply(INT64_MAX / 2, 3, &product) && product == 15);
    cr_assert(!tp_size_multiply(-1, 3, &product));
}

Test(shape, broadcasts_like_numpy)
{
    tp_shape out;
    const tp_shape a = SHAPE(8, 1, 6, 1), b = SHAPE(7, 1, 5), expected = SHAPE(8, 7, 6, 5);
    cr_assert_eq(tp_shape_broadcast(&a, &b, &out), TPUCL_OK);
    cr_assert(tp_shape_equal(&out, &expected));
    const tp_shape scalar = make(0, NULL);
    cr_assert_eq(tp_shape_broadcast(&scalar, &a, &out), TPUCL_OK);
    cr_assert(tp_shape_equal(&out, &a));
    const tp_shape empty = SHAPE(0, 5), one = SHAPE(1, 5);
    cr_assert_eq(tp_shape_broadcast(&empty, &one, &out), TPUCL_OK);
    cr_assert(tp_shape_equal(&out, &empty));
    const tp_shape c = SHAPE(2, 3), d = SHAPE(4, 3);
    cr_assert_eq(tp_shape_broadcast(&c, &d, &out), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "[2,3] and [4,3]") != NULL);
}

Test(shape, text_goes_round)
{
    char text[TP_SHAPE_TEXT_MAX];
    const tp_shape shape = SHAPE(128, 784);
    cr_assert_eq(tp_shape_format(&shape, text, sizeof text), 9);
    cr_assert_str_eq(text, "[128,784]");
    tp_shape parsed;
    cr_assert_eq(tp_shape_parse("[128, 784]", &parsed), TPUCL_OK);
    cr_assert(tp_shape_equal(&parsed, &shape));
    cr_assert_eq(tp_shape_parse("[]", &parsed), TPUCL_OK);
    cr_assert_eq(parsed.rank, 0);
    cr_assert_eq(tp_shape_format(&shape, text, 5), 9);
    cr_assert_str_eq(text, "[128");
    cr_assert_eq(tp_shape_format(&shape, NULL, 0), 9);
    static const char *const bad[] = {"",
                                      "128",
                                      "[1",
                                      "[1,]",
                                      "[,1]",
                                      "[1]x",
                                      "[-1]",
                                      "[1 ,2]",
                                      "[a]",
                                      "[99999999999999]",
                                      "[1,1,1,1,1,1,1,1,1]",
                                      "[1099511627777]"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_eq(tp_shape_parse(bad[i], &parsed), TPUCL_INVALID_ARGUMENT, "'%s'", bad[i]);
    const int64_t widest[8] = {1099511627776, 1, 1, 1, 1, 1, 1, 1};
    const tp_shape wide = make(8, widest);
    cr_assert_lt(tp_shape_format(&wide, text, sizeof text), sizeof text);
    cr_assert_eq(tp_shape_parse(text, &parsed), TPUCL_OK);
}
