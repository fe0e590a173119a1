/* SPDX-License-Identifier: Apache-2.0
 * Padding against sizes that were published, and by hand.
 */
#include <criterion/criterion.h>
#include "check/padding.h"

static tp_shape shape_of(int rank, const int64_t *dims)
{
    tp_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    return shape;
}
#define SHAPE(...)                                                                                 \
    shape_of(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static double row_major(tp_shape shape, tp_dtype dtype)
{
    return tp_padded_bytes(&shape, dtype, shape.rank - 2, shape.rank - 1);
}

/* tensorflow/tensorflow issue 30803: 128 MiB become 8 GiB. */
Test(padding, two_channels_fill_128)
{
    cr_expect_eq(row_major(SHAPE(256, 512, 128, 2), TP_F32), 8.0 * (1 << 30));
    const tp_shape shape = SHAPE(256, 512, 128, 2);
    cr_expect_eq(tp_unpadded_bytes(&shape, TP_F32), 128.0 * (1 << 20));
}

/* DifferentiableUniverseInitiative/flowpm issue 27: 1 GiB of indices become 32 GiB. */
Test(padding, small_indices_fill_128)
{
    cr_expect_eq(row_major(SHAPE(8388608, 8, 4), TP_S32), 32.0 * (1 << 30));
}

/* openxla/xla, docs/tiled_layout.md: small second-minor dimensions have tiles of 2 and 4 rows. */
Test(padding, small_tiles)
{
    cr_expect_eq(row_major(SHAPE(2, 128), TP_F32), 2 * 128 * 4);
    cr_expect_eq(row_major(SHAPE(3, 100), TP_F32), 4 * 128 * 4);
    cr_expect_eq(row_major(SHAPE(5, 100), TP_F32), 8 * 128 * 4);
    cr_expect_eq(row_major(SHAPE(2, 100), TP_BF16), 8 * 128 * 2);
    cr_expect_eq(row_major(SHAPE(9, 129), TP_U8), 32 * 256);
    cr_expect_eq(row_major(SHAPE(8, 128), TP_PRED), 8 * 128 * 4);
    cr_expect_eq(row_major(SHAPE(129, 1024), TP_F32), 136 * 1024 * 4);
}

Test(padding, vectors_and_scalars_are_linear)
{
    cr_expect_eq(row_major(SHAPE(5), TP_F32), 20);
    const tp_shape scalar = {.rank = 0};
    cr_expect_eq(tp_padded_bytes(&scalar, TP_BF16, -2, -1), 2);
    cr_expect_eq(tp_find_best_layout(&scalar, TP_BF16).bytes, 2);
}

/* Images: the batch is the dimension that fills tiles. */
Test(padding, the_best_layout_is_found)
{
    const tp_shape shape = SHAPE(128, 32, 32, 3);
    const tp_best_layout best = tp_find_best_layout(&shape, TP_BF16);
    cr_expect_eq(best.minor, 0);
    cr_expect_eq(best.bytes, tp_unpadded_bytes(&shape, TP_BF16));
    cr_expect_gt(row_major(shape, TP_BF16), 40 * best.bytes);
    /* nothing to gain: row-major stays */
    const tp_shape square = SHAPE(4, 128, 128);
    const tp_best_layout same = tp_find_best_layout(&square, TP_F32);
    cr_expect(same.second == 1 && same.minor == 2);
}

Test(padding, products_fill_the_array)
{
    cr_expect_eq(tp_mxu_work(128, 128, 128, 128, 128), 128.0 * 128 * 128);
    /* a batch of 8 streams against full weights */
    cr_expect_eq(tp_mxu_work(8, 256, 384, 128, 128), 8.0 * 256 * 384);
    /* few outputs: they stream, the activations stay */
    cr_expect_eq(tp_mxu_work(1024, 10, 256, 128, 128), 1024.0 * 16 * 256);
    /* k of 9 fills 128 whichever stays */
    cr_expect_eq(tp_mxu_work(1024, 128, 9, 128, 128), 1024.0 * 128 * 128);
}
