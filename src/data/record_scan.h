/* SPDX-License-Identifier: Apache-2.0
 * Reads files of records to the end and says what is in them. */
#ifndef TP_DATA_RECORD_SCAN_H
#define TP_DATA_RECORD_SCAN_H

#include "core/arena.h"
#include "core/map.h"
#include "io/example.h"
#include "io/tfrecord.h"

typedef struct tp_scan_options {
    tp_record_options records;
    bool with_features;    /* parses Examples and collects their features */
    int64_t feature_limit; /* only so many records of each file are parsed; 0: all */
    /* Bytes read of all; false stops: TPUCL_INTERRUPTED. May be NULL. */
    bool (*progress)(void *user, uint64_t done_bytes, uint64_t total_bytes);
    void *user;
} tp_scan_options;

typedef struct tp_scan_file {
    const char *path;
    tp_compression compression;
    uint64_t file_bytes;
    tp_record_counts counts;
    const char *fault; /* the first one, or NULL */
} tp_scan_file;

typedef struct tp_scan_feature {
    const char *key;
    tp_feature_kind kind; /* of the first */
    bool is_mixed;        /* others have another kind */
    int64_t records;      /* that hold it */
    int64_t min_count, max_count;
    uint64_t bytes;           /* of bytes, all together */
    tp_feature_values sample; /* of the first record; copied, long bytes cut */
} tp_scan_feature;

enum { TP_SCAN_SAMPLE_BYTES = 64, TP_SCAN_SAMPLE_VALUES = 4, TP_SCAN_MAX_FEATURES = 4096 };

typedef struct tp_scan {
    tp_arena *arena;
    tp_scan_file *files;
    int32_t file_count;
    tp_scan_feature *features; /* by key */
    int32_t feature_count;
    int64_t parsed;       /* records that were looked into */
    int64_t not_examples; /* of these: no Examples */
    tp_record_counts total;
} tp_scan;

/* A fault of a file does not end the scan: it is in `fault`, and in the counts. What cannot be opened or read at all
 * does. `paths` are files, borrowed. */
tpucl_status tp_scan_records(const char *const *paths, int32_t count,
                             const tp_scan_options *options, tp_scan **out_scan) TPUCL_MUST_CHECK;
/* Accepts NULL. */
void tp_scan_destroy(tp_scan *scan);

#endif
