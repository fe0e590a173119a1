/* SPDX-License-Identifier: Apache-2.0
 * Looks for the fastest choice (kernel/mxu_choice.h) for products on a device, and keeps what it found
 * as records (kernel/records.h).
 *
 * For each product and each variant of the search space: from the settings that heuristics make, one
 * knob after the other takes all values of the table, and keeps the one with the best time (coordinate
 * descent, at most two rounds through the knobs). A candidate is proven before it is timed: on small
 * products like it against the definition (`prove`), then by the bits of the whole product against those of
 * the heuristics' plan. One that is wrong is never timed. What wins is timed again, in alternation with
 * the heuristics' plan.
 *
 * Thread-compatible; `should_stop` may look at what a signal handler sets.
 */
#ifndef TP_TUNE_TUNER_H
#define TP_TUNE_TUNER_H

#include "device/device.h"
#include "kernel/records.h"

typedef struct tp_tune_problem {
    tp_mxu_problem problem; /* without epilogue */
    const char *key;        /* tp_mxu_key_print */
    int64_t uses;           /* how often it is in what is tuned */
    int32_t cores;          /* in a wave */
} tp_tune_problem;
TP_ARRAY_DEFINE(tp_tune_problems, tp_tune_problem)

/* Adds a product, or one more use of one that is there already; keys live in `arena`. Products of
 * nothing are left out. */
tpucl_status tp_tune_problems_add(tp_tune_problems *problems, const tp_mxu_problem *problem,
                                  int64_t uses, int32_t cores, tp_arena *arena);

typedef enum tp_tune_state {
    TP_TUNE_BETTER,  /* a record with something faster than heuristics */
    TP_TUNE_DEFAULT, /* a record: heuristics are best */
    TP_TUNE_KNOWN,   /* has a record for this device, driver and version already */
    TP_TUNE_LEFT,    /* time was up, or it was stopped */
    TP_TUNE_FAILED   /* `text` says why; the others went on */
} tp_tune_state;
const char *
tp_tune_state_name(tp_tune_state state); /* "better", "default", "known", "left", "failed" */

typedef struct tp_tune_wrong {
    const char *choice, *reason; /* what was tried, and what was wrong with it */
} tp_tune_wrong;
TP_ARRAY_DEFINE(tp_tune_wrongs, tp_tune_wrong)

typedef struct tp_tune_result {
    const tp_tune_problem *problem;
    tp_tune_state state;
    tp_mxu_record record; /* of TP_TUNE_BETTER, DEFAULT and KNOWN */
    int32_t timed;        /* candidates that were timed */
    tp_tune_wrongs wrong; /* texts in the arena */
    double seconds;       /* spent on it */
    const char *text;     /* of TP_TUNE_FAILED, else "" */
} tp_tune_result;

/* While product `index` of `count` is looked at; `share` of it is done. */
typedef struct tp_tune_progress {
    int32_t index, count;
    double share; /* 0 to 1, an estimate */
    const char *key;
    double best_ratio; /* so far, 1 is the heuristics' */
} tp_tune_progress;

typedef struct tp_tuner {
    tp_device *device;
    tp_arena *arena;
    const tp_mxu_allow *allow; /* variants that may run; without records */
    /* Whether the choice has the reference's bits here; the text is as in tune/neighbour.h. */
    tpucl_status (*prove)(void *user, const tp_mxu_problem *problem, const tp_mxu_choice *choice,
                          bool *out_is_right, char out_text[256]);
    void *prove_user;
    const char *folder; /* of the records' file; made if need be */
    double seconds;     /* 0: no limit. Shared out evenly over what is left to do */
    int32_t rounds;     /* of the last comparison, at least 3 */
    bool again;         /* what has a record, too */
    /* Processor time of this process instead of the clock's: what others on the machine do hardly shows
     * in it, nor does how evenly work is shared out, so that GROUPS_PER_UNIT is left alone. For CPU devices. */
    bool counts_processor_time;
    void (*progress)(void *user, const tp_tune_progress *progress); /* may be NULL */
    bool (*should_stop)(void *user);                                /* may be NULL */
    void *user;
} tp_tuner;

/* One result for each problem, all set, whatever this returns; the caller deinits them. Records are on disk
 * when `progress` tells of the next problem. Fails when records cannot be written, or memory is out. */
tpucl_status tp_tuner_run(const tp_tuner *tuner, const tp_tune_problems *problems,
                          tp_tune_result *out_results);
void tp_tune_result_deinit(tp_tune_result *result);

/* The file that a tuner writes: "<folder>/<device class>.json". NULL when memory fails. */
const char *tp_tuner_path(const tp_tuner *tuner);

/* ---- inside tune/: one product ---- */
tpucl_status tp_tune_search(const tp_tuner *tuner, const tp_tune_problem *problem,
                            uint64_t deadline_ns, const tp_tune_progress *progress,
                            tp_tune_result *inout_result);

#endif
