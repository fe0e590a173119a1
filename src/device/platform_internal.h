/* SPDX-License-Identifier: Apache-2.0
 * The device list's insides, shared by platform.c (fills it), select.c (searches it) and device.c
 * (opens what is in it). */
#ifndef TP_DEVICE_PLATFORM_INTERNAL_H
#define TP_DEVICE_PLATFORM_INTERNAL_H

#include "core/array.h"
#include "device/cl_api.h"
#include "device/platform.h"

typedef struct tp_listed_device {
    tp_device_entry entry;
    cl_device_id id; /* NULL when the driver gave none */
} tp_listed_device;

TP_ARRAY_DEFINE(tp_listed_devices, tp_listed_device)
TP_ARRAY_DEFINE(tp_notes, char *)

struct tp_device_list {
    tp_listed_devices devices;
    tp_notes notes;
};

/* NULL when out of range. */
const tp_listed_device *tp_device_list_item(const tp_device_list *list, uint32_t index);

#endif
