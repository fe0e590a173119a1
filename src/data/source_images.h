/* SPDX-License-Identifier: Apache-2.0
 * A folder of images as a source: "image" u8 [height, width, channels], "label" s32 [], the class of the
 * folder that the file lies in. */
#ifndef TP_DATA_SOURCE_IMAGES_H
#define TP_DATA_SOURCE_IMAGES_H

#include "data/image_read.h"

typedef struct tp_image_source_options {
    const char
        *folder; /* with a folder for each class (tp_image_folder_open); outlives the source */
    tp_image_options image;
    bool skips; /* files that cannot be decoded are left out, with a warning; else a failure */
} tp_image_source_options;

tpucl_status tp_source_open_images(const tp_image_source_options *options,
                                   tp_source **out_source) TPUCL_MUST_CHECK;
/* That `other`, likewise a folder of images, has the same classes. */
tpucl_status tp_source_check_same_classes(const tp_source *source,
                                          const tp_source *other) TPUCL_MUST_CHECK;

#endif
