/* SPDX-License-Identifier: Apache-2.0
 * What event files hold: their tags, over all files given, as TensorBoard would show them but for restarts.
 * Files are hostile: faults of framing and sums stop the file they are in. */
#ifndef TP_IO_EVENT_SCAN_H
#define TP_IO_EVENT_SCAN_H

#include "core/arena.h"
#include "io/stream.h"

typedef struct tp_event_tag {
    const char *tag;
    const char
        *plugin; /* "scalars", "images", "histograms", "text", "hparams"; "" when it is not said */
    uint64_t values, bytes;
    int64_t first_step, last_step;
    bool is_scalar; /* last_value holds the one of the last event */
    double last_value;
} tp_event_tag;

typedef struct tp_event_scan {
    tp_arena *arena; /* owns what the tags point to */
    tp_event_tag *tags;
    size_t tag_count, tag_capacity;
    uint64_t events, starts; /* of sessions: one more than restarts */
} tp_event_scan;

/* Is it a file of events: is its first record one with a file_version? Takes `source` over. False also when it cannot
 * be read. */
bool tp_event_scan_is_events(tp_reader *source);
/* Adds the events of one file, whose name is for messages; takes `source` over. On TPUCL_CORRUPT_DATA what came before the fault is counted. */
tpucl_status tp_event_scan_add(tp_event_scan *scan, tp_reader *source,
                               const char *name) TPUCL_MUST_CHECK;

#endif
