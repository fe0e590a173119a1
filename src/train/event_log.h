/* SPDX-License-Identifier: Apache-2.0
 * A training's scalars for TensorBoard, in Keras' names: LOGS/train and LOGS/validation, two runs beside each other.
 *
 *   batch_loss       every log_every steps, of that step
 *   epoch_loss, epoch_accuracy, epoch_<metric>, epoch_examples_per_second (train)
 *
 * All of them at the number of steps done. Logging never ends a training: the first failure is told of, and no more is
 * written. Thread-compatible; every function accepts NULL, as there is for a training without logs.
 */
#ifndef TP_TRAIN_EVENT_LOG_H
#define TP_TRAIN_EVENT_LOG_H

#include "train/session.h"

typedef struct tp_event_log tp_event_log;

/* NULL: the configuration asks for none, or it cannot be begun. What files of an earlier part of the training hold of
 * steps after the session's is out of date. */
tp_event_log *tp_event_log_open(tp_session *session);
void tp_event_log_step(tp_event_log *log, int64_t step, double loss);
void tp_event_log_epoch(tp_event_log *log, const tp_session_epoch *epoch);
void tp_event_log_close(tp_event_log *log);

#endif
