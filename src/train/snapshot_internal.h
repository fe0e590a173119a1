/* SPDX-License-Identifier: Apache-2.0
 * Names that taking and restoring snapshots share. */
#ifndef TP_TRAIN_SNAPSHOT_INTERNAL_H
#define TP_TRAIN_SNAPSHOT_INTERNAL_H

#include "core/arena.h"

enum { TP_SNAPSHOT_SUMS = 3 }; /* loss, weight, correct; those of metrics follow */
#define TP_SNAPSHOT_SUMS_NAME "train/sums"

/* Of a variable of a replica group, in `arena`; NULL when memory fails. */
const char *tp_snapshot_name(tp_arena *arena, const char *variable, int32_t group);

#endif
