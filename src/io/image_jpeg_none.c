/* SPDX-License-Identifier: Apache-2.0
 * Stands for image_jpeg.c in a build without TurboJPEG. */
#include "io/image.h"

static tpucl_status refuse(const char *name)
{
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "JPEG '%s': this build of tpucl has no TurboJPEG; install its development files "
                   "and build again",
                   name);
}

tpucl_status tp_jpeg_decoder_create(tp_jpeg_decoder **out_decoder)
{
    *out_decoder = NULL;
    return TPUCL_OK; /* files of other formats need none */
}

void tp_jpeg_decoder_destroy(tp_jpeg_decoder *decoder)
{
    (void)decoder;
}

tpucl_status tp_jpeg_decode(tp_jpeg_decoder *decoder, const void *bytes, size_t length,
                            const char *name, int32_t channels, tp_image *out_image)
{
    (void)decoder, (void)bytes, (void)length, (void)channels, (void)out_image;
    return refuse(name);
}

tpucl_status tp_jpeg_encode(const uint8_t *pixels, int32_t width, int32_t height, int32_t channels,
                            int quality, bool is_fine, tp_str_builder *to)
{
    (void)pixels, (void)width, (void)height, (void)channels, (void)quality, (void)is_fine, (void)to;
    return refuse("to be written");
}
