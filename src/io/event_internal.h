/* SPDX-License-Identifier: Apache-2.0
 * Event files: names, the first record, and where there are no files that grow. */
#ifndef TP_IO_EVENT_INTERNAL_H
#define TP_IO_EVENT_INTERNAL_H

#include "core/arena.h"
#include "io/event_file.h"
#include "io/store.h"

/* Seconds since 1970, but behind every file that is there already: files are read in the order of their names, and
 * clocks are set back now and then. */
tpucl_status tp_event_choose_seconds(const char *folder, tp_arena *arena,
                                     int64_t *out_seconds) TPUCL_MUST_CHECK;
/* In `arena`; NULL when memory fails. */
const char *tp_event_path(const char *folder, int64_t seconds, int counter, tp_arena *arena);
/* Appends the record that every file begins with. */
tpucl_status tp_event_put_version(tp_str_builder *records) TPUCL_MUST_CHECK;

/* Zero is the default of each. */
typedef struct tp_event_store_options {
    uint64_t pause_ns; /* from one put to the next; 30 s */
    size_t roll_bytes; /* an object that is longer is not put again, a new one follows; 8 MiB */
    size_t most_bytes; /* that wait while a put takes its time; what is beyond is dropped; 16 MiB */
    tp_store_options store;
} tp_event_store_options;

/* Objects cannot be appended to: a thread puts all of an object again, at most every `pause_ns` and when it is
 * committed, and readers go on where they were, as its first bytes stay what they are. Writes are whole records and
 * never wait for the store; they fail once a put has failed for good. Memory: an object, twice most_bytes, and
 * a part of an upload. */
tpucl_status tp_event_store_open(const char *folder, const tp_event_store_options *options,
                                 tp_writer **out_writer) TPUCL_MUST_CHECK;

#endif
