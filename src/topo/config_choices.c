/* SPDX-License-Identifier: Apache-2.0
 * Looking up a default in the lists of config_choices.h. */
#include "topo/config_choices.h"

#include <math.h>
#include <string.h>
#include "core/str.h"

const char *tp_choice_find(const char *keys, const char *key, size_t *out_length)
{
    const size_t key_length = strlen(key);
    for (const char *at = keys; *at;) {
        const size_t length = strcspn(at, " ");
        if (length > key_length && at[key_length] == '=' && strncmp(at, key, key_length) == 0) {
            *out_length = length - key_length - 1;
            return at + key_length + 1;
        }
        at += length;
        at += strspn(at, " ");
    }
    return NULL;
}

bool tp_choice_number(const char *keys, const char *key, double *out_value)
{
    tp_view text = {0};
    text.data = tp_choice_find(keys, key, &text.length);
    if (!text.data) return false;
    if (tp_view_equal_text(text, "null"))
        *out_value = (double)NAN;
    else if (tp_view_equal_text(text, "true") || tp_view_equal_text(text, "false"))
        *out_value = text.data[0] == 't';
    else
        return tp_str_parse_double(text, out_value) == TPUCL_OK;
    return true;
}
