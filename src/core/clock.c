/* SPDX-License-Identifier: Apache-2.0
 * POSIX clocks. */
#include "core/clock.h"

#include <errno.h>
#include <time.h>

enum { NS_PER_SECOND = 1000000000 };

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now); /* cannot fail for these two clocks */
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

uint64_t tp_clock_now_ns(void)
{
    return (uint64_t)read_clock(CLOCK_MONOTONIC);
}

int64_t tp_clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

void tp_clock_format(int64_t wall_ns, char out_text[TP_CLOCK_TEXT_BYTES])
{
    time_t seconds = (time_t)(wall_ns / NS_PER_SECOND - (wall_ns % NS_PER_SECOND < 0));
    struct tm parts;
    out_text[0] = '\0';
    if (gmtime_r(&seconds, &parts))
        strftime(out_text, TP_CLOCK_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

void tp_clock_sleep_ns(uint64_t duration_ns)
{
    struct timespec rest = {.tv_sec = (time_t)(duration_ns / NS_PER_SECOND),
                            .tv_nsec = (long)(duration_ns % NS_PER_SECOND)};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}
