/* SPDX-License-Identifier: Apache-2.0
 * Logging inside the library: TP_LOG_INFO("exec", "wave of %d cores on '%s'", n, name). The
 * subsystem is the layer's name. Arguments are not evaluated when the level is off. Nothing is
 * written anywhere unless a sink was set (tpucl_log_set_sink). Thread-safe. */
#ifndef TP_CORE_LOG_H
#define TP_CORE_LOG_H

#include <tpucl/log.h>

bool tp_log_enabled(tpucl_log_level level);
/* Lines longer than 1023 bytes are cut. */
void tp_log_write(tpucl_log_level level, const char *subsystem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define TP_LOG(level, subsystem, ...)                                                              \
    do {                                                                                           \
        if (tp_log_enabled(level)) tp_log_write((level), (subsystem), __VA_ARGS__);                \
    } while (0)
#define TP_LOG_ERROR(subsystem, ...) TP_LOG(TPUCL_LOG_ERROR, subsystem, __VA_ARGS__)
#define TP_LOG_WARNING(subsystem, ...) TP_LOG(TPUCL_LOG_WARNING, subsystem, __VA_ARGS__)
#define TP_LOG_INFO(subsystem, ...) TP_LOG(TPUCL_LOG_INFO, subsystem, __VA_ARGS__)
#define TP_LOG_DEBUG(subsystem, ...) TP_LOG(TPUCL_LOG_DEBUG, subsystem, __VA_ARGS__)

#endif
