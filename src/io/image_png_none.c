/* SPDX-License-Identifier: Apache-2.0
 * Stands for image_png.c in a build without libspng. */
#include "io/image.h"

static tpucl_status refuse(const char *name)
{
    return TP_FAIL(
        TPUCL_UNSUPPORTED,
        "PNG '%s': this build of tpucl has no libspng; install its development files and "
        "build again",
        name);
}

tpucl_status tp_png_encode(const uint8_t *pixels, int32_t width, int32_t height, int32_t channels,
                           int level, tp_str_builder *to)
{
    (void)pixels, (void)width, (void)height, (void)channels, (void)level, (void)to;
    return refuse("to be written");
}

tpucl_status tp_png_decode(const void *bytes, size_t length, const char *name, int32_t channels,
                           tp_image *out_image)
{
    (void)bytes, (void)length, (void)channels, (void)out_image;
    return refuse(name);
}
