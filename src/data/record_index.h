/* SPDX-License-Identifier: Apache-2.0
 * Where every record of some files lies, so that any of them can be read at any time from any thread.
 * TFRecord files have no index: making one reads all lengths once, and what is compressed or does not lie
 * on this machine is kept in memory.
 *
 * Records are numbered in the order in which tf.data's deterministic interleave visits them: `cycle_length`
 * files are open at once and give `block_length` records in turn; where one ends, the next file takes its
 * place. Thread-safe once opened. */
#ifndef TP_DATA_RECORD_INDEX_H
#define TP_DATA_RECORD_INDEX_H

#include "core/str.h"
#include "io/tfrecord.h"

typedef struct tp_record_index tp_record_index;

typedef struct tp_record_index_options {
    tp_record_policy policy; /* of faults found now: what follows a wrong length is lost */
    int64_t cycle_length, block_length; /* 0: 1 */
    uint64_t resident_bytes;            /* at most, of files kept in memory */
} tp_record_index_options;

typedef struct tp_record_buffer { /* of one thread; zeroed at first */
    uint8_t *bytes;
    size_t capacity;
} tp_record_buffer;

/* TPUCL_NOT_FOUND when the files hold no record at all; TPUCL_OUT_OF_MEMORY names the key that allows
 * more. */
tpucl_status tp_record_index_open(const char *const *paths, int32_t count,
                                  const tp_record_index_options *options,
                                  tp_record_index **out_index) TPUCL_MUST_CHECK;
/* Accepts NULL. */
void tp_record_index_close(tp_record_index *index);
int64_t tp_record_index_count(const tp_record_index *index);
/* Files that ended early under TP_RECORD_SKIP. */
int64_t tp_record_index_faults(const tp_record_index *index);

/* Contents of a record, checked; in the buffer until its next use, or in the index. TPUCL_CORRUPT_DATA
 * names file and offset. */
tpucl_status tp_record_index_read(const tp_record_index *index, int64_t record,
                                  tp_record_buffer *buffer, tp_view *out_record) TPUCL_MUST_CHECK;
void tp_record_buffer_deinit(tp_record_buffer *buffer);
/* For messages: path, and where the record's length stands. */
void tp_record_index_locate(const tp_record_index *index, int64_t record, const char **out_path,
                            uint64_t *out_offset);

#endif
