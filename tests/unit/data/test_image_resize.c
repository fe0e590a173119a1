/* SPDX-License-Identifier: Apache-2.0
 * Resizing: tf.image.resize's numbers, what stays the same, and where windows and borders lie. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "data/image_resize.h"

typedef struct resize_case {
    int32_t height, width, channels, to_height, to_width;
    bool antialias;
    int32_t wanted[80]; /* hundredths */
} resize_case;

/* TensorFlow 2.18: tf.image.resize(image, size, "bilinear", antialias=...), float32. */
static const resize_case cases[] = {
    {3, 4, 1, 7, 9, false, {0,    1517, 5561,  9606,  13650, 17694, 11783, 4450,  1700,
                            529,  2114, 6343,  10368, 12971, 15575, 10672, 4698,  2457,
                            2114, 3907, 8688,  12656, 10936, 9215,  7339,  5440,  4729,
                            3700, 5700, 11033, 14944, 8900,  2856,  4006,  6183,  7000,
                            5286, 7493, 13379, 17673, 10829, 3984,  5517,  8248,  9271,
                            6871, 9286, 15724, 20402, 12757, 5113,  7029,  10312, 11543,
                            7400, 9883, 16506, 21311, 13400, 5489,  7533,  11000, 12300}},
    {9, 8, 3, 4, 5, false, {5586,  10886, 11386, 8646,  13946, 9006,  10469, 15769, 13069, 20931,
                            11831, 8491,  15351, 9451,  14751, 14005, 11625, 16925, 8126,  10866,
                            16166, 10906, 16206, 8706,  6922,  12222, 14962, 8581,  11641, 9261,
                            14211, 17271, 6891,  11911, 14331, 19631, 12244, 6344,  11644, 15456,
                            18516, 20936, 11895, 10475, 15775, 5775,  11075, 8695,  14941, 5841,
                            8581,  11350, 16650, 17150, 13519, 4419,  9719,  13819, 12399, 17699}},
    {12, 10, 1, 5, 4, true, {9394,  11216, 14501, 12346, 12257, 11500, 12333, 12806, 12212, 12388,
                             13203, 11157, 10956, 11507, 11992, 10438, 12183, 13908, 13868, 14517}},
    {5, 11, 3, 3, 4, true, {8167,  13467, 10979, 11832, 15121, 11888, 13523, 11509, 13578,
                            12539, 13302, 15554, 12336, 9893,  12454, 11814, 15739, 12032,
                            14013, 12628, 10296, 14108, 13614, 9590,  11828, 11506, 15790,
                            10943, 11184, 12827, 11550, 11974, 13617, 12578, 12189, 13223}},
    {4,
     4,
     1,
     2,
     9,
     true,
     {2643, 4505, 9470, 13566, 11579, 9591, 7843, 6129, 5486, 8457, 10571, 16210, 20256, 13164,
      6072, 8541, 12376, 13814}},
};
enum { CASES = sizeof cases / sizeof *cases, MAX_BYTES = 4096 };

static uint8_t pixels[MAX_BYTES], out[MAX_BYTES];
static tp_resize_buffer buffer;

static void resize(int32_t height, int32_t width, int32_t channels, tp_resize_mode mode,
                   bool antialias, int32_t to_height, int32_t to_width)
{
    const tp_image image = {width, height, channels, pixels};
    cr_assert(tp_image_resize_bytes(&image, mode, antialias, to_height, to_width, "x", &buffer,
                                    out) == TPUCL_OK);
}

static void fini(void)
{
    tp_resize_buffer_deinit(&buffer);
}

TestSuite(image_resize, .fini = fini);

Test(image_resize, numbers_are_tensorflows)
{
    for (size_t i = 0; i < CASES; i++) {
        const resize_case *c = &cases[i];
        for (int y = 0; y < c->height; y++)
            for (int x = 0; x < c->width; x++)
                for (int k = 0; k < c->channels; k++)
                    pixels[(y * c->width + x) * c->channels + k] =
                        (uint8_t)(y * 37 + x * 91 + k * 53 + x * y * 29 % 71);
        resize(c->height, c->width, c->channels, TP_RESIZE_STRETCH, c->antialias, c->to_height,
               c->to_width);
        for (int j = 0; j < c->to_height * c->to_width * c->channels; j++) /* rounded to a byte */
            cr_assert_leq(abs(100 * out[j] - c->wanted[j]), 51, "case %zu, value %d: %d, not %d", i,
                          j, out[j], c->wanted[j]);
    }
}

Test(image_resize, a_plain_image_stays_plain_and_one_of_the_size_the_same)
{
    memset(pixels, 93, sizeof pixels);
    for (int32_t size = 1; size < 30; size++)
        for (int antialias = 0; antialias < 2; antialias++) {
            memset(out, 0, sizeof out);
            resize(11, 7, 3, TP_RESIZE_STRETCH, antialias, size, 31 - size);
            for (int32_t i = 0; i < size * (31 - size) * 3; i++)
                cr_assert_eq(out[i], 93, "%d x %d", size, 31 - size);
        }
    for (int i = 0; i < 60; i++)
        pixels[i] = (uint8_t)(i * 83);
    resize(5, 4, 3, TP_RESIZE_NONE, true, 5, 4);
    cr_assert_arr_eq(out, pixels, 60);
}

/* Columns 0 to 7 are 0, 10, ..., 70: the middle four of them, or all of them between black rows. */
Test(image_resize, the_middle_and_the_border)
{
    static const uint8_t middle[] = {20, 30, 40, 50};
    for (int i = 0; i < 4 * 8; i++)
        pixels[i] = (uint8_t)(10 * (i % 8));
    resize(4, 8, 1, TP_RESIZE_CROP, true, 4, 4);
    for (int y = 0; y < 4; y++)
        cr_assert_arr_eq(out + 4 * y, middle, 4);
    resize(4, 8, 1, TP_RESIZE_PAD, false, 8, 8);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            cr_assert_eq(out[8 * y + x], y < 2 || y >= 6 ? 0 : 10 * x);
}

Test(image_resize, another_size_can_be_a_mistake)
{
    const tp_image image = {8, 4, 1, pixels};
    cr_assert_eq(
        tp_image_resize_bytes(&image, TP_RESIZE_NONE, false, 4, 4, "the image", &buffer, out),
        TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "'the image' has 8 x 4"), "%s",
              tpucl_last_error()->message);
}

/* Sizes, ratios and places of what is drawn of an image of 400 x 300; then one that is too long for any. */
Test(image_resize, areas_by_chance)
{
    double least = 1, most = 0, narrow = 10, wide = 0;
    int thirds[3] = {0}, areas[4] = {0};
    for (uint32_t step = 0; step < 4000; step++) {
        const tp_augment_place place = {5, step, step % 3, step % 7};
        const tp_image_area a = tp_image_draw_area(&place, 0.2, 300, 400);
        const double share = (double)a.height * a.width / (300 * 400);
        const double ratio = (double)a.width / a.height;
        cr_assert(a.top >= 0 && a.left >= 0 && a.top + a.height <= 300 && a.left + a.width <= 400);
        least = fmin(least, share), most = fmax(most, share);
        narrow = fmin(narrow, ratio), wide = fmax(wide, ratio);
        const double room = 400 - a.width;
        if (room >= 30) thirds[a.left == (int)room ? 2 : (int)(3 * a.left / room)]++;
        if (share < 0.6) areas[(int)((share - 0.199) / 0.1003)]++;
    }
    cr_assert(least > 0.19 && least < 0.21 && most > 0.95, "%g %g", least, most);
    cr_assert(narrow > 0.74 && narrow < 0.77 && wide > 1.3 && wide < 1.35, "%g %g", narrow, wide);
    for (int i = 0; i < 3; i++) /* five deviations of an even share */
        cr_assert(abs(3 * thirds[i] - thirds[0] - thirds[1] - thirds[2]) < 500, "%d", thirds[i]);
    for (int i = 1; i < 4; i++) /* small ones nearly always fit, so they are evenly many */
        cr_assert(abs(areas[i] - areas[0]) < 170, "%d %d", areas[i], areas[0]);
    const tp_augment_place place = {5, 0, 0, 0};
    const tp_image_area band = tp_image_draw_area(&place, 0.9, 10, 1000);
    cr_assert(band.top == 0 && band.height == 10 && band.width == 13 && band.left == 493);
}

/* What lies around an area takes no part in it. */
Test(image_resize, an_area_is_cut_before_it_is_resized)
{
    const tp_image_area area = {.top = 2, .left = 3, .height = 4, .width = 2};
    const tp_image image = {8, 8, 1, pixels};
    memset(pixels, 255, 64);
    for (int y = 2; y < 6; y++)
        memset(pixels + 8 * y + 3, 7, 2);
    cr_assert(tp_image_resize_area(&image, &area, true, 11, 3, &buffer, out) == TPUCL_OK);
    for (int i = 0; i < 33; i++)
        cr_assert_eq(out[i], 7);
}
