/* SPDX-License-Identifier: Apache-2.0
 * How tpucl's own code reports failure. See docs/conventions.md, "Errors".
 *
 *   if (n < 0) return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' is %d, expected 0 or more", name, n);
 *   TP_TRY(tp_file_read(path, arena, &text));             returns on failure, adds to the trail
 *   TP_TRY_GOTO(status, tp_lane_open(dev, &lane), done);  sets status, jumps to the cleanup label
 *
 * The record is thread-local and of fixed size. Worker threads capture it into their task; the
 * waiter restores it, so that tpucl_last_error() works where the caller looks.
 */
#ifndef TP_CORE_STATUS_H
#define TP_CORE_STATUS_H

#include <stdbool.h>
#include <tpucl/status.h>

/* Starts a new record; yields `status`, so that it can be returned. */
tpucl_status tp_error_set(tpucl_status status, int64_t foreign_code, const char *function,
                          const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Adds a frame to the trail of the current record. */
void tp_error_trail(const char *function, const char *file, int line);

/* Puts "prefix: " in front of the message ("while reading shard 3 of 8"). */
void tp_error_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Copies of the record, to carry it across threads or over cleanup code that may fail itself. */
void tp_error_capture(tpucl_error *out_record);
void tp_error_restore(const tpucl_error *record);
void tp_error_clear(void);
/* The same record under another status, which is returned: a shape that is too large is an invalid argument
 * to the one who parses it and corrupt data in a file. */
tpucl_status tp_error_recast(tpucl_status status);

#define TP_FAIL(status, ...) tp_error_set((status), 0, __func__, __FILE__, __LINE__, __VA_ARGS__)
#define TP_FAIL_CODE(status, code, ...)                                                            \
    tp_error_set((status), (code), __func__, __FILE__, __LINE__, __VA_ARGS__)
#define TP_TRY(call)                                                                               \
    do {                                                                                           \
        tpucl_status tp_try_status_ = (call);                                                      \
        if (tp_try_status_ != TPUCL_OK) {                                                          \
            tp_error_trail(__func__, __FILE__, __LINE__);                                          \
            return tp_try_status_;                                                                 \
        }                                                                                          \
    } while (0)
#define TP_TRY_GOTO(status, call, label)                                                           \
    do {                                                                                           \
        (status) = (call);                                                                         \
        if ((status) != TPUCL_OK) {                                                                \
            tp_error_trail(__func__, __FILE__, __LINE__);                                          \
            goto label;                                                                            \
        }                                                                                          \
    } while (0)

/* An invariant of our own: aborts in a debug build (stack trace), is TPUCL_INTERNAL in a release
 * build. */
#ifdef NDEBUG
#define TP_CHECK(condition)                                                                        \
    do {                                                                                           \
        if (!(condition)) return TP_FAIL(TPUCL_INTERNAL, "invariant broken: %s", #condition);      \
    } while (0)
#else
#include <assert.h>
#define TP_CHECK(condition) assert(condition)
#endif

#endif
