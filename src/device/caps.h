/* SPDX-License-Identifier: Apache-2.0
 * Asks an OpenCL device what it can do and fills in tp_device_caps. Private to src/device. */
#ifndef TP_DEVICE_CAPS_H
#define TP_DEVICE_CAPS_H

#include "device/cl_api.h"
#include "topo/device_caps.h"

/* Required answers that are missing or absurd (no name, no memory) are TPUCL_DEVICE_ERROR; optional
 * ones keep their zero. `platform_name` is copied. */
tpucl_status tp_caps_read(const tp_cl_api *cl, cl_device_id id, const char *platform_name,
                          tp_device_caps *out_caps);

/* Why tpucl cannot use such a device ("OpenCL 1.1, needs 1.2"), or NULL when it can. `buffer` holds
 * the text. */
const char *tp_caps_unusable(const tp_cl_api *cl, cl_device_id id, const tp_device_caps *caps,
                             char *buffer, size_t buffer_bytes);

/* True when `name` is one of the space-separated words of `list`: extension names may be prefixes
 * of others. */
bool tp_caps_has_word(const char *list, const char *name);

/* What a matrix unit is told by. */
typedef struct tp_unit_signs {
    const char *vendor, *name, *extensions; /* as the driver says */
    uint32_t compute_capability;            /* NVIDIA's, its major number; 0 from other drivers */
    uint32_t subgroup_sizes;                /* as in tp_device_caps */
} tp_unit_signs;

/* What it says is only that a kernel with the unit's instruction may be tried: it is used when it has shown that
 * it multiplies. */
tp_matrix_unit tp_caps_matrix_unit(const tp_unit_signs *signs);
const char *tp_matrix_unit_name(tp_matrix_unit unit); /* "" for none */

/* Reads "OpenCL 1.2 vendor text" / "OpenCL C 1.2 ..."; false when it is not of that form. */
bool tp_caps_parse_version(const char *text, int *out_major, int *out_minor);

#endif
