/* SPDX-License-Identifier: Apache-2.0
 * Cold caches: memory much larger than they are is written before what is measured runs. */
#ifndef TP_BENCH_COLD_H
#define TP_BENCH_COLD_H

#include "core/status.h"
#include "device/device.h"

typedef struct tp_cold tp_cold;

tpucl_status tp_cold_create(tp_device *device, tp_cold **out_cold) TPUCL_MUST_CHECK;
void tp_cold_destroy(tp_cold *cold);
/* Returns when the caches hold nothing else. `user` is a tp_cold: the `before` of a tp_bench_side. */
tpucl_status tp_cold_sweep(void *user) TPUCL_MUST_CHECK;

#endif
