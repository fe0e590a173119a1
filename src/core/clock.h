/* SPDX-License-Identifier: Apache-2.0
 * Time. Durations come from the monotonic clock only. */
#ifndef TP_CORE_CLOCK_H
#define TP_CORE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some fixed moment; never goes back. */
uint64_t tp_clock_now_ns(void);
/* Nanoseconds since 1970-01-01 UTC. */
int64_t tp_clock_wall_ns(void);
/* "2025-01-31T13:45:07Z" of such a moment. */
enum { TP_CLOCK_TEXT_BYTES = 32 };
void tp_clock_format(int64_t wall_ns, char out_text[TP_CLOCK_TEXT_BYTES]);
void tp_clock_sleep_ns(uint64_t duration_ns);

#endif
