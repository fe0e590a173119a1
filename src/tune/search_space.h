/* SPDX-License-Identifier: Apache-2.0
 * What the tuner tries: for each variant its knobs and their values, as one table. To try more, add
 * values; to make a new knob tunable, add a row.
 */
#ifndef TP_TUNE_SEARCH_SPACE_H
#define TP_TUNE_SEARCH_SPACE_H

#include "kernel/mxu_choice.h"

enum { TP_SEARCH_MAX_VALUES = 12 };

/* Rows of one variant stand together, the knob that matters most first. */
typedef struct tp_search_row {
    const char *variant;
    tp_mxu_knob knob;
    int32_t values[TP_SEARCH_MAX_VALUES];
    int32_t value_count;
} tp_search_row;

/* The table; static. */
const tp_search_row *tp_search_space(size_t *out_count);

/* Names of its variants, each once; NULL past the end. Static. */
const char *tp_search_variant(size_t index);

#endif
