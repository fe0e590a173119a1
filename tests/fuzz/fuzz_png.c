/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: heads of images, and PNG files of up to a million pixels. */
#include <stdlib.h>
#include <tpucl/status.h>
#include "core/alloc.h"
#include "io/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_image_header header;
    if (tp_image_read_header(data, size, "fuzz", &header) != TPUCL_OK) {
        require(tpucl_last_error()->message[0]);
        return 0;
    }
    if (header.format != TP_IMAGE_PNG || (int64_t)header.width * header.height > 1 << 20) return 0;
    for (int32_t channels = 0; channels <= 4; channels++) {
        tp_image image;
        uint32_t sum = 0;
        if (tp_png_decode(data, size, "fuzz", channels, &image) != TPUCL_OK) continue;
        require(image.width == header.width && image.height == header.height);
        for (int64_t i = 0; i < (int64_t)image.width * image.height * image.channels; i++)
            sum += image.pixels[i];
        require(channels == 0 || image.channels == channels);
        tp_free(image.pixels);
        (void)sum;
    }
    return 0;
}
