/* SPDX-License-Identifier: Apache-2.0
 * One MXU case with one variant on one device: the check of tune/, with a device's failure as an outcome. */
#include <stdio.h>
#include "tune/mxu_check.h"
#include "verify/check.h"

tpucl_status tp_check_mxu_case(tp_device *device, const char *variant, const tp_mxu_case *row,
                               tp_check_outcome *out_outcome)
{
    tp_mxu_verdict verdict = TP_MXU_WRONG;
    char text[256] = "";
    *out_outcome = (tp_check_outcome){.status = TP_CHECK_FAILED};
    tpucl_status status =
        tp_mxu_check(device, tp_device_get_caps(device), row, variant, &verdict, text);
    if (status == TPUCL_OUT_OF_MEMORY) return status;
    if (status != TPUCL_OK) { /* it does not build or run here */
        out_outcome->is_temporary = status == TPUCL_OUT_OF_DEVICE_MEMORY;
        snprintf(out_outcome->reason, sizeof out_outcome->reason, "%.380s",
                 tpucl_last_error()->message);
        return TPUCL_OK;
    }
    snprintf(out_outcome->reason, sizeof out_outcome->reason, "%s", text);
    if (verdict == TP_MXU_PASSED || verdict == TP_MXU_CLOSE) out_outcome->status = TP_CHECK_PASSED;
    out_outcome->is_close = verdict == TP_MXU_CLOSE;
    if (verdict == TP_MXU_SKIPPED) out_outcome->status = TP_CHECK_SKIPPED;
    return TPUCL_OK;
}
