/* SPDX-License-Identifier: Apache-2.0
 * The grammar check behind tp_json_parse: RFC 8259 to the letter, with line, column and key path in
 * every message, and the place of every value. */
#ifndef TP_CORE_JSON_SCAN_H
#define TP_CORE_JSON_SCAN_H

#include "core/array.h"
#include "core/json.h"

typedef struct tp_json_place {
    size_t offset; /* of the value's first byte */
    size_t length; /* of a number; 0 for other values */
    int line, column;
} tp_json_place;

TP_ARRAY_DEFINE(tp_json_places, tp_json_place)

typedef struct tp_json_scan { /* zero-initialise */
    tp_json_places places;    /* in file order */
} tp_json_scan;

tpucl_status tp_json_scan_text(const char *text, size_t length, const char *name,
                               tp_json_scan *inout_scan) TPUCL_MUST_CHECK;
void tp_json_scan_deinit(tp_json_scan *scan);

#endif
