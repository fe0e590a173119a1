/* SPDX-License-Identifier: Apache-2.0
 * What OpenCL devices there are, and which one a selector means. One enumeration serves `tpucl
 * devices` and every run, so that what is listed is what can be opened.
 *
 * Broken, empty and missing drivers never make it fail: they are left out and a note says why.
 * Platforms are ordered by name, then version, so that selectors do not depend on the loader's
 * order.
 *
 * Selectors
 *   3                     the device at that index of the list
 *   0:1                   device 1 of platform 0
 *   gpu cpu accelerator   devices of that type; the first one where one is wanted
 *   any other text        case-insensitive part of a device's, vendor's or platform's name; must be
 *                         unambiguous where one device is wanted
 *   SELECTOR/n            the same device, split into n equal sub-devices
 *   "" or NULL            TPUCL_DEVICE; without that the first GPU, else accelerator, else CPU
 *
 * Threads: a list is read-only after creation and may be shared.
 */
#ifndef TP_DEVICE_PLATFORM_H
#define TP_DEVICE_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>
#include "core/status.h"
#include "device/quirks.h"
#include "topo/device_caps.h"

/* "gpu", "cpu", "accelerator". */
const char *tp_device_type_name(tp_device_type type);

typedef struct tp_device_entry {
    char selector[24];          /* "0:1" */
    char platform_version[128]; /* as the driver says */
    uint32_t platform_index, device_index;
    tp_device_caps caps;
    tp_quirks quirks;
    bool usable;
    char reason[384]; /* why not, when not usable */
} tp_device_entry;

typedef struct tp_device_list tp_device_list;

/* Enumerates. Succeeds with an empty list and notes when there is no loader, no platform or no
 * device; fails only with TPUCL_OUT_OF_MEMORY. */
tpucl_status tp_device_list_create(tp_device_list **out_list);
void tp_device_list_destroy(tp_device_list *list);

uint32_t tp_device_list_count(const tp_device_list *list);
/* Borrowed; NULL when `index` is out of range. */
const tp_device_entry *tp_device_list_entry(const tp_device_list *list, uint32_t index);

/* What was skipped or odd, one sentence each ("platform 'Clover' has no devices"). Borrowed. */
uint32_t tp_device_list_note_count(const tp_device_list *list);
const char *tp_device_list_note(const tp_device_list *list, uint32_t index);

typedef struct tp_device_choice {
    uint32_t index; /* into the list */
    uint32_t split; /* number of equal sub-devices, 1: the whole device */
} tp_device_choice;

/* The one device that `selector` means. TPUCL_NO_DEVICE when none matches, several do, or it is not
 * usable: the message lists what there is. TPUCL_INVALID_ARGUMENT for a malformed selector. */
tpucl_status tp_device_list_select(const tp_device_list *list, const char *selector,
                                   tp_device_choice *out_choice);

/* All usable devices that `selector` matches, in list order; `out_indices` has room for
 * tp_device_list_count(). Same failures; a text that matches several devices is fine here. */
tpucl_status tp_device_list_select_all(const tp_device_list *list, const char *selector,
                                       uint32_t *out_indices, uint32_t *out_count,
                                       uint32_t *out_split);

#endif
