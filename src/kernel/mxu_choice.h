/* SPDX-License-Identifier: Apache-2.0
 * A choice: a variant of the MXU catalogue with a value for each of its knobs. Heuristics make one
 * for every product; a tuning record (kernel/records.h) and the tuner put another in its place.
 * Whatever is chosen, the bits are the same: knobs say how a product is cut, never what is added to
 * what.
 */
#ifndef TP_KERNEL_MXU_CHOICE_H
#define TP_KERNEL_MXU_CHOICE_H

#include "kernel/mxu.h"

/* Macros of kernels/mxu, but for GROUPS_PER_UNIT: where there are few panels of A, their tiles of n are
 * shared by so many work-groups that each compute unit has about that many. */
typedef enum tp_mxu_knob {
    TP_MXU_TILE_M,
    TP_MXU_VECTOR_WIDTH,
    TP_MXU_TILE_VECTORS,
    TP_MXU_PANEL_BY_ROW,
    TP_MXU_B_IS_PACKED,
    TP_MXU_GROUPS_PER_UNIT,
    TP_MXU_THREADS_M,
    TP_MXU_THREADS_N,
    TP_MXU_THREAD_M,
    TP_MXU_THREAD_N,
    TP_MXU_TILE_K,
    TP_MXU_GROUP_PANELS, /* of mxu_outer: panels of 16 rows and tiles of a work-group */
    TP_MXU_GROUP_TILES
} tp_mxu_knob;

typedef struct tp_mxu_knob_row {
    const char *name;
    int32_t least, most; /* whatever the problem and the device; tp_mxu_choice_check knows more */
} tp_mxu_knob_row;
const tp_mxu_knob_row *tp_mxu_knob_describe(tp_mxu_knob knob);

/* False for names that are no variant. */
bool tp_mxu_variant_has_knob(const char *variant, tp_mxu_knob knob);

/* Sets *out_reason to why `choice` would not be right for the problem on such a device, a sentence
 * in `arena`, or to NULL. What the variant itself declines (memory, units) is not looked at. */
tpucl_status tp_mxu_choice_check(const tp_mxu_problem *problem, const tp_device_caps *caps,
                                 const tp_mxu_choice *choice, tp_arena *arena,
                                 const char **out_reason);

/* Knobs that the variant does not have do not count. */
bool tp_mxu_choice_equal(const tp_mxu_choice *a, const tp_mxu_choice *b);

/* "mxu_register TILE_M=12 VECTOR_WIDTH=16 ..."; returns out_text. */
enum { TP_MXU_CHOICE_BYTES = 256 };
const char *tp_mxu_choice_print(const tp_mxu_choice *choice, char out_text[TP_MXU_CHOICE_BYTES]);

#endif
