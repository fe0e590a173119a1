/* SPDX-License-Identifier: Apache-2.0
 * Reads the layout of one matrix unit out of its file in kernels/mxu, whose macros are plain C as well. No guard:
 * included once for each unit, with MATRIX_UNIT, LAYOUT_FILE and LAYOUT_READ (the function's name) defined.
 */
#define MATRIX_UNIT_IS_EMULATED 1
#define UNIT_A_IS_HALF 0
#include LAYOUT_FILE

static layout LAYOUT_READ(void)
{
    layout l = {.m = FRAGMENT_M,
                .n = FRAGMENT_N,
                .k = FRAGMENT_K,
                .lanes = LANES,
                .a_words = UNIT_A_WORDS,
                .b_words = UNIT_B_WORDS,
                .sums = UNIT_SUMS,
                .a_is_half = UNIT_A_IS_HALF};
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < UNIT_A_WORDS; i++)
            l.a[lane][i] = (place){UNIT_A_ROW(lane, i), UNIT_A_K(lane, i)};
        for (int i = 0; i < UNIT_B_WORDS; i++)
            l.b[lane][i] = (place){UNIT_B_COLUMN(lane, i), UNIT_B_K(lane, i)};
        for (int i = 0; i < UNIT_SUMS; i++)
            l.c[lane][i] = (place){UNIT_ROW(lane, i), UNIT_COLUMN(lane, i)};
    }
    return l;
}

#undef MATRIX_UNIT
#undef MATRIX_UNIT_IS_EMULATED
#undef LAYOUT_FILE
#undef LAYOUT_READ
#undef FRAGMENT_M
#undef FRAGMENT_N
#undef FRAGMENT_K
#undef LANES
#undef UNIT_A_WORDS
#undef UNIT_B_WORDS
#undef UNIT_SUMS
#undef UNIT_A_IS_HALF
#undef UNIT_A_ROW
#undef UNIT_A_K
#undef UNIT_B_COLUMN
#undef UNIT_B_K
#undef UNIT_ROW
#undef UNIT_COLUMN
