/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: JPEG files of up to a million pixels, upright and as they are. */
#include <stdlib.h>
#include <tpucl/status.h>
#include "io/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_image_header header;
    tp_image_decoder *decoder = NULL;
    const int orientation = tp_image_orientation(data, size);
    require(orientation >= 1 && orientation <= 8);
    if (tp_image_read_header(data, size, "fuzz", &header) != TPUCL_OK ||
        header.format != TP_IMAGE_JPEG || (int64_t)header.width * header.height > 1 << 20)
        return 0;
    require(tp_image_decoder_create(&decoder) == TPUCL_OK);
    for (int32_t channels = 0; channels <= 4; channels++) {
        tp_image image;
        uint32_t sum = 0;
        if (tp_image_decode(decoder, data, size, "fuzz", channels, true, &image) != TPUCL_OK) {
            require(tpucl_last_error()->message[0]);
            continue;
        }
        const bool is_turned = orientation >= 5;
        require(image.width == (is_turned ? header.height : header.width) &&
                image.height == (is_turned ? header.width : header.height));
        for (int64_t i = 0; i < (int64_t)image.width * image.height * image.channels; i++)
            sum += image.pixels[i];
        require(channels == 0 || image.channels == channels);
        (void)sum;
    }
    tp_image_decoder_destroy(decoder);
    return 0;
}
