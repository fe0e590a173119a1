/* SPDX-License-Identifier: Apache-2.0
 * Checks MXU variants on a device: runs a case of kernel/mxu_cases.h and compares every bit and
 * every guard byte. The kernel tests and `tpucl verify` call this.
 */
#ifndef TP_TUNE_MXU_CHECK_H
#define TP_TUNE_MXU_CHECK_H

#include "device/device.h"
#include "kernel/mxu_cases.h"

typedef enum tp_mxu_verdict {
    TP_MXU_PASSED, /* every bit */
    TP_MXU_CLOSE,  /* fast math: within rounding */
    TP_MXU_WRONG,  /* other bits (fast math: beyond rounding), or a byte elsewhere changed */
    TP_MXU_SKIPPED /* the variant declines the case */
} tp_mxu_verdict;

/* Runs `row` by `variant` as planned for `caps` (usually tp_device_get_caps(); tests describe other
 * devices). The text (256 bytes) says what was wrong, or why it was skipped; "" when it passed.
 * Fails only when the check itself could not be made: no memory, a kernel that does not build or
 * run. */
tpucl_status tp_mxu_check(tp_device *device, const tp_device_caps *caps, const tp_mxu_case *row,
                          const char *variant, tp_mxu_verdict *out_verdict, char out_text[256]);

/* The same with settings that come from outside instead of the variant's own. */
tpucl_status tp_mxu_check_choice(tp_device *device, const tp_mxu_case *row,
                                 const tp_mxu_choice *choice, tp_mxu_verdict *out_verdict,
                                 char out_text[256]);

#endif
