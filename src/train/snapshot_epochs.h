/* SPDX-License-Identifier: Apache-2.0
 * Epochs' records as JSON and back: part of a checkpoint's state. */
#ifndef TP_TRAIN_SNAPSHOT_EPOCHS_H
#define TP_TRAIN_SNAPSHOT_EPOCHS_H

#include "core/json.h"
#include "core/json_write.h"
#include "train/session_internal.h"

/* An array; figures that are no numbers are null. */
void tp_snapshot_write_epochs(tp_json_writer *writer, const tp_session *session);
/* `metric_count`: of the session; other counts are refused. */
tpucl_status tp_snapshot_read_epochs(const tp_json *array, int32_t metric_count,
                                     tp_session_epoch_list *out_epochs) TPUCL_MUST_CHECK;

#endif
