/* SPDX-License-Identifier: Apache-2.0
 * Augmentation: what host threads compute, what the graph's ops mean and what a device computes are the
 * same bits, for windows, padding, flips and colours on odd sizes; and it is what it says: places, shares,
 * ranges. */
#include "harness/graph_run.h"
#include "harness/program_run.h"
#include "model/augment.h"

enum { BATCH = 5, CORES = 3, MAX_BYTES = BATCH * 20 * 20 * 4 };

typedef struct augment_case {
    int32_t height, width, channels;
    tp_augment augment;
} augment_case;

static const augment_case cases[] = {
    {7, 9, 3, {.height = 7, .width = 9}},
    {7, 9, 1, {.height = 5, .width = 4}},
    {7, 9, 3, {.height = 7, .width = 9, .pad = 3}},
    {8, 6, 4, {.height = 5, .width = 6, .pad = 1, .flips_x = true}},
    {8, 6, 2, {.height = 8, .width = 6, .flips_y = true}},
    {8, 5, 3, {.height = 3, .width = 5, .flips_x = true, .flips_y = true}},
    {9, 7, 3, {.height = 9, .width = 7, .contrast = 0.7}},
    {9, 7, 1, {.height = 6, .width = 7, .contrast = 1, .brightness = 0.3}},
    {9, 7, 3, {.height = 9, .width = 5, .saturation = 0.9}},
    {9, 7, 2, {.height = 9, .width = 7, .saturation = 0.9, .brightness = 1}},
    {9, 7, 3, {.height = 9, .width = 7, .noise = 0.2}},
    {19,
     20,
     3,
     {.height = 17,
      .width = 13,
      .pad = 2,
      .flips_x = true,
      .flips_y = true,
      .contrast = 0.4,
      .brightness = 0.2,
      .saturation = 0.5,
      .noise = 0.1}},
};
enum { CASES = sizeof cases / sizeof *cases };

static uint8_t images[CORES][MAX_BYTES];

static void fill_images(void)
{
    uint32_t state = 1;
    for (int core = 0; core < CORES; core++)
        for (int i = 0; i < MAX_BYTES; i++) {
            state = state * 1664525u + 1013904223u;
            images[core][i] = (uint8_t)(state >> 24);
        }
}

TestSuite(augment, .init = fill_images);

static tp_graph *build(const augment_case *c, bool is_training)
{
    tp_graph *graph = NULL;
    const tp_shape shape = {.rank = 4, .dims = {BATCH, c->height, c->width, c->channels}};
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    const tp_node_id in = tp_graph_add_input(graph, "image", TP_U8, shape);
    const tp_node_id out = tp_augment_build(graph, &c->augment, in, is_training);
    tp_graph_add_output(graph, "out", tp_op_convert(graph, out, TP_F32));
    EXPECT_OK(tp_graph_check(graph));
    EXPECT_OK(tp_graph_verify(graph));
    return graph;
}

static void expect_equal(const augment_case *c, int index, bool is_training)
{
    const tp_reference_options options = {.cores = CORES, .seed = 0x123456789abcULL};
    const void *inputs[CORES] = {images[0], images[1], images[2]};
    const int64_t in_bytes = (int64_t)c->height * c->width * c->channels;
    const int64_t out_bytes = (int64_t)c->augment.height * c->augment.width * c->channels;
    tp_graph *graph = build(c, is_training);
    tp_reference *reference = NULL;
    EXPECT_OK(tp_reference_create(graph, &options, &reference));
    for (uint32_t step = 0; step < 3; step++) {
        EXPECT_OK(tp_reference_step(reference, inputs, step));
        for (uint32_t core = 0; core < CORES; core++) {
            const float *found = tp_reference_output(reference, (int32_t)core, 0)->data;
            for (uint32_t row = 0; row < BATCH; row++) {
                const tp_augment_place place = {options.seed, step, core, row};
                float scratch[2 * 20 * 4];
                uint8_t wanted[20 * 20 * 4];
                tp_augment_apply(&c->augment, is_training ? &place : NULL,
                                 images[core] + row * in_bytes, c->height, c->width, c->channels,
                                 scratch, wanted);
                for (int64_t i = 0; i < out_bytes; i++)
                    cr_assert_eq(found[row * out_bytes + i], (float)wanted[i],
                                 "case %d, step %u, core %u, row %u, value %lld: %g, host %d",
                                 index, step, core, row, (long long)i,
                                 (double)found[row * out_bytes + i], wanted[i]);
            }
        }
    }
    tp_reference_destroy(reference);
    tp_graph_destroy(graph);
}

Test(augment, host_and_graph_agree_on_every_bit)
{
    for (int i = 0; i < CASES; i++) {
        expect_equal(&cases[i], i, true);
        expect_equal(&cases[i], i, false);
    }
}

Test(augment, the_device_computes_the_same)
{
    for (int i = 0; i < CASES; i++) {
        tp_graph *graph = build(&cases[i], true);
        const program_run_options options = {.cores = CORES, .steps = 2, .seed = 7};
        program_run_expect_equal(graph, &options);
        tp_graph_destroy(graph);
    }
}

/* An image whose bytes say where they lie. */
Test(augment, windows_lie_everywhere_and_flips_are_fair)
{
    const tp_augment augment = {.height = 6, .width = 5, .pad = 1, .flips_x = true};
    uint8_t image[8 * 8], out[6 * 5];
    float scratch[10];
    int tops[5] = {0}, lefts[6] = {0}, flipped = 0;
    for (int i = 0; i < 64; i++)
        image[i] = (uint8_t)(1 + i);
    for (uint32_t step = 0; step < 3000; step++) {
        const tp_augment_place place = {3, step, step % 4, step % 7};
        tp_augment_apply(&augment, &place, image, 8, 8, 1, scratch, out);
        const int a = out[2 * 5 + 1] - 1, b = out[2 * 5 + 3] - 1; /* inside, whatever is drawn */
        const int left = (a < b ? a : b) % 8 - 1, top = a / 8 - 2;
        cr_assert(a / 8 == b / 8 && abs(a - b) == 2);
        cr_assert(top >= -1 && top <= 3 && left >= -1 && left <= 4);
        tops[top + 1]++;
        lefts[left + 1]++;
        flipped += a > b;
        cr_assert_eq(out[0] == 0, top == -1 || (a > b ? left == 4 : left == -1));
    }
    /* five deviations of a count of 3000 with these probabilities */
    cr_assert(abs(flipped - 1500) < 137, "%d", flipped);
    for (int i = 0; i < 5; i++)
        cr_assert(abs(tops[i] - 600) < 110, "top %d: %d", i, tops[i]);
    for (int i = 0; i < 6; i++)
        cr_assert(abs(lefts[i] - 500) < 103, "left %d: %d", i, lefts[i]);
}

Test(augment, colours_stay_within_their_ranges)
{
    const tp_augment brighter = {.height = 1, .width = 2, .brightness = 0.1};
    const tp_augment stronger = {.height = 1, .width = 2, .contrast = 0.5};
    const uint8_t image[] = {100, 150};
    float scratch[4];
    int least = 255, most = 0, least_gap = 255, most_gap = 0;
    for (uint32_t step = 0; step < 1000; step++) {
        const tp_augment_place place = {3, step, 0, 0};
        uint8_t out[2];
        tp_augment_apply(&brighter, &place, image, 1, 2, 1, scratch, out);
        cr_assert_eq(out[1] - out[0], 50);
        least = out[0] < least ? out[0] : least;
        most = out[0] > most ? out[0] : most;
        tp_augment_apply(&stronger, &place, image, 1, 2, 1, scratch, out);
        cr_assert(abs(out[0] + out[1] - 250) <= 1);
        const int gap = out[1] - out[0];
        least_gap = gap < least_gap ? gap : least_gap;
        most_gap = gap > most_gap ? gap : most_gap;
    }
    /* 100 +- 25.5, and 50 times 0.5 to 1.5, each nearly reached */
    cr_assert(least >= 74 && least <= 76 && most >= 124 && most <= 126, "%d %d", least, most);
    cr_assert(least_gap >= 25 && least_gap <= 26 && most_gap >= 74 && most_gap <= 75, "%d %d",
              least_gap, most_gap);
}
