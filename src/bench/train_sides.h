/* SPDX-License-Identifier: Apache-2.0
 * One way of training a shipped configuration, made to be run piece by piece in turn with others. */
#ifndef TP_BENCH_TRAIN_SIDES_H
#define TP_BENCH_TRAIN_SIDES_H

#include "core/status.h"
#include "device/program_build.h"

typedef enum tp_train_kind { TP_TRAIN_TPU, TP_TRAIN_K80, TP_TRAIN_CPU } tp_train_kind;
typedef struct tp_train_side tp_train_side;

/* `config`: name of an embedded configuration ("fashion-mlp"). TPUCL_UNSUPPORTED when the library that a kind
 * needs is not there. `building` is told of every program and check of a kernel, also in later calls; may be
 * NULL. */
tpucl_status tp_train_side_create(const char *config, tp_train_kind kind, const char *selector,
                                  tp_build_callback building, void *building_user,
                                  tp_train_side **out_side);
void tp_train_side_destroy(tp_train_side *side);

/* Trains on at least `examples` further examples, whole batches. */
tpucl_status tp_train_side_run(tp_train_side *side, int64_t examples, int64_t *out_examples,
                               double *out_seconds);
/* Share of right answers on the whole test part. */
tpucl_status tp_train_side_accuracy(tp_train_side *side, double *out_accuracy);
/* Of all cores together; found by planning alone. 0: the side has no HBM to fit. */
tpucl_status tp_train_side_largest_batch(tp_train_side *side, int64_t *out_batch);

int64_t tp_train_side_examples_per_epoch(const tp_train_side *side);
const char *
tp_train_side_describe(const tp_train_side *side); /* batch, precision, library; borrowed */
/* Floating-point operations of the products that one example takes; 0 for the CPU side, whose graph is the
 * same as TPU-like's. */
double tp_train_side_flops_per_example(const tp_train_side *side);

#endif
