/* SPDX-License-Identifier: Apache-2.0
 * Doubles as hexadecimal text, exact and independent of the locale (C's %a and strtod are not). */
#ifndef TP_GRAPH_HEX_FLOAT_H
#define TP_GRAPH_HEX_FLOAT_H

#include "core/str.h"

enum { TP_HEX_FLOAT_BYTES = 32 };

/* "-0x1.8p+1", "0x0p+0", "inf", "-inf", "nan". */
void tp_hex_float_format(double value, char out_text[TP_HEX_FLOAT_BYTES]);

/* The reverse; false for anything else. At most 14 digits, exponent -1074 to 1023. */
bool tp_hex_float_parse(tp_view text, double *out_value);

#endif
