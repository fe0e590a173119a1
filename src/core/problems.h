/* SPDX-License-Identifier: Apache-2.0
 * Collects everything that is wrong with an input, so that it can be reported at once. Fixed size:
 * lives on the stack and needs no memory. What does not fit is counted ("and 7 more"). */
#ifndef TP_CORE_PROBLEMS_H
#define TP_CORE_PROBLEMS_H

#include <stddef.h>
#include "core/status.h"

typedef struct tp_problems { /* zero-initialise */
    size_t count;
    size_t hidden; /* of these, how many did not fit into the text */
    size_t length;
    /* one of them was that memory is out: the result's status then is, too */
    bool is_out_of_memory;
    char text[1800];
} tp_problems;

void tp_problems_add(tp_problems *problems, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds the message of the thread's error record: tp_problems_add_failed(&problems,
 * tp_json_...(...)). TPUCL_OK adds nothing and yields true; anything else yields false. */
bool tp_problems_add_failed(tp_problems *problems, tpucl_status status);

/* TPUCL_OK when nothing was added, else one error with all lines: the only problem itself, or
 * "<what> has 3 problems:" and a line each. */
tpucl_status tp_problems_result(const tp_problems *problems, tpucl_status status,
                                const char *what) TPUCL_MUST_CHECK;

#endif
