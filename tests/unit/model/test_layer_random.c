/* SPDX-License-Identifier: Apache-2.0
 * Layers that are random in training, for which Keras gives no numbers: what is drawn for whom, and that the
 * mean (for AlphaDropout also the variance) is kept. Bounds are five standard deviations of the estimate.
 */
#include "layer_call.h"

enum { BATCH = 4, STEPS = 50, CHANNELS = 40, CELLS = STEPS * CHANNELS, ELEMS = BATCH * CELLS };

static float image[ELEMS], result[ELEMS], second[ELEMS];

/* Ones, or values of mean 0 and variance 1 (the two of equal probability: -1, 1). */
static layer_call make_call(int rank, bool are_ones)
{
    layer_call call = {.is_training = true, .batch = BATCH, .rank = rank, .image = image};
    const int64_t dims[3][4] = {{STEPS, CHANNELS}, {5, 10, CHANNELS}, {5, 5, 2, CHANNELS}};
    memcpy(call.dims, dims[rank - 2], sizeof call.dims);
    for (int i = 0; i < ELEMS; i++)
        image[i] = are_ones || i % 2 ? 1.0f : -1.0f;
    return call;
}

static double mean_of(const float *values, double minus, int power)
{
    double sum = 0;
    for (int i = 0; i < ELEMS; i++)
        sum += pow((double)values[i] - minus, power);
    return sum / ELEMS;
}

static void expect_steps_differ(const char *text, layer_call call)
{
    cr_assert(layer_call_run(text, &call, second) == ELEMS);
    cr_assert(memcmp(result, second, sizeof result) == 0, "a step can be repeated");
    call.step = 1;
    layer_call_run(text, &call, second);
    cr_assert(memcmp(result, second, sizeof result) != 0, "every step draws anew");
    call.is_training = false;
    layer_call_run(text, &call, second);
    cr_assert(memcmp(image, second, sizeof image) == 0, "only in training");
}

/* Whole channels of an example: of 160 with probability 1/4 each; deviation sqrt(160 * 3/16) = 5.5. */
static void expect_whole_channels(const char *text, int rank)
{
    const layer_call call = make_call(rank, true);
    cr_assert(layer_call_run(text, &call, result) == ELEMS);
    int dropped = 0;
    for (int example = 0; example < BATCH; example++)
        for (int channel = 0; channel < CHANNELS; channel++) {
            const float *at = result + example * CELLS + channel;
            dropped += at[0] == 0;
            cr_assert(at[0] == 0 || at[0] == 4.0f / 3, "%g", (double)at[0]);
            for (int step = 1; step < STEPS; step++)
                cr_assert(at[step * CHANNELS] == at[0]);
        }
    cr_assert(abs(dropped - 40) < 28, "%d", dropped);
    expect_steps_differ(text, call);
}

Test(layer_random, spatial_dropout)
{
    expect_whole_channels("{\"type\": \"SpatialDropout1D\", \"rate\": 0.25}", 2);
    expect_whole_channels("{\"type\": \"SpatialDropout2D\", \"rate\": 0.25}", 3);
    expect_whole_channels("{\"type\": \"SpatialDropout3D\", \"rate\": 0.25}", 4);
}

Test(layer_random, dropout_noise_shape)
{
    expect_whole_channels("{\"type\": \"Dropout\", \"rate\": 0.25, \"noise_shape\": [null, 1, 40]}",
                          2);
    const layer_call call = make_call(2, true);
    layer_call_run("{\"type\": \"Dropout\", \"rate\": 0.25, \"noise_shape\": [1, null, null]}",
                   &call, result);
    for (int example = 1; example < BATCH; example++)
        cr_assert(memcmp(result, result + example * CELLS, CELLS * sizeof *result) == 0);
    cr_assert(mean_of(result, 0, 2) > 1.1, "something is dropped");
}

/* An element has variance 1: mean within 5 / sqrt(8000) = 0.056. The squares' deviation is about 1.4 (values
 * are one of three: the dropped one is the farthest, a * limit + b = -1.2 at rate 0.2): 0.08. */
Test(layer_random, alpha_dropout)
{
    static const char text[] = "{\"type\": \"AlphaDropout\", \"rate\": 0.2}";
    const layer_call call = make_call(2, false);
    cr_assert(layer_call_run(text, &call, result) == ELEMS);
    const double limit = -1.6732632423543772 * 1.0507009873554805;
    const double a = 1 / sqrt(0.8 * (1 + 0.2 * limit * limit)), b = -a * limit * 0.2;
    int dropped = 0;
    for (int i = 0; i < ELEMS; i++) {
        const bool is_dropped = fabs((double)result[i] - (a * limit + b)) < 1e-6;
        dropped += is_dropped;
        cr_assert(is_dropped || fabs((double)result[i] - (a * (double)image[i] + b)) < 1e-6);
    }
    cr_assert(abs(dropped - ELEMS / 5) < 180, "%d", dropped);
    cr_assert(fabs(mean_of(result, 0, 1)) < 0.056 && fabs(mean_of(result, 0, 2) - 1) < 0.08);
    expect_steps_differ(text, call);
}

/* Variance 0.2 / 0.8 = 1/4: mean within 5 * 0.5 / sqrt(8000) = 0.028; that of squares, whose deviation is
 * 0.25 * sqrt(2), within 0.02. */
Test(layer_random, gaussian_dropout)
{
    static const char text[] = "{\"type\": \"GaussianDropout\", \"rate\": 0.2}";
    layer_call call = make_call(2, true);
    cr_assert(layer_call_run(text, &call, result) == ELEMS);
    cr_assert(fabs(mean_of(result, 1, 1)) < 0.028);
    cr_assert(fabs(mean_of(result, 1, 2) - 0.25) < 0.02);
    expect_steps_differ(text, call);
    call = make_call(2, false);
    layer_call_run(text, &call, second);
    for (int i = 0; i < ELEMS; i++)
        cr_assert(second[i] == result[i] * image[i], "the noise multiplies");
}

Test(layer_random, gaussian_noise)
{
    static const char text[] = "{\"type\": \"GaussianNoise\", \"stddev\": 0.5}";
    layer_call call = make_call(2, true);
    cr_assert(layer_call_run(text, &call, result) == ELEMS);
    cr_assert(fabs(mean_of(result, 1, 1)) < 0.028);
    cr_assert(fabs(mean_of(result, 1, 2) - 0.25) < 0.02);
    expect_steps_differ(text, call);
    call = make_call(2, false);
    layer_call_run(text, &call, second);
    for (int i = 0; i < ELEMS; i++)
        cr_assert(fabsf(second[i] - image[i] - (result[i] - 1)) < 1e-6f, "the noise is added");
}

/* ---- images ---- */

enum { HEIGHT = 5, WIDTH = 4, PLANE = HEIGHT * WIDTH };

static layer_call image_call(void)
{
    for (int i = 0; i < BATCH * PLANE; i++)
        image[i] = (float)i;
    return (layer_call){
        .is_training = true, .batch = BATCH, .rank = 3, .dims = {HEIGHT, WIDTH, 1}, .image = image};
}

/* Every example of twenty steps is itself or its mirror image, each of them about as often: of 80 with
 * probability 1/2, deviation 4.5. */
static void expect_flips(const char *text, bool rows, bool columns)
{
    layer_call call = image_call();
    int flipped = 0;
    for (call.step = 0; call.step < 20; call.step++) {
        cr_assert(layer_call_run(text, &call, result) == BATCH * PLANE);
        for (int example = 0; example < BATCH; example++) {
            const float *in = image + example * PLANE, *out = result + example * PLANE;
            const bool is_flipped = out[0] != in[0];
            flipped += is_flipped;
            for (int y = 0; y < HEIGHT; y++)
                for (int x = 0; x < WIDTH; x++) {
                    const int from_y = is_flipped && rows ? HEIGHT - 1 - y : y;
                    const int from_x = is_flipped && columns ? WIDTH - 1 - x : x;
                    cr_assert(out[y * WIDTH + x] == in[from_y * WIDTH + from_x]);
                }
        }
    }
    cr_assert(abs(flipped - 40) < 23, "%d", flipped);
    call.is_training = false;
    layer_call_run(text, &call, result);
    cr_assert(memcmp(image, result, BATCH * PLANE * sizeof *image) == 0, "only in training");
}

Test(layer_random, flip)
{
    expect_flips("{\"type\": \"RandomFlip\"}", true, true);
    expect_flips("{\"type\": \"RandomFlip\", \"mode\": \"horizontal\"}", false, true);
    expect_flips("{\"type\": \"RandomFlip\", \"mode\": \"vertical\"}", true, false);
}

/* Windows of 3 x 2 at one place for the whole batch; all nine places occur in 100 steps (one is missed with
 * probability 9 * (8/9)^100 = 7e-5; the draws are fixed). */
Test(layer_random, crop)
{
    static const char text[] = "{\"type\": \"RandomCrop\", \"height\": 3, \"width\": 2}";
    layer_call call = image_call();
    bool seen[3][3] = {{false}};
    for (call.step = 0; call.step < 100; call.step++) {
        cr_assert(layer_call_run(text, &call, result) == BATCH * 6);
        const int top = (int)result[0] / WIDTH, left = (int)result[0] % WIDTH;
        cr_assert(top <= 2 && left <= 2);
        seen[top][left] = true;
        for (int i = 0; i < BATCH * 6; i++) {
            const int y = top + i % 6 / 2, x = left + i % 2;
            cr_assert(result[i] == image[i / 6 * PLANE + y * WIDTH + x]);
        }
    }
    for (int i = 0; i < 9; i++)
        cr_assert(seen[i / 3][i % 3], "%d", i);
    /* Otherwise the largest window of that aspect ratio, resized: here 5 x 3, at column 0. */
    call.is_training = false;
    cr_assert(layer_call_run(text, &call, result) == BATCH * 6);
    cr_assert(fabsf(result[0] - (1.0f / 3 * WIDTH + 0.25f)) < 1e-5f, "%g", (double)result[0]);
}

/* A range that is one number draws nothing; a wider one differs from example to example and step to step. */
Test(layer_random, every_example_has_its_own_transformation)
{
    static const char *const texts[] = {
        "{\"type\": \"RandomRotation\", \"factor\": 0.2, \"fill_mode\": \"constant\"}",
        "{\"type\": \"RandomTranslation\", \"height_factor\": 0.3, \"width_factor\": 0.3}",
        "{\"type\": \"RandomZoom\", \"height_factor\": 0.3}",
        "{\"type\": \"RandomContrast\", \"factor\": 0.5}",
        "{\"type\": \"RandomBrightness\", \"factor\": 0.5}"};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        layer_call call = image_call();
        for (int i = 0; i < BATCH * PLANE; i++)
            image[i] = (float)(100 + i % PLANE);
        layer_call_run(texts[t], &call, result);
        for (int example = 1; example < BATCH; example++)
            cr_assert(memcmp(result, result + example * PLANE, PLANE * sizeof *result) != 0, "%s",
                      texts[t]);
        layer_call_run(texts[t], &call, second);
        cr_assert(memcmp(result, second, BATCH * PLANE * sizeof *result) == 0);
        call.step = 1;
        layer_call_run(texts[t], &call, second);
        cr_assert(memcmp(result, second, BATCH * PLANE * sizeof *result) != 0);
    }
}
