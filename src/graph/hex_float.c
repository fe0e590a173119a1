/* SPDX-License-Identifier: Apache-2.0
 * IEEE binary64, field by field. */
#include "graph/hex_float.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void tp_hex_float_format(double value, char out_text[TP_HEX_FLOAT_BYTES])
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const char *sign = bits >> 63 ? "-" : "";
    if (isnan(value) || isinf(value)) {
        snprintf(out_text, TP_HEX_FLOAT_BYTES, "%s", isnan(value) ? "nan" : *sign ? "-inf" : "inf");
        return;
    }
    uint64_t fraction = bits & 0xfffffffffffffu;
    int exponent = (int)(bits >> 52 & 0x7ff), digits = 13;
    const int lead = exponent != 0;
    exponent = exponent ? exponent - 1023 : fraction ? -1022 : 0;
    while (digits > 0 && (fraction & 0xf) == 0) {
        fraction >>= 4;
        --digits;
    }
    if (digits)
        snprintf(out_text, TP_HEX_FLOAT_BYTES, "%s0x%d.%0*llxp%+d", sign, lead, digits,
                 (unsigned long long)fraction, exponent);
    else
        snprintf(out_text, TP_HEX_FLOAT_BYTES, "%s0x%dp%+d", sign, lead, exponent);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

static bool take(tp_view *inout_rest, const char *text)
{
    const size_t length = strlen(text);
    if (inout_rest->length < length || memcmp(inout_rest->data, text, length) != 0) return false;
    inout_rest->data += length;
    inout_rest->length -= length;
    return true;
}

bool tp_hex_float_parse(tp_view text, double *out_value)
{
    tp_view rest = text;
    const double sign = take(&rest, "-") ? -1.0 : 1.0;
    if (tp_view_equal_text(rest, "inf")) {
        *out_value = sign * (double)INFINITY;
        return true;
    }
    if (tp_view_equal_text(text, "nan")) {
        *out_value = (double)NAN;
        return true;
    }
    if (!take(&rest, "0x")) return false;
    uint64_t mantissa = 0;
    int digits = 0, after_point = 0;
    bool has_point = false;
    for (; rest.length && *rest.data != 'p'; ++rest.data, --rest.length) {
        if (*rest.data == '.' && !has_point && digits == 1) {
            has_point = true;
            continue;
        }
        const int digit = hex_digit(*rest.data);
        if (digit < 0 || ++digits > 14 || (digits == 1 && digit > 1)) return false;
        mantissa = mantissa << 4 | (uint64_t)digit;
        after_point += has_point;
    }
    int64_t exponent;
    if (digits == 0 || !take(&rest, "p")) return false;
    (void)take(&rest, "+");
    if (tp_str_parse_int64(rest, &exponent) != TPUCL_OK || exponent < -1074 || exponent > 1023)
        return false;
    *out_value = sign * ldexp((double)mantissa, (int)exponent - 4 * after_point);
    return true;
}
