/* SPDX-License-Identifier: Apache-2.0
 * `tpucl verify`: every MXU variant on every case, and every graph of graph_cases.h, on one device. */
#ifndef TP_VERIFY_VERIFY_H
#define TP_VERIFY_VERIFY_H

#include "core/arena.h"
#include "verify/check.h"

typedef struct tp_verify_check {
    const char *name;    /* of the case */
    const char *variant; /* "mxu_register", "generated" for graphs */
    tp_check_outcome outcome;
    double seconds;
} tp_verify_check;

typedef struct tp_verify_options {
    bool quick;          /* leave out the cases that take long */
    const char *variant; /* only this variant ("generated": only graphs); NULL: all */
    /* Called after each check, with how many there are in all. May be NULL. */
    void (*progress)(void *user, const tp_verify_check *check, int32_t done, int32_t total);
    void *user;
} tp_verify_options;

typedef struct tp_verify_report {
    const tp_verify_check *checks;
    int32_t check_count, passed, failed, skipped;
    bool is_exact; /* a variant was found for every kind of product, and all graphs agree */
} tp_verify_report;

/* The report lives in `arena`. Failing checks are no failure of the call. */
tpucl_status tp_verify_run(tp_device *device, const tp_verify_options *options, tp_arena *arena,
                           tp_verify_report *out_report);

#endif
