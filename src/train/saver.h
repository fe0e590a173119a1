/* SPDX-License-Identifier: Apache-2.0
 * Saves checkpoints while a training goes on: the training's thread copies the state between two steps, a thread of
 * the saver's own writes it, keeps the newest and the best, and removes the others. One is written at a time: a
 * second one waits for the first, so memory is that of one copy.
 *
 * A checkpoint that cannot be written is reported in the log and does not end the training; the last one of a
 * training that cannot be written is an error. What was saved before stays as it is in both cases.
 *
 * Threads: thread-compatible.
 */
#ifndef TP_TRAIN_SAVER_H
#define TP_TRAIN_SAVER_H

#include "train/session.h"

typedef struct tp_saver tp_saver;

/* *out_saver NULL: the configuration asks for no checkpoints. Borrows the session. */
tpucl_status tp_saver_create(tp_session *session, tp_saver **out_saver) TPUCL_MUST_CHECK;
/* Waits for what is being written. Accepts NULL, as all of the following do. */
void tp_saver_destroy(tp_saver *saver);

/* Whether one is due after the step that was done last. */
bool tp_saver_is_due(const tp_saver *saver, bool is_end_of_epoch);
/* Between two steps, all results read. `epoch`: of the epoch that has just ended, for the best; NULL within one. */
void tp_saver_save(tp_saver *saver, const tp_session_epoch *epoch);
/* At the end, or when the training was stopped: saves the last step unless it is saved, waits, and reports it. */
tpucl_status tp_saver_finish(tp_saver *saver) TPUCL_MUST_CHECK;

#endif
