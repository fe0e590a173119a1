/* SPDX-License-Identifier: Apache-2.0
 * What a tpucl_trainer holds, and how batches become infeed records. */
#ifndef TP_API_TRAINER_INTERNAL_H
#define TP_API_TRAINER_INTERNAL_H

#include "api/program_internal.h"
#include "exec/executor.h"

struct tpucl_trainer {
    tpucl_program *program;
    tp_executor *executor;
    tp_loaded *train,
        *evaluate; /* NULL until first used; train: also when the graph minimises nothing */
    uint64_t steps;
    tpucl_metric metrics[TP_API_MAX_METRICS]; /* of the result handed out last */
};

/* Sums over examples and steps, in double. */
typedef struct tp_api_sums {
    double weight, metrics[TP_API_MAX_METRICS];
} tp_api_sums;

/* api_feed.c. Checks that the batch brings every input of `inner` with its dtype and shape, and
 * no more examples than a global batch. */
tpucl_status tp_api_feed_check(const tpucl_program *program, const tp_program *inner,
                               const tpucl_batch *batch);
/* Core c gets rows c * B and up; rows behind the examples are zero and have weight 0. */
void tp_api_feed_fill(const tpucl_program *program, const tp_program *inner,
                      const tpucl_batch *batch, const tp_feed *feed);

/* api_dataset.c. True when no batch follows the one handed out last. */
bool tp_api_dataset_at_end(const tpucl_dataset *dataset);
/* Batches from the beginning of an epoch to its end, dropped ones left out. */
int64_t tp_api_dataset_epoch_batches(const tpucl_dataset *dataset);

#endif
