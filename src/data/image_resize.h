/* SPDX-License-Identifier: Apache-2.0
 * Images of bytes in another size. */
#ifndef TP_DATA_IMAGE_RESIZE_H
#define TP_DATA_IMAGE_RESIZE_H

#include "io/image.h"
#include "num/augment.h"

typedef enum tp_resize_mode {
    TP_RESIZE_NONE,    /* another size is a mistake */
    TP_RESIZE_STRETCH, /* to the size, whatever the sides' ratio */
    TP_RESIZE_CROP,    /* keeps the ratio; the middle of what is too long */
    TP_RESIZE_PAD,     /* keeps the ratio; black where there is nothing */
    TP_RESIZE_AREA     /* in training a part drawn by chance, stretched; else as CROP */
} tp_resize_mode;

typedef struct tp_resize_buffer { /* of one thread; zeroed at first */
    void *rows, *weights, *starts;
    size_t rows_bytes, weights_bytes, starts_bytes;
} tp_resize_buffer;

/* `image` to `out` [height, width, channels]. Bilinear with half-pixel centres: result position i lies at
 * (i + 0.5) * in / out - 0.5; with `antialias` the triangle is as wide as in / out when the image shrinks, as
 * tf.image.resize does. Columns first, in f32, rounded to the nearest byte once. `name` is for messages. */
tpucl_status tp_image_resize_bytes(const tp_image *image, tp_resize_mode mode, bool antialias,
                                   int32_t height, int32_t width, const char *name,
                                   tp_resize_buffer *buffer, uint8_t *out) TPUCL_MUST_CHECK;

typedef struct tp_image_area {
    int32_t top, left, height, width;
} tp_image_area;

/* A part of an image as Inception's training takes it (Szegedy et al. 2015, section 6; TensorFlow's
 * sample_distorted_bounding_box, torchvision's RandomResizedCrop): `least` to 1 of its area, evenly
 * distributed, width by height from 3/4 to 4/3, evenly in the logarithm, at any place. Ten tries, each a
 * block of Philox (op TP_AUGMENT_STREAM + TP_AUGMENT_AREA, block 10 * row + try): area, ratio, top, left.
 * Then the largest part of such a ratio in the middle. */
tp_image_area tp_image_draw_area(const tp_augment_place *place, double least, int32_t height,
                                 int32_t width);
/* That part alone, stretched: what is around it takes no part. */
tpucl_status tp_image_resize_area(const tp_image *image, const tp_image_area *area, bool antialias,
                                  int32_t height, int32_t width, tp_resize_buffer *buffer,
                                  uint8_t *out) TPUCL_MUST_CHECK;
void tp_resize_buffer_deinit(tp_resize_buffer *buffer);

#endif
