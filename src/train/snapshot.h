/* SPDX-License-Identifier: Apache-2.0
 * A training between two steps, copied to the host: all that is needed to go on bit for bit. What a checkpoint
 * (io/checkpoint.h) holds:
 *
 *   part "params"   the model's variables of replica group 0, as in params.safetensors of a run
 *   part "state"    the optimizer's slots; variables of the other groups as "group/<g>/<name>"; and "train/sums",
 *                   bytes: the sums of the epoch so far as f64, little-endian: loss, weight, correct, metrics
 *   state           the configuration, the position in the epoch, the epochs' records
 *
 * Nothing else changes from step to step: order of the data, dropout and the schedule are functions of the seed
 * and the step.
 */
#ifndef TP_TRAIN_SNAPSHOT_H
#define TP_TRAIN_SNAPSHOT_H

#include "io/checkpoint.h"
#include "train/session.h"

typedef struct tp_snapshot {
    tp_arena *arena; /* owns all of it */
    int64_t step;
    tp_checkpoint_part parts[2];
    char *state; /* tp_free */
} tp_snapshot;

/* The figure by which the best checkpoint is told; name "": there is none. */
typedef struct tp_snapshot_monitor {
    const char *name;
    double value;
} tp_snapshot_monitor;

/* Waits for the work in flight. The session may go on afterwards. */
tpucl_status tp_snapshot_take(tp_session *session, const tp_snapshot_monitor *monitor,
                              tp_snapshot **out_snapshot) TPUCL_MUST_CHECK;
/* Accepts NULL. */
void tp_snapshot_destroy(tp_snapshot *snapshot);

/* Puts a session where the checkpoint's training was. All differences in variables and in what the position means
 * (batch, number of examples, seed, groups) are listed at once, TPUCL_INVALID_CONFIG, and nothing is changed. */
tpucl_status tp_snapshot_restore(tp_session *session,
                                 const tp_checkpoint *checkpoint) TPUCL_MUST_CHECK;

#endif
