/* SPDX-License-Identifier: Apache-2.0
 * Second tier: files of records (TFRecord) of tf.Examples: looking into them, making and rewriting them
 * (docs/formats.md). May change in a minor version. */
#ifndef TPUCL_RECORDS_H
#define TPUCL_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tpucl/export.h>
#include <tpucl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading ---- */

typedef struct tpucl_records_options {
    size_t struct_size;
    const char *const *paths; /* files, folders, patterns ("train-*") */
    int32_t path_count;
    const char *compression;   /* "auto" (default), "none", "gzip", "zlib" */
    bool unchecked;            /* leave out the checksums over contents */
    bool with_features;        /* look into the Examples */
    int64_t feature_limit;     /* of so many records of each file; 0: all */
    uint64_t max_record_bytes; /* default 1 GiB */
    /* Called as work goes on; false stops it: TPUCL_INTERRUPTED. May be NULL. */
    bool (*progress)(void *user, uint64_t done_bytes, uint64_t total_bytes);
    void *user;
} tpucl_records_options;

static inline tpucl_records_options tpucl_records_options_default(void)
{
    tpucl_records_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

/* All texts are borrowed from the report. */
typedef struct tpucl_records_file {
    const char *path, *compression;
    uint64_t file_bytes;
    uint64_t records, bytes; /* good ones; bytes of their contents */
    uint64_t faults;         /* records left out, or 1 where the file is read no further */
    const char *fault;       /* the first one: what and at which offset; or NULL */
} tpucl_records_file;

typedef struct tpucl_records_feature {
    const char *key, *kind; /* "bytes", "float", "int64", "none", "mixed" */
    int64_t records;        /* that hold it */
    int64_t min_count, max_count;
    uint64_t bytes;     /* of all bytes values */
    const char *sample; /* of the first record, as text */
} tpucl_records_feature;

typedef struct tpucl_records_summary {
    int32_t files, features;
    uint64_t file_bytes, records, bytes, faults;
    int64_t parsed;       /* records that were looked into */
    int64_t not_examples; /* of these, those that are no Examples */
    double seconds;
} tpucl_records_summary;

typedef struct tpucl_records_report tpucl_records_report;

/* Reads all files to their ends. Damaged ones are no failure of the call. TPUCL_NOT_FOUND, TPUCL_IO_ERROR,
 * TPUCL_INVALID_ARGUMENT. The caller destroys the report, which is read-only and so thread-safe. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_records_read(const tpucl_records_options *options,
                                                           tpucl_records_report **out_report);
TPUCL_API void tpucl_records_report_destroy(tpucl_records_report *report);
TPUCL_API const tpucl_records_summary *
tpucl_records_report_summary(const tpucl_records_report *report);
/* `path` is NULL past the end. */
TPUCL_API tpucl_records_file tpucl_records_report_file(const tpucl_records_report *report,
                                                       int32_t index);
/* By key; `key` is NULL past the end. */
TPUCL_API tpucl_records_feature tpucl_records_report_feature(const tpucl_records_report *report,
                                                             int32_t index);
/* As docs/json.md describes it; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status
tpucl_records_report_json(const tpucl_records_report *report, char **out_text);

/* ---- making ---- */

typedef struct tpucl_records_make_options {
    size_t struct_size;
    const char *inputs, *labels; /* two files, IDX or .npy; or `inputs` alone: a folder of images */
    const char *output;          /* "folder/train" for folder/train-00000-of-00008 and so on */
    const char *preset;      /* names of the features: tpucl_records_preset_name; default "tfds" */
    int32_t shards;          /* default 1 */
    const char *compression; /* "none" (default), "gzip", "zlib" */
    int32_t png_level;       /* 1 to 9; default zlib's */
    bool shuffle;            /* by `seed`, all records */
    uint64_t seed;
    bool force; /* replace files that are there and were made of other things */
    /* Called for each record; false stops: TPUCL_INTERRUPTED, complete files stay. May be NULL. */
    bool (*progress)(void *user, int64_t done, int64_t total);
    void *user;
    /* Folders of images: brought to this size and encoded again, as PNG or, with a quality from 1 to 100,
     * as JPEG; both 0: files are taken as they are. */
    int32_t height, width;
    const char *resize;   /* "stretch" (default), "crop" the middle, "pad" with black */
    int32_t jpeg_quality; /* also without a size */
    bool upright;         /* turned as EXIF data say, when they are encoded again */
} tpucl_records_make_options;

static inline tpucl_records_make_options tpucl_records_make_options_default(void)
{
    tpucl_records_make_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

typedef struct tpucl_records_made {
    int64_t records;
    int32_t files;   /* in all */
    int32_t found;   /* of these, complete before */
    int32_t classes; /* of a folder of images, or 0 */
    uint64_t bytes;  /* of what was written now, on disk */
    double seconds;
} tpucl_records_made;

/* Goes on where the same work was stopped. Classes of a folder of images are written to OUTPUT.labels.txt. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status
tpucl_records_make(const tpucl_records_make_options *options, tpucl_records_made *out_made);

/* The records of `from`, in their order, in other files: output, shards, compression, force and progress of
 * `to` count. `skip_faults` leaves damaged records out; else they are TPUCL_CORRUPT_DATA. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_records_convert(const tpucl_records_options *from,
                                                              bool skip_faults,
                                                              const tpucl_records_make_options *to,
                                                              tpucl_records_made *out_made);

/* As docs/json.md describes it; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_records_made_json(const tpucl_records_made *made,
                                                                char **out_text);

/* NULL past the end. Static. */
TPUCL_API const char *tpucl_records_preset_name(int32_t index);
TPUCL_API const char *tpucl_records_preset_about(int32_t index);

#ifdef __cplusplus
}
#endif

#endif
