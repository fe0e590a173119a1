/* SPDX-License-Identifier: Apache-2.0
 * Event files, which TensorBoard reads while they grow: TFRecords of Event messages (TensorBoard,
 * compat/proto/event.proto). One folder is one run, and one writer at a time writes to it.
 *
 * A run that goes on after an end writes a new file, whose name sorts behind the others', and says from which step
 * on it goes on: TensorBoard then forgets what the other files hold of later steps. In a bucket, where nothing can be
 * appended, a thread replaces the object now and then, and goes on with another when it is long (event_internal.h).
 * Thread-compatible.
 */
#ifndef TP_IO_EVENT_FILE_H
#define TP_IO_EVENT_FILE_H

#include "core/str.h"
#include "io/stream.h"

typedef struct tp_event_file tp_event_file;

/* A new file in `folder`, which is made when it does not exist. `first_step`: the first that will be written, 0 for
 * a new run; what other files of the folder hold from there on is out of date. TensorBoard takes the first START of
 * a run for its beginning and each later one for a restart, so every file has one. */
tpucl_status tp_event_file_open(const char *folder, int64_t first_step,
                                tp_event_file **out_file) TPUCL_MUST_CHECK;
/* Into any stream, which is taken over, also when it fails. */
tpucl_status tp_event_file_adopt(tp_writer *target, int64_t first_step,
                                 tp_event_file **out_file) TPUCL_MUST_CHECK;

/* The bytes of a Summary (event_summary.h) as of a step. Kept in memory until flush, or until there are many.
 * `wall_seconds`: since 1970. */
tpucl_status tp_event_file_put(tp_event_file *file, double wall_seconds, int64_t step,
                               tp_view summary) TPUCL_MUST_CHECK;
/* What was put is visible to readers. After a failure nothing of an event is half there, where the stream is a
 * file, and the events are still kept: flush may be called again. */
tpucl_status tp_event_file_flush(tp_event_file *file) TPUCL_MUST_CHECK;
/* Borrowed; in a bucket the folder's. */
const char *tp_event_file_name(const tp_event_file *file);
/* Flushes, syncs, frees in every case. */
tpucl_status tp_event_file_close(tp_event_file *file) TPUCL_MUST_CHECK;
/* Frees; what was not flushed is lost. Accepts NULL. */
void tp_event_file_abandon(tp_event_file *file);

double tp_event_wall_seconds(void);

#endif
