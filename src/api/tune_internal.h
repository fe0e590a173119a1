/* SPDX-License-Identifier: Apache-2.0
 * What tpucl_tune and tpucl_why share: a device with its caches. */
#ifndef TP_API_TUNE_INTERNAL_H
#define TP_API_TUNE_INTERNAL_H

#include <tpucl/tune.h>
#include "api/handles.h"
#include "verify/verdicts.h"

typedef struct tp_api_tune_device {
    tp_program_cache *cache; /* NULL when there is no folder for it */
    tp_device *device;
    tp_verdicts *verdicts;
} tp_api_tune_device;

/* What the selector means; of several equal sub-devices the first. */
tpucl_status tp_api_tune_open(const char *selector, tp_api_tune_device *out_device);
/* Accepts what was never opened (zeroed). */
void tp_api_tune_close(tp_api_tune_device *device);

#endif
