/* SPDX-License-Identifier: Apache-2.0
 * Planning a session's steps by compiling alone: what a batch takes, the largest that fits, and what is said of one
 * that does not. Nothing is allocated on devices. With a device, programs are those that training on it would run;
 * without, those of a common CPU.
 */
#ifndef TP_TRAIN_SESSION_PLAN_H
#define TP_TRAIN_SESSION_PLAN_H

#include "core/array.h"
#include "plan/memory.h"
#include "train/session.h"

/* A step of one batch. */
typedef struct tp_session_plan {
    int64_t per_core_batch;
    tp_program
        *program; /* of the first device; NULL: nobody can count that far, or allocate that much */
    tp_memory_plan *memory; /* NULL with `program` */
    bool fits_hbm;
    bool has_device,
        fits_device;         /* all devices of the placement have room for one core at a time */
    tp_forecast device;      /* the first one's; with the evaluation when there is a test part */
    uint64_t evaluate_bytes; /* of that, the evaluation's; 0: there is none */
} tp_session_plan;

/* `with_evaluation`: its program is compiled, too. */
tpucl_status tp_session_plan_batch(const tp_session *session, int64_t per_core_batch,
                                   bool with_evaluation, tp_session_plan *out_plan);
void tp_session_plan_deinit(tp_session_plan *plan);

/* What multiples a batch should have. Cloud TPU performance guide: the batch of a core is a multiple of 8 where
 * features come in multiples of 128, else of 128; below 128 examples a multiple of 8 is the best there is.
 * Topologies without tiles have no rule, 8 is taken there, too. */
typedef struct tp_batch_limit {
    int64_t largest; /* that fits; 0: not even one example does */
    int64_t step;    /* the next one that is tried: largest + step does not fit */
    int64_t bound;   /* above which nothing was tried */
} tp_batch_limit;

/* What was tried already: the larger view's bytes without the reserve, UINT64_MAX where nothing could be compiled.
 * The same for all topologies with as many cores, the same math and tiles. */
typedef struct tp_batch_try {
    int64_t batch;
    uint64_t bytes;
} tp_batch_try;
TP_ARRAY_DEFINE(tp_batch_tries, tp_batch_try)

/* `needs_device`: it must fit the devices, too, not only the topology's HBM. `most`: an upper bound, 0: the largest
 * that a configuration may have. A topology that does not say how much HBM there is has its devices' memory;
 * TPUCL_UNSUPPORTED without devices. `inout_tries`: read and added to; NULL: none, and with needs_device not used. */
tpucl_status tp_session_find_batch(const tp_session *session, bool needs_device, int64_t most,
                                   tp_batch_tries *inout_tries, tp_batch_limit *out_limit);

/* For "batch": "auto": the largest that fits HBM and devices, but no more than one batch for all the data; becomes the
 * configuration's. TPUCL_OUT_OF_DEVICE_MEMORY when not even one example does. */
tpucl_status tp_session_choose_batch(tp_session *session);

/* TPUCL_OUT_OF_DEVICE_MEMORY with all numbers and what helps, when the session's own batch does not fit a core's
 * HBM. `program`: compiled for that batch. */
tpucl_status tp_session_check_hbm(const tp_session *session, const tp_program *program);

#endif
