/* SPDX-License-Identifier: Apache-2.0
 * Decodes, takes a part or all of it, resizes. */
#include "data/image_read.h"

tpucl_status tp_image_reader_init(tp_image_reader *reader)
{
    return tp_image_decoder_create(&reader->decoder);
}

void tp_image_reader_deinit(tp_image_reader *reader)
{
    tp_resize_buffer_deinit(&reader->resize);
    tp_image_decoder_destroy(reader->decoder);
    reader->decoder = NULL;
}

tpucl_status tp_image_reader_read(tp_image_reader *reader, const tp_image_options *o,
                                  const tp_source_place *place, const char *name, tp_view file,
                                  uint8_t *out)
{
    tp_image image;
    TP_TRY(tp_image_decode(reader->decoder, file.data, file.length, name, o->channels,
                           o->is_upright, &image));
    if (o->resize != TP_RESIZE_AREA || !place->is_training)
        return tp_image_resize_bytes(&image, o->resize, o->antialias, o->height, o->width, name,
                                     &reader->resize, out);
    const tp_augment_place drawn = {.seed = o->seed,
                                    .step = place->step,
                                    .core = (uint32_t)(place->row / o->per_core_batch),
                                    .row = (uint32_t)(place->row % o->per_core_batch)};
    const tp_image_area area = tp_image_draw_area(&drawn, o->least_area, image.height, image.width);
    return tp_image_resize_area(&image, &area, o->antialias, o->height, o->width, &reader->resize,
                                out);
}

tpucl_status tp_image_options_complete(tp_image_options *inout_options, const char *name,
                                       tp_view file)
{
    tp_image_options *o = inout_options;
    tp_image_header header;
    TP_TRY(tp_image_read_header(file.data, file.length, name, &header));
    const bool lies = o->is_upright && tp_image_orientation(file.data, file.length) >= 5;
    if (!o->channels) o->channels = header.channels == 1 ? 1 : 3;
    if (o->height) return TPUCL_OK;
    o->height = lies ? header.width : header.height;
    o->width = lies ? header.height : header.width;
    return TPUCL_OK;
}
