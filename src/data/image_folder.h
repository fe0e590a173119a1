/* SPDX-License-Identifier: Apache-2.0
 * A folder of images: a folder per class, image files in it. Thread-safe once opened. */
#ifndef TP_DATA_IMAGE_FOLDER_H
#define TP_DATA_IMAGE_FOLDER_H

#include "core/arena.h"

typedef struct tp_image_file {
    const char *path;
    int32_t class_index;
} tp_image_file;

typedef struct tp_image_folder {
    tp_arena *arena;
    const char *const *classes; /* in byte order */
    tp_image_file *files;       /* by class, then by name */
    int32_t class_count;
    int64_t file_count;
} tp_image_folder;

enum { TP_IMAGE_MAX_FILE_BYTES = 1 << 28 };

/* Files whose names begin with a point and those without one of the endings .png, .jpg, .jpeg (in any case) are
 * passed over. TPUCL_NOT_FOUND when there are no classes or no images. */
tpucl_status tp_image_folder_open(const char *path, tp_image_folder *out_folder) TPUCL_MUST_CHECK;
void tp_image_folder_close(tp_image_folder *folder);

#endif
