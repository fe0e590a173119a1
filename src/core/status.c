/* SPDX-License-Identifier: Apache-2.0
 * The thread-local error record: fixed size, so that reporting a failure can never fail. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tpucl/version.h>

static _Thread_local tpucl_error thread_record;

static void append_frame(const char *function, const char *file, int line)
{
    size_t used = strlen(thread_record.trail);
    const char *slash = strrchr(file, '/');
    snprintf(thread_record.trail + used, sizeof thread_record.trail - used, "%s%s (%s:%d)",
             used ? "\n" : "", function, slash ? slash + 1 : file, line);
}

tpucl_status tp_error_set(tpucl_status status, int64_t foreign_code, const char *function,
                          const char *file, int line, const char *format, ...)
{
    char message[sizeof thread_record.message]; /* the arguments may point into the old record */
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    thread_record.status = status;
    thread_record.foreign_code = foreign_code;
    memcpy(thread_record.message, message, sizeof message);
    thread_record.trail[0] = '\0';
    append_frame(function, file, line);
    return status;
}

void tp_error_trail(const char *function, const char *file, int line)
{
    append_frame(function, file, line);
}

void tp_error_note(const char *format, ...)
{
    char prefix[512], joined[sizeof thread_record.message];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    int length = snprintf(joined, sizeof joined, "%s: ", prefix);
    size_t used = length < 0 ? 0 : (size_t)length;
    size_t room = sizeof joined - 1 - used, wanted = strlen(thread_record.message);
    size_t copied = wanted < room ? wanted : room;
    memcpy(joined + used, thread_record.message, copied);
    joined[used + copied] = '\0';
    memcpy(thread_record.message, joined, used + copied + 1);
}

void tp_error_capture(tpucl_error *out_record)
{
    *out_record = thread_record;
}

void tp_error_restore(const tpucl_error *record)
{
    thread_record = *record;
}

void tp_error_clear(void)
{
    memset(&thread_record, 0, sizeof thread_record);
}

tpucl_status tp_error_recast(tpucl_status status)
{
    thread_record.status = status;
    return status;
}

const tpucl_error *tpucl_last_error(void)
{
    return &thread_record;
}

const char *tpucl_status_name(tpucl_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text)                                                             \
    case TPUCL_##name:                                                                             \
        return "TPUCL_" #name;
        TPUCL_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "TPUCL_UNKNOWN";
}
