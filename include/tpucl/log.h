/* SPDX-License-Identifier: Apache-2.0
 * Where the library's log lines go. Without a sink they go nowhere: the library itself never
 * prints. The sink and the level belong to the process; set them before the first other call. */
#ifndef TPUCL_LOG_H
#define TPUCL_LOG_H

#include <stdbool.h>
#include <tpucl/export.h>
#include <tpucl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tpucl_log_level {
    TPUCL_LOG_OFF = 0,
    TPUCL_LOG_ERROR = 1,
    TPUCL_LOG_WARNING = 2, /* works, but not as one may think: a skipped driver, a slow fallback */
    TPUCL_LOG_INFO = 3,    /* the default: a few lines a run */
    TPUCL_LOG_DEBUG = 4    /* decisions with their reasons */
} tpucl_log_level;

/* Gets one line without a newline; both strings are borrowed for the call. May be called from any
 * thread, also from several at once, and must not call the library. */
typedef void (*tpucl_log_sink)(void *user, tpucl_log_level level, const char *subsystem,
                               const char *line);

/* NULL: no log. */
TPUCL_API void tpucl_log_set_sink(tpucl_log_sink sink, void *user);
/* Lines above `level` are not made. */
TPUCL_API void tpucl_log_set_level(tpucl_log_level level);
/* "error", "warning", "info", "debug" or "off" to its level; TPUCL_INVALID_ARGUMENT for anything
 * else. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_log_level_parse(const char *name,
                                                              tpucl_log_level *out_level);

#ifdef __cplusplus
}
#endif
#endif
