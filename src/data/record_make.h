/* SPDX-License-Identifier: Apache-2.0
 * Makes records: of arrays (IDX, .npy), of a folder of images with one folder per class, or of other
 * records. */
#ifndef TP_DATA_RECORD_MAKE_H
#define TP_DATA_RECORD_MAKE_H

#include "data/image_resize.h"
#include "data/record_preset.h"
#include "io/tfrecord.h"

typedef struct tp_make_options {
    const char *inputs, *labels; /* files of arrays; or `inputs` alone: a folder of images */
    const char *output;          /* "folder/train": the first part of the files' names */
    const tp_record_preset *preset;
    int32_t shards;
    tp_compression compression; /* NONE, GZIP, ZLIB */
    int png_level;              /* 1 to 9; 0: the default */
    /* Folders of images: brought to this size and encoded again; 0: files are taken as they are. */
    int32_t height, width;
    tp_resize_mode resize; /* STRETCH, CROP or PAD, over all pixels that shrink into one */
    int jpeg_quality;      /* 1 to 100: encoded as JPEG, also without a size; 0: as PNG */
    bool is_upright;       /* turned as EXIF data say before */
    bool shuffle;
    uint64_t seed;
    bool force; /* replace what is there */
    /* Records written, of how many; false stops: TPUCL_INTERRUPTED, complete files stay. May be NULL. */
    bool (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} tp_make_options;

typedef struct tp_make_result {
    int64_t records;      /* in all files */
    int32_t files, found; /* how many there are; how many of them were there already */
    int32_t classes;      /* of a folder of images, or 0 */
    uint64_t bytes;       /* of the files written now, on disk */
} tp_make_result;

/* Work that was stopped goes on with the first file that is missing, if it is the same work. Images of
 * bytes are encoded as PNG unless the preset wants samples; files of a folder are taken as they are, unless
 * a size or a quality says otherwise. Floats become a list of floats. Classes are the folders' names in
 * byte order, written to "<output>.labels.txt". */
tpucl_status tp_records_make(const tp_make_options *options,
                             tp_make_result *out_result) TPUCL_MUST_CHECK;

/* The records of `paths` (files), in order, as `output` says: other number of files, other compression.
 * Faults of the input are those of `records`. `inputs`, `labels`, `preset` and shuffling are not used. */
tpucl_status tp_records_convert(const char *const *paths, int32_t count,
                                const tp_record_options *records, const tp_make_options *options,
                                tp_make_result *out_result) TPUCL_MUST_CHECK;

#endif
