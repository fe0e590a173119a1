/* SPDX-License-Identifier: Apache-2.0
 * Process-wide sink and level. A line is made on the stack, so logging needs no memory and cannot
 * fail. */
#include "core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "core/thread.h"

static tp_mutex sink_mutex = TP_MUTEX_INIT;
static tpucl_log_sink sink_function;
static void *sink_user;
static _Atomic int sink_is_set;
static _Atomic int current_level = TPUCL_LOG_INFO;

static const char *const level_names[] = {"off", "error", "warning", "info", "debug"};
enum { LEVEL_COUNT = sizeof level_names / sizeof level_names[0] };

void tpucl_log_set_sink(tpucl_log_sink sink, void *user)
{
    tp_mutex_lock(&sink_mutex);
    sink_function = sink;
    sink_user = user;
    atomic_store(&sink_is_set, sink != NULL);
    tp_mutex_unlock(&sink_mutex);
}

void tpucl_log_set_level(tpucl_log_level level)
{
    atomic_store(&current_level, (int)level);
}

tpucl_status tpucl_log_level_parse(const char *name, tpucl_log_level *out_level)
{
    if (!name || !out_level)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'name' and 'out_level' must not be NULL");
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (strcmp(level_names[i], name) == 0) {
            *out_level = (tpucl_log_level)i;
            return TPUCL_OK;
        }
    }
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "expected a log level (off, error, warning, info, debug), found '%.64s'", name);
}

bool tp_log_enabled(tpucl_log_level level)
{
    return atomic_load_explicit(&sink_is_set, memory_order_relaxed) && level != TPUCL_LOG_OFF &&
           (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

void tp_log_write(tpucl_log_level level, const char *subsystem, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    tp_mutex_lock(&sink_mutex);
    tpucl_log_sink function = sink_function;
    void *user = sink_user;
    tp_mutex_unlock(&sink_mutex);
    if (function) function(user, level, subsystem, line);
}
