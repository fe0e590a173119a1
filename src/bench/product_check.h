/* SPDX-License-Identifier: Apache-2.0
 * Whether a product that is about to be timed is right: some of its elements against the contract's, by
 * bits, worked out from the operands by the definitions in kernel/mxu.h. */
#ifndef TP_BENCH_PRODUCT_CHECK_H
#define TP_BENCH_PRODUCT_CHECK_H

#include "tune/problem_line.h"
#include "tune/product_timer.h"

/* `timer` has been run for `line` at `precision`. TPUCL_NOT_EXACT names the first element that is wrong. */
tpucl_status tp_bench_check_product(const tp_problem_line *line, tp_precision precision,
                                    tp_product_timer *timer) TPUCL_MUST_CHECK;

#endif
