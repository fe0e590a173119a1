/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/env.h"
#include "core/log.h"

Test(env, text_flag_and_number)
{
    bool flag;
    int64_t number;
    unsetenv("TPUCL_SYNC");
    cr_assert_eq(tp_env_flag(TP_ENV_SYNC, true, &flag), TPUCL_OK);
    cr_assert(flag);
    setenv("TPUCL_SYNC", "OFF", 1);
    cr_assert_eq(tp_env_flag(TP_ENV_SYNC, true, &flag), TPUCL_OK);
    cr_assert_not(flag);
    setenv("TPUCL_SYNC", "maybe", 1);
    cr_assert_eq(tp_env_flag(TP_ENV_SYNC, true, &flag), TPUCL_INVALID_CONFIG);
    cr_assert(strstr(tpucl_last_error()->message, "TPUCL_SYNC"));
    setenv("TPUCL_THREADS", "", 1);
    cr_assert_null(tp_env_text(TP_ENV_THREADS));
    cr_assert_eq(tp_env_int(TP_ENV_THREADS, 1, 8, 3, &number), TPUCL_OK);
    cr_assert_eq(number, 3);
    setenv("TPUCL_THREADS", "9", 1);
    cr_assert_eq(tp_env_int(TP_ENV_THREADS, 1, 8, 3, &number), TPUCL_INVALID_CONFIG);
    cr_assert(strstr(tpucl_last_error()->message, "from 1 to 8, found '9'"));
}

Test(env, every_row_is_described)
{
    for (int id = 0; id < TP_ENV_COUNT; id++) {
        const tp_env_row *row = tp_env_describe((tp_env_id)id);
        cr_assert(row->name && row->value && row->meaning && row->meaning[0]);
    }
}

static char last_line[64];

static void keep_line(void *user, tpucl_log_level level, const char *subsystem, const char *line)
{
    ++*(int *)user;
    snprintf(last_line, sizeof last_line, "%d %s %s", (int)level, subsystem, line);
}

Test(log, level_and_sink)
{
    int lines = 0;
    tpucl_log_level level;
    TP_LOG_ERROR("test", "nobody listens");
    tpucl_log_set_sink(keep_line, &lines);
    TP_LOG_INFO("test", "value %d", 3);
    TP_LOG_DEBUG("test", "hidden");
    cr_assert_eq(lines, 1);
    cr_assert_str_eq(last_line, "3 test value 3");
    cr_assert_eq(tpucl_log_level_parse("debug", &level), TPUCL_OK);
    tpucl_log_set_level(level);
    TP_LOG_DEBUG("test", "shown");
    cr_assert_eq(lines, 2);
    tpucl_log_set_level(TPUCL_LOG_OFF);
    TP_LOG_ERROR("test", "hidden");
    cr_assert_eq(lines, 2);
    cr_assert_eq(tpucl_log_level_parse("loud", &level), TPUCL_INVALID_ARGUMENT);
    tpucl_log_set_sink(NULL, NULL);
}

Test(clock, runs_and_prints)
{
    char text[TP_CLOCK_TEXT_BYTES];
    uint64_t before = tp_clock_now_ns();
    tp_clock_sleep_ns(1000000);
    cr_assert_geq(tp_clock_now_ns() - before, 1000000);
    tp_clock_format(1738331107LL * 1000000000, text); /* date -u -d @1738331107 */
    cr_assert_str_eq(text, "2025-01-31T13:45:07Z");
    tp_clock_format(-1, text);
    cr_assert_str_eq(text, "1969-12-31T23:59:59Z");
}
