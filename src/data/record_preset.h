/* SPDX-License-Identifier: Apache-2.0
 * How well-known collections name what is in their Examples. Names, the number of the first class and whether the
 * image is a file or bare samples differ from one to the next; all else is one code over this table. */
#ifndef TP_DATA_RECORD_PRESET_H
#define TP_DATA_RECORD_PRESET_H

#include "core/arena.h"
#include "core/str.h"

typedef enum tp_record_part {
    TP_PART_IMAGE,      /* bytes: a file, or samples [height, width, channels] u8 */
    TP_PART_LABEL,      /* int64 */
    TP_PART_FORMAT,     /* bytes: "PNG", "JPEG" */
    TP_PART_HEIGHT,     /* int64 */
    TP_PART_WIDTH,      /* int64 */
    TP_PART_CHANNELS,   /* int64 */
    TP_PART_COLORSPACE, /* bytes: "RGB", "grayscale" */
    TP_PART_FILENAME,   /* bytes */
    TP_PART_CLASS,      /* bytes: the name of the class, where there is one */
    TP_PARTS
} tp_record_part;

typedef struct tp_record_preset {
    const char *name, *about;
    const char *keys[TP_PARTS]; /* NULL: is not there */
    int64_t first_label;        /* what the first class is called */
    bool is_raw;                /* the image is bare samples */
} tp_record_preset;

/* NULL past the end. */
const tp_record_preset *tp_record_preset_at(int index);
/* TPUCL_INVALID_CONFIG with the nearest name. */
tpucl_status tp_record_preset_find(const char *name,
                                   const tp_record_preset **out_preset) TPUCL_MUST_CHECK;

/* What a preset finds in a record. */
typedef struct tp_record_example {
    tp_view image;                   /* a file, or samples where the preset is_raw; in the record */
    int64_t label;                   /* from 0, whatever the first class is called */
    int64_t height, width, channels; /* 0: the record does not say */
} tp_record_example;

/* TPUCL_CORRUPT_DATA, or TPUCL_INVALID_ARGUMENT when the record has not what the preset names, or a label below
 * its first class: mostly the wrong preset. The caller adds file and offset. */
tpucl_status tp_record_preset_decode(const tp_record_preset *preset, tp_view record,
                                     tp_arena *arena,
                                     tp_record_example *out_example) TPUCL_MUST_CHECK;

#endif
