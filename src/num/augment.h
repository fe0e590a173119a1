/* SPDX-License-Identifier: Apache-2.0
 * Random changes of images, defined once so that host threads and graph ops on the device (model/augment.c)
 * give the same bits. An image is bytes [H, W, channels] and becomes bytes [height, width, channels]:
 *
 *   crop         a window of the image with `pad` rows and columns of zeros around it; its top is
 *                floor(u * places) - pad of the H + 2 pad - height + 1 places, its left likewise
 *   flip         along x, along y, each with probability 1/2
 *   contrast     x = (x - mean) f + mean, mean of all the window's values; f = 2 c u + (1 - c)
 *   brightness   x = x + (510 b u - 255 b)
 *   noise        x = x + 255 n * normal, another one for every value
 *   saturation   x = grey + (x - grey) s, s = 2 c u + (1 - c), grey = (0.299 r + 0.587 g) + 0.114 b (ITU-R BT.601);
 *                for 3 channels
 *
 * Of these steps only those that are asked for are done, in this order, in f32, every operation rounded,
 * the constants of u rounded once; the mean is the exact sum times the rounded 1 / (height width channels).
 * At the end x is brought into 0 to 255 and becomes floor(x + 0.5). u is one draw of Philox for each
 * example and step: op TP_AUGMENT_STREAM + which, the example's row on its core as element (num/philox.h).
 * Without randomness the window is the middle of the image and nothing else happens. */
#ifndef TP_NUM_AUGMENT_H
#define TP_NUM_AUGMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Above all streams that layers take. */
enum {
    TP_AUGMENT_STREAM = 0x7fffff00,
    TP_AUGMENT_TOP = 0,
    TP_AUGMENT_LEFT,
    TP_AUGMENT_FLIP_X,
    TP_AUGMENT_FLIP_Y,
    TP_AUGMENT_CONTRAST,
    TP_AUGMENT_BRIGHTNESS,
    TP_AUGMENT_NOISE,
    TP_AUGMENT_SATURATION,
    TP_AUGMENT_AREA /* data/image_resize.h */
};

typedef struct tp_augment {
    int32_t height, width; /* of the window, at most the image's */
    int32_t pad;
    bool flips_x, flips_y;
    double contrast, brightness, saturation, noise; /* 0: none */
} tp_augment;

/* Which numbers an example gets: seed, step, and its core and row on that core. */
typedef struct tp_augment_place {
    uint64_t seed;
    uint32_t step, core, row;
} tp_augment_place;

/* Whether values change, not only places. */
static inline bool tp_augment_colours(const tp_augment *augment)
{
    return augment->contrast > 0 || augment->brightness > 0 || augment->saturation > 0 ||
           augment->noise > 0;
}

/* `place` NULL: without randomness. `scratch` holds width * channels floats.
 * The window has at most 2^23 values, so that their sum stays exact. */
void tp_augment_apply(const tp_augment *augment, const tp_augment_place *place,
                      const uint8_t *image, int32_t height, int32_t width, int32_t channels,
                      float *scratch, uint8_t *out);

#endif
