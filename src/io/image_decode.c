/* SPDX-License-Identifier: Apache-2.0
 * Decodes what an image turns out to be, into memory that is used again for the next one: asking the system
 * for a megabyte and giving it back costs as much as decoding a small photograph. */
#include "core/alloc.h"
#include "io/image.h"

struct tp_image_decoder {
    tp_jpeg_decoder *jpeg;
    uint8_t *png;    /* the last one's pixels */
    uint8_t *turned; /* and an image that was turned */
};

tpucl_status tp_image_decoder_create(tp_image_decoder **out_decoder)
{
    tp_image_decoder *decoder = TP_NEW(tp_image_decoder);
    if (!decoder) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = tp_jpeg_decoder_create(&decoder->jpeg);
    if (status != TPUCL_OK) {
        tp_free(decoder);
        return status;
    }
    *out_decoder = decoder;
    return TPUCL_OK;
}

void tp_image_decoder_destroy(tp_image_decoder *decoder)
{
    if (!decoder) return;
    tp_jpeg_decoder_destroy(decoder->jpeg);
    tp_free(decoder->png);
    tp_free(decoder->turned);
    tp_free(decoder);
}

static tpucl_status turn(tp_image_decoder *decoder, int orientation, tp_image *image)
{
    const size_t bytes = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    if (orientation == 1) return TPUCL_OK;
    tp_free(decoder->turned);
    decoder->turned = tp_alloc(bytes);
    if (!decoder->turned) return TPUCL_OUT_OF_MEMORY;
    tp_image_turn(image, orientation, decoder->turned);
    image->pixels = decoder->turned;
    if (orientation >= 5) {
        const int32_t width = image->width;
        image->width = image->height;
        image->height = width;
    }
    return TPUCL_OK;
}

tpucl_status tp_image_decode(tp_image_decoder *decoder, const void *bytes, size_t length,
                             const char *name, int32_t channels, bool is_upright,
                             tp_image *out_image)
{
    switch (tp_image_sniff(bytes, length)) {
    case TP_IMAGE_PNG:
        tp_free(decoder->png);
        decoder->png = NULL;
        TP_TRY(tp_png_decode(bytes, length, name, channels, out_image));
        decoder->png = out_image->pixels;
        return TPUCL_OK;
    case TP_IMAGE_JPEG:
        TP_TRY(tp_jpeg_decode(decoder->jpeg, bytes, length, name, channels, out_image));
        return is_upright ? turn(decoder, tp_image_orientation(bytes, length), out_image)
                          : TPUCL_OK;
    case TP_IMAGE_OTHER:
    default:
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' is neither a PNG nor a JPEG file", name);
    }
}
