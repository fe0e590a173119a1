/* SPDX-License-Identifier: Apache-2.0
 * Files of records as a source: Examples decoded by a specification of features. Nothing is kept of them
 * but where they lie and, as far as `cache_bytes` goes, what was decoded. */
#ifndef TP_DATA_SOURCE_RECORDS_H
#define TP_DATA_SOURCE_RECORDS_H

#include "data/image_read.h"
#include "data/record_index.h"
#include "data/record_preset.h"
#include "data/source.h"

typedef enum tp_record_field_kind {
    TP_RECORD_IMAGE, /* an encoded image: u8 [height, width, channels] */
    TP_RECORD_BYTES, /* bare samples: u8 */
    TP_RECORD_FLOAT, /* f32 */
    TP_RECORD_INT    /* s32, `offset` added */
} tp_record_field_kind;

typedef struct tp_record_field {
    const char *name, *key; /* of the field, of the feature */
    tp_record_field_kind kind;
    tp_shape shape; /* of one example; not of images */
    int64_t offset;
} tp_record_field;

typedef struct tp_record_source_options {
    const char *const *paths; /* files, in order */
    int32_t path_count;
    tp_record_index_options index;
    tp_record_field fields[TP_SOURCE_MAX_FIELDS]; /* inputs, then labels */
    int32_t field_count, label_count;
    tp_image_options image;
    uint64_t cache_bytes; /* of decoded examples, first come, first kept; 0: none */
} tp_record_source_options;

/* "KEY KIND", "KEY KIND[2,3]", "KEY int +1": kinds are image, bytes, float, int. `out_field` borrows the
 * key from `arena`. TPUCL_INVALID_CONFIG with what was expected. */
tpucl_status tp_record_field_parse(const char *text, tp_arena *arena,
                                   tp_record_field *out_field) TPUCL_MUST_CHECK;
/* Fields "image" and "label" of a preset. Bare samples take their shape from the first record. */
void tp_record_source_use_preset(const tp_record_preset *preset, tp_record_source_options *options);

/* Options are copied. Damaged records are left out or a failure, as the policy says; a record that lacks a
 * feature is a failure always, since that is mostly the wrong specification. */
tpucl_status tp_source_open_records(const tp_record_source_options *options,
                                    tp_source **out_source) TPUCL_MUST_CHECK;

#endif
