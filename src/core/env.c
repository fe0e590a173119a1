/* SPDX-License-Identifier: Apache-2.0
 * The only caller of getenv(). */
#include "core/env.h"

#include <stdlib.h>
#include <strings.h>
#include "core/str.h"

static const tp_env_row rows[TP_ENV_COUNT] = {
#define TP_ENV_ROW(id, name, value, meaning) [TP_ENV_##id] = {name, value, meaning},
    TP_ENV_LIST(TP_ENV_ROW)
#undef TP_ENV_ROW
};

const tp_env_row *tp_env_describe(tp_env_id id)
{
    return &rows[id];
}

const char *tp_env_text(tp_env_id id)
{
    const char *text = getenv(rows[id].name);
    return text && *text ? text : NULL;
}

tpucl_status tp_env_flag(tp_env_id id, bool fallback, bool *out_value)
{
    static const char *const yes[] = {"1", "on", "true", "yes"};
    static const char *const no[] = {"0", "off", "false", "no"};
    const char *text = tp_env_text(id);
    *out_value = fallback;
    if (!text) return TPUCL_OK;
    for (int i = 0; i < 4; i++) {
        bool is_yes = strcasecmp(text, yes[i]) == 0;
        if (!is_yes && strcasecmp(text, no[i]) != 0) continue;
        *out_value = is_yes;
        return TPUCL_OK;
    }
    return TP_FAIL(TPUCL_INVALID_CONFIG, "environment variable %s: expected 0 or 1, found '%.64s'",
                   rows[id].name, text);
}

tpucl_status tp_env_int(tp_env_id id, int64_t min, int64_t max, int64_t fallback,
                        int64_t *out_value)
{
    const char *text = tp_env_text(id);
    *out_value = fallback;
    if (!text) return TPUCL_OK;
    int64_t value;
    if (tp_str_parse_int64(tp_view_of(text), &value) != TPUCL_OK || value < min || value > max)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "environment variable %s: expected an integer from %lld to %lld, found "
                       "'%.64s'",
                       rows[id].name, (long long)min, (long long)max, text);
    *out_value = value;
    return TPUCL_OK;
}
