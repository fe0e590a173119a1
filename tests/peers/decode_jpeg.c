/* SPDX-License-Identifier: Apache-2.0
 * decode_jpeg FILE: the image as PPM or PGM on standard output, as djpeg -pnm writes it. For
 * tests/peers/test_jpeg.sh. */
#include <stdio.h>
#include <tpucl/status.h>
#include "core/alloc.h"
#include "core/file.h"
#include "io/image.h"

int main(int argc, char **argv)
{
    char *bytes = NULL;
    size_t length = 0;
    tp_image_decoder *decoder = NULL;
    tp_image image;
    if (argc != 2) return 2;
    tpucl_status status = tp_file_read(argv[1], 1 << 28, &bytes, &length);
    if (status == TPUCL_OK) status = tp_image_decoder_create(&decoder);
    if (status == TPUCL_OK)
        status = tp_image_decode(decoder, bytes, length, argv[1], 0, false, &image);
    if (status == TPUCL_OK) {
        const size_t count = (size_t)image.width * (size_t)image.height * (size_t)image.channels;
        printf("P%d\n%d %d\n255\n", image.channels == 1 ? 5 : 6, image.width, image.height);
        fwrite(image.pixels, 1, count, stdout);
    } else {
        fprintf(stderr, "%s\n", tpucl_last_error()->message);
    }
    tp_image_decoder_destroy(decoder);
    tp_free(bytes);
    return status != TPUCL_OK;
}
