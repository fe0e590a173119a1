/* SPDX-License-Identifier: Apache-2.0
 * Encoded images to bytes of one size: what sources of images share. */
#ifndef TP_DATA_IMAGE_READ_H
#define TP_DATA_IMAGE_READ_H

#include "data/image_resize.h"
#include "data/source.h"

typedef struct tp_image_options {
    int32_t height, width, channels; /* 0: as the first image's */
    tp_resize_mode resize;
    bool antialias, is_upright;
    double least_area; /* TP_RESIZE_AREA, with what it is drawn by */
    uint64_t seed;
    int64_t per_core_batch; /* row r of a batch is row r mod this on core r / this */
} tp_image_options;

typedef struct tp_image_reader { /* of one thread; zeroed at first */
    tp_image_decoder *decoder;
    tp_resize_buffer resize;
} tp_image_reader;

tpucl_status tp_image_reader_init(tp_image_reader *reader) TPUCL_MUST_CHECK;
void tp_image_reader_deinit(tp_image_reader *reader);

/* To `out` [height, width, channels]; `name` is for messages. */
tpucl_status tp_image_reader_read(tp_image_reader *reader, const tp_image_options *options,
                                  const tp_source_place *place, const char *name, tp_view file,
                                  uint8_t *out) TPUCL_MUST_CHECK;

/* Fills what the options leave open with the size and colours of this image. */
tpucl_status tp_image_options_complete(tp_image_options *inout_options, const char *name,
                                       tp_view file) TPUCL_MUST_CHECK;

#endif
