/* SPDX-License-Identifier: Apache-2.0
 * Known driver problems and our answer to each: one row per problem in quirks.c, with its reason
 * and source. A device may match several rows; their effects add up.
 */
#ifndef TP_DEVICE_QUIRKS_H
#define TP_DEVICE_QUIRKS_H

#include <stdbool.h>
#include <stddef.h>
#include "topo/device_caps.h"

typedef enum tp_quirk_effect {
    TP_QUIRK_SKIP = 1 << 0,        /* listed as unusable */
    TP_QUIRK_NOT_DEFAULT = 1 << 1, /* usable, but only when asked for by name or index */
    TP_QUIRK_ONE_LANE = 1 << 2,    /* compute, upload and download share one queue */
    TP_QUIRK_NO_BINARIES = 1 << 3, /* program binaries are not to be trusted: build from source */
    TP_QUIRK_NO_SUB_DEVICES = 1 << 4, /* reports that it can be split but cannot */
    TP_QUIRK_SERIAL_BUILDS = 1 << 5,  /* the compiler is not thread-safe */
    TP_QUIRK_ONE_COMPILER = 1 << 6,   /* compiles for one thread of a process at a time */
    TP_QUIRK_FMA_IS_FAST = 1 << 7     /* though the driver does not say so */
} tp_quirk_effect;

typedef struct tp_quirks {
    unsigned effects;        /* tp_quirk_effect, or-ed */
    char build_options[128]; /* appended to every build, "" or starting with a space */
    char reasons[384];       /* of all matching rows, "; "-separated, "" when none */
} tp_quirks;

/* What the table says about a device. Looks at names and versions only. */
void tp_quirks_find(const tp_device_caps *caps, tp_quirks *out_quirks);

#endif
