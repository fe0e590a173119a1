/* SPDX-License-Identifier: Apache-2.0
 * What the opaque types of the public headers really are, and the conversions that all of api/
 * uses. api/ is thin: it checks arguments, converts, and calls down. */
#ifndef TP_API_HANDLES_H
#define TP_API_HANDLES_H

#include <string.h>
#include <tpucl/tools.h>
#include <tpucl/tpucl.h>
#include "core/json_write.h"
#include "core/status.h"
#include "device/platform.h"
#include "num/dtype.h"
#include "num/shape.h"

/* Refuses a NULL argument by its name. */
#define TP_API_NEED(argument)                                                                      \
    do {                                                                                           \
        if (!(argument)) return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' is NULL", #argument);        \
    } while (0)

/* Copies an options struct of the caller (NULL: all defaults) into `out`, which is `out_bytes` long
 * and may be longer or shorter than the caller's version of it. */
tpucl_status tp_api_options(const void *options, void *out, size_t out_bytes,
                            const char *type_name) TPUCL_MUST_CHECK;
#define TP_API_OPTIONS(options, out, type) tp_api_options((options), (out), sizeof(type), #type)

tpucl_status tp_api_dtype(tpucl_dtype dtype, tp_dtype *out_dtype) TPUCL_MUST_CHECK;
tpucl_dtype tp_api_dtype_public(tp_dtype dtype);
tpucl_status tp_api_shape(tpucl_shape shape, tp_shape *out_shape) TPUCL_MUST_CHECK;
tpucl_shape tp_api_shape_public(const tp_shape *shape);

void tp_api_device_info(const char *selector, const tp_device_caps *caps, bool usable,
                        const char *reason, tpucl_device_info *out_info);
/* One element of "devices" in docs/json.md. */
void tp_api_write_device(tp_json_writer *writer, const tpucl_device_info *info);
/* Opens the object of a report on one device: versions and device; the caller goes on and ends it. */
void tp_api_begin_report(tp_json_writer *writer, const tpucl_device_info *device);
/* One element of "findings" there. */
void tp_api_write_finding(tp_json_writer *writer, const tpucl_finding *finding);

#endif
