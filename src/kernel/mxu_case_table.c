/* SPDX-License-Identifier: Apache-2.0
 * The list of verification problems: see mxu_cases.h. Extents are one, primes, one less and one
 * more than tiles (8, 14, 16, 32, 64), chunks (128) and blocks (8192). Geometry and types are what
 * separate programs are built for, so shapes vary freely and those sparingly.
 */
#include "kernel/mxu_cases.h"

/* Types of A, B and C. */
#define TYPES_BBF .a_dtype = TP_BF16, .b_dtype = TP_BF16, .c_dtype = TP_F32
#define TYPES_BBB .a_dtype = TP_BF16, .b_dtype = TP_BF16, .c_dtype = TP_BF16
#define TYPES_FFF .a_dtype = TP_F32, .b_dtype = TP_F32, .c_dtype = TP_F32
#define TYPES_FFB .a_dtype = TP_F32, .b_dtype = TP_F32, .c_dtype = TP_BF16
#define TYPES_FBB .a_dtype = TP_F32, .b_dtype = TP_BF16, .c_dtype = TP_BF16
#define TYPES_BFF .a_dtype = TP_BF16, .b_dtype = TP_F32, .c_dtype = TP_F32

#define DOT(name_, types_, m_, n_, k_, ...)                                                        \
    {                                                                                              \
        .name = name_, .kind = TP_MXU_DOT, TYPES_##types_, .m = m_, .n = n_, .k = k_, __VA_ARGS__  \
    }

/* Three products of one geometry with the filter once per device as in training. */
#define CONV_ROW(name_, kind_, types_, geometry_, bottom_, right_, ...)                            \
    {                                                                                              \
        .name = name_, .kind = kind_, TYPES_##types_, .conv = GEOMETRY geometry_,                  \
        .pad_bottom = bottom_, .pad_right = right_,                                                \
        .b_is_replicated = (kind_) != TP_MXU_CONV_FILTER_GRAD, __VA_ARGS__                         \
    }
#define CONV(name_, types_, geometry_, bottom_, right_, ...)                                       \
    CONV_ROW(name_ " forward", TP_MXU_CONV, types_, geometry_, bottom_, right_, __VA_ARGS__),      \
        CONV_ROW(name_ " input gradient", TP_MXU_CONV_INPUT_GRAD, types_, geometry_, bottom_,      \
                 right_, __VA_ARGS__),                                                             \
        CONV_ROW(name_ " filter gradient", TP_MXU_CONV_FILTER_GRAD, types_, geometry_, bottom_,    \
                 right_, __VA_ARGS__)

/* images, height, width, channels in and out; kernel; stride; padding before; dilation */
#define GEOMETRY(images_, h_, w_, ci_, co_, kh_, kw_, sh_, sw_, pt_, pl_, dh_, dw_)                \
    {                                                                                              \
        .images = images_, .in_h = h_, .in_w = w_, .in_c = ci_, .out_c = co_, .kernel_h = kh_,     \
        .kernel_w = kw_, .stride_h = sh_, .stride_w = sw_, .pad_top = pt_, .pad_left = pl_,        \
        .dilation_h = dh_, .dilation_w = dw_                                                       \
    }
#define IN_GROUPS(groups_) .conv.groups = groups_

static const tp_mxu_case cases[] = {
    DOT("one", BBF, 1, 1, 1, .cores = 1),
    DOT("k of one", BBF, 9, 33, 1, .cores = 1),
    DOT("primes", BBF, 17, 19, 23, .cores = 3),
    DOT("a row", BBF, 1, 67, 129, .cores = 1),
    DOT("a column", BBF, 67, 1, 129, .cores = 3),
    DOT("tile less one", BBF, 7, 31, 127, .cores = 8),
    DOT("tile", BBF, 8, 32, 128, .cores = 3),
    DOT("tile and one", BBF, 9, 33, 129, .cores = 3),
    DOT("narrow tile", BBF, 14, 16, 255, .cores = 1),
    DOT("narrow tile and one", BBF, 15, 17, 257, .cores = 1),
    DOT("a few rows", BBF, 11, 64, 300, .cores = 3),
    DOT("a few rows, batch, f32 in, high", FFF, 5, 32, 141, .cores = 2, .batch = 3,
        .precision = TP_PRECISION_HIGH),
    DOT("a few rows, two blocks", BBF, 3, 64, 8300, .cores = 2, .b_is_replicated = true),
    DOT("several tiles", BBF, 65, 95, 384, .cores = 1),
    DOT("tile of 64 and one", BBF, 65, 65, 131, .cores = 1),
    DOT("block less one", BBF, 5, 17, 8191, .cores = 1),
    DOT("block", BBF, 9, 33, 8192, .cores = 2),
    DOT("block and one", BBF, 9, 17, 8193, .cores = 3),
    DOT("three blocks", BBF, 3, 33, 16385, .cores = 1),
    DOT("eight blocks", BBF, 2, 5, 57345, .cores = 1),
    DOT("weights once per device", BBF, 26, 40, 200, .cores = 8, .b_is_replicated = true),
    DOT("activations once per device", BBF, 26, 40, 200, .cores = 3, .a_is_replicated = true),
    DOT("all once per device", BBF, 26, 40, 200, .cores = 3, .a_is_replicated = true,
        .b_is_replicated = true, .c_is_replicated = true),
    DOT("batch", BBF, 11, 21, 140, .batch = 5, .cores = 2),
    DOT("batch, two blocks", BBF, 3, 18, 8200, .batch = 2, .cores = 2),
    DOT("B transposed", BBF, 23, 47, 150, .b_layout = TP_MXU_COLUMNS, .cores = 3),
    DOT("B transposed, once per device", BBF, 23, 64, 144, .b_layout = TP_MXU_COLUMNS, .cores = 2,
        .b_is_replicated = true, .batch = 2),
    DOT("A transposed", BBF, 47, 33, 130, .a_layout = TP_MXU_COLUMNS, .cores = 3),
    DOT("A transposed, 8 rows", BBF, 64, 33, 8195, .a_layout = TP_MXU_COLUMNS),
    DOT("A transposed, several groups", BBF, 149, 289, 333, .a_layout = TP_MXU_COLUMNS, .cores = 2),
    DOT("A transposed, batch, bf16 out", BBB, 31, 40, 129, .a_layout = TP_MXU_COLUMNS, .batch = 3,
        .cores = 2),
    DOT("A transposed, f32 in, high", FFF, 33, 47, 261, .a_layout = TP_MXU_COLUMNS,
        .precision = TP_PRECISION_HIGH),
    DOT("A transposed, NaN and infinity", BBF, 33, 35, 40, .a_layout = TP_MXU_COLUMNS,
        .fill = TP_MXU_FILL_NONFINITE),
    DOT("A transposed, tiny, border", BBF, 33, 70, 261, .a_layout = TP_MXU_COLUMNS,
        .fill = TP_MXU_FILL_BORDER),
    DOT("A transposed, tiny, beyond the border", BBF, 33, 70, 261, .a_layout = TP_MXU_COLUMNS,
        .fill = TP_MXU_FILL_BEYOND),
    DOT("both transposed", BBF, 29, 31, 261, .a_layout = TP_MXU_COLUMNS,
        .b_layout = TP_MXU_COLUMNS),
    DOT("gaps", BBF, 13, 37, 131, .a_layout = TP_MXU_GAPS, .b_layout = TP_MXU_GAPS, .batch = 2),
    DOT("bf16 out", BBB, 19, 45, 133, .cores = 3),
    DOT("f32 in", FFF, 19, 45, 133, .cores = 3),
    DOT("f32 and bf16 in", FBB, 19, 45, 133, .cores = 1),
    DOT("bf16 and f32 in, transposed", BFF, 19, 45, 133, .a_layout = TP_MXU_COLUMNS,
        .b_layout = TP_MXU_COLUMNS),
    DOT("float32 policy", FFF, 19, 45, 389, .precision = TP_PRECISION_F32, .cores = 3),
    DOT("float32 policy, two blocks", FFF, 5, 35, 8321, .precision = TP_PRECISION_F32,
        .a_layout = TP_MXU_COLUMNS),
    DOT("high", FFF, 19, 45, 389, .precision = TP_PRECISION_HIGH, .cores = 2, .batch = 2),
    DOT("highest", FFF, 19, 45, 389, .precision = TP_PRECISION_HIGHEST, .cores = 2,
        .b_is_replicated = true),
    DOT("highest, two blocks", FFF, 3, 18, 8321, .precision = TP_PRECISION_HIGHEST,
        .b_layout = TP_MXU_COLUMNS),
    DOT("high, bf16 in", BBB, 10, 20, 130, .precision = TP_PRECISION_HIGH, .cores = 1),
    DOT("NaN and infinity", BBB, 21, 35, 40, .fill = TP_MXU_FILL_NONFINITE, .cores = 1),
    DOT("NaN and infinity, f32", FFF, 21, 35, 40, .fill = TP_MXU_FILL_NONFINITE, .cores = 1),
    DOT("NaN and infinity, high", FFF, 21, 35, 40, .fill = TP_MXU_FILL_NONFINITE,
        .precision = TP_PRECISION_HIGH),
    DOT("huge", FFF, 21, 35, 140, .fill = TP_MXU_FILL_HUGE, .cores = 1),
    DOT("huge, float32 policy", FFF, 21, 35, 140, .fill = TP_MXU_FILL_HUGE,
        .precision = TP_PRECISION_F32),
    DOT("tiny", FFF, 21, 35, 140, .fill = TP_MXU_FILL_TINY, .cores = 1),
    DOT("tiny, float32 policy", FFF, 21, 35, 140, .fill = TP_MXU_FILL_TINY,
        .precision = TP_PRECISION_F32),
    DOT("vanishing", BBF, 21, 35, 140, .fill = TP_MXU_FILL_VANISHING, .cores = 1),
    DOT("vanishing, two blocks", BBF, 5, 17, 8500, .fill = TP_MXU_FILL_VANISHING, .cores = 1),
    DOT("tiny, border", BBF, 64, 96, 261, .fill = TP_MXU_FILL_BORDER, .cores = 1),
    DOT("tiny, beyond the border", BBF, 64, 96, 261, .fill = TP_MXU_FILL_BEYOND, .cores = 1),
    DOT("tiny, beyond the border, A transposed", BBF, 64, 96, 261, .fill = TP_MXU_FILL_BEYOND,
        .a_layout = TP_MXU_COLUMNS, .b_layout = TP_MXU_COLUMNS, .cores = 1),
    DOT("tiny, bf16 out", BBB, 21, 35, 140, .fill = TP_MXU_FILL_TINY, .cores = 1),
    DOT("summed over 8 cores", BBF, 41, 1030, 200, .a_layout = TP_MXU_COLUMNS, .cores = 8,
        .sums_cores = true),
    DOT("summed over 7 cores, batch", FFF, 13, 45, 133, .batch = 2, .cores = 7, .sums_cores = true),
    DOT("summed over 1 core", BBF, 17, 33, 129, .a_layout = TP_MXU_COLUMNS, .cores = 1,
        .sums_cores = true),
    DOT("tiny, summed over 6 cores", FFF, 21, 35, 140, .fill = TP_MXU_FILL_TINY, .cores = 6,
        .sums_cores = true),
    DOT("NaN and infinity, summed over 3 cores", FFF, 21, 35, 40, .fill = TP_MXU_FILL_NONFINITE,
        .cores = 3, .sums_cores = true),

    CONV("conv 3x3, one channel", BBF, (3, 7, 9, 1, 5, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1, .cores = 2),
    CONV("conv 3x3, one channel, whole lines", BBF, (2, 9, 14, 1, 32, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1,
         .cores = 2),
    CONV("conv 5x3, one channel, f32, pieces of lines", FFB,
         (3, 6, 26, 1, 9, 5, 3, 2, 1, 3, 4, 1, 2), 2, 2, .cores = 2),
    CONV("conv 3x3, 16 to 32", BBF, (2, 6, 5, 16, 32, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1, .cores = 2),
    CONV("conv 3x3, 24 to 17, stride 2", BBF, (2, 9, 8, 24, 17, 3, 3, 2, 2, 0, 1, 1, 1), 1, 0,
         .cores = 2),
    CONV("conv 3x3, 32 to 96, stride 2x1", BBF, (3, 9, 13, 32, 96, 3, 3, 2, 1, 1, 1, 1, 1), 1, 1,
         .cores = 2),
    CONV("conv 3x2, dilated, 48 to 33, stride 1x2", FBB, (2, 11, 9, 48, 33, 3, 2, 1, 2, 2, 1, 2, 3),
         2, 3, .cores = 2),
    CONV("conv 3x3, 24 to 16, stride 2", BBF, (2, 9, 8, 24, 16, 3, 3, 2, 2, 1, 1, 1, 1), 1, 1,
         .cores = 2),
    CONV("conv 3x3, 17 to 48, stride 3x2, bf16 out", BBB,
         (2, 11, 7, 17, 48, 3, 3, 3, 2, 0, 1, 1, 1), 1, 1, .cores = 2),
    CONV("conv 1x1, 20 to 160, stride 2", BBF, (3, 7, 5, 20, 160, 1, 1, 2, 2, 0, 0, 1, 1), 0, 0,
         .cores = 2),
    CONV("conv 4x3, dilated, stride 2x3", FBB, (1, 12, 16, 9, 80, 4, 3, 2, 3, 3, 2, 1, 2), 2, 1,
         .cores = 2),
    CONV("conv 1x1, stride 4 in a narrow image", BBF, (3, 9, 2, 33, 16, 1, 1, 4, 4, 0, 0, 1, 1), 0,
         0, .cores = 2),
    CONV("conv 1x1, stride 2, NaN and infinity", BBF, (2, 6, 5, 20, 16, 1, 1, 2, 2, 0, 0, 1, 1), 0,
         0, .fill = TP_MXU_FILL_NONFINITE),
    CONV("conv 2x2, stride 2, NaN and infinity", BBF, (2, 6, 5, 20, 16, 2, 2, 2, 2, 0, 0, 1, 1), 0,
         1, .fill = TP_MXU_FILL_NONFINITE),
    CONV("conv 3x3, stride 2, tiny, beyond the border", BBF,
         (2, 7, 6, 17, 48, 3, 3, 2, 2, 1, 1, 1, 1), 1, 1, .fill = TP_MXU_FILL_BEYOND),
    CONV("conv 3x3, stride 2, tiny, border", BBF, (2, 7, 6, 17, 48, 3, 3, 2, 2, 1, 1, 1, 1), 1, 1,
         .fill = TP_MXU_FILL_BORDER),
    CONV("conv 2x2, stride 2, highest", FFF, (1, 5, 6, 8, 32, 2, 2, 2, 2, 0, 0, 1, 1), 1, 0,
         .cores = 2, .precision = TP_PRECISION_HIGHEST),
    CONV("conv 5x3, dilated, stride 3x1", BBF, (1, 17, 9, 3, 7, 5, 3, 3, 1, 4, 2, 2, 2), 3, 1,
         .cores = 2),
    CONV("conv 2x2, stride 2, f32 in, bf16 out", FFB, (3, 6, 8, 8, 40, 2, 2, 2, 2, 0, 0, 1, 1), 0,
         0, .cores = 2),
    CONV("conv 1x1", BBF, (2, 5, 7, 20, 33, 1, 1, 1, 1, 0, 0, 1, 1), 0, 0, .cores = 2),
    CONV("conv 1x1, padded", BBF, (1, 3, 4, 5, 6, 1, 1, 1, 2, 2, 1, 1, 1), 1, 3, .cores = 2),
    CONV("conv with long k", BBF, (2, 3, 2, 960, 912, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1, .cores = 2,
         .is_long = true),
    CONV("conv of big images", BBF, (3, 58, 52, 8, 5, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1, .cores = 2),
    CONV("conv of big images, three channels", BBF, (3, 58, 52, 3, 4, 3, 2, 1, 1, 1, 0, 1, 1), 1, 1,
         .cores = 2),
    CONV("conv, float32 policy", FFF, (2, 7, 6, 6, 11, 3, 3, 1, 2, 1, 1, 1, 1), 1, 1, .cores = 2,
         .precision = TP_PRECISION_F32),
    CONV("conv, highest", FFF, (1, 5, 6, 8, 9, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1, .cores = 2,
         .precision = TP_PRECISION_HIGHEST),
    CONV_ROW("conv 3x3, filter gradient summed over 8 cores", TP_MXU_CONV_FILTER_GRAD, BBF,
             (2, 9, 8, 32, 48, 3, 3, 2, 2, 0, 1, 1, 1), 1, 0, .cores = 8, .sums_cores = true),
    CONV_ROW("conv 3x3, filter gradient of several chunks summed over 7 cores",
             TP_MXU_CONV_FILTER_GRAD, BBF, (3, 9, 8, 16, 70, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1,
             .cores = 7, .sums_cores = true),
    CONV_ROW("conv 3x3 of one channel, filter gradient summed over 5 cores",
             TP_MXU_CONV_FILTER_GRAD, BFF, (2, 7, 9, 1, 17, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1,
             .cores = 5, .sums_cores = true),
    CONV("depthwise", BBF, (2, 7, 9, 16, 16, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1, .cores = 2,
         IN_GROUPS(16)),
    CONV("depthwise, ragged, stride", FBB, (3, 9, 8, 19, 19, 3, 2, 2, 3, 1, 0, 1, 1), 0, 1,
         .cores = 2, IN_GROUPS(19)),
    CONV("depthwise, large and dilated", BBF, (1, 13, 14, 17, 17, 12, 11, 1, 1, 6, 11, 1, 2), 5, 11,
         .cores = 2, IN_GROUPS(17)),
    CONV("depthwise of big images", BBF, (1, 96, 88, 18, 18, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1,
         .cores = 2, IN_GROUPS(18)),
    CONV("depthwise, NaN and infinity", BBF, (2, 6, 5, 16, 16, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1,
         .fill = TP_MXU_FILL_NONFINITE, IN_GROUPS(16)),
    CONV("depthwise, tiny", FFF, (1, 6, 5, 18, 18, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1,
         .precision = TP_PRECISION_F32, .fill = TP_MXU_FILL_TINY, IN_GROUPS(18)),
    CONV("three filters a channel, high", FFF, (1, 6, 7, 7, 21, 2, 3, 1, 2, 0, 1, 1, 1), 1, 1,
         .cores = 2, .precision = TP_PRECISION_HIGH, IN_GROUPS(7)),
    CONV("groups of channels", BBF, (2, 5, 6, 12, 8, 3, 3, 1, 1, 1, 1, 1, 1), 1, 1, .cores = 2,
         IN_GROUPS(4)),
    CONV("groups of many filters, float32 policy", FFF, (1, 6, 5, 64, 32, 3, 2, 2, 1, 1, 1, 1, 1),
         1, 0, .cores = 2, .precision = TP_PRECISION_F32, IN_GROUPS(2)),
};

const tp_mxu_case *tp_mxu_cases(size_t *out_count)
{
    *out_count = sizeof cases / sizeof cases[0];
    return cases;
}
