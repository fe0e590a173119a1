/* SPDX-License-Identifier: Apache-2.0
 * special() of tests/golden/gen_order.py: quarters, so that many are equal, and every 7th element NaN, an
 * infinity or a zero. */
#ifndef TESTS_UNIT_OPS_SPECIALS_H
#define TESTS_UNIT_OPS_SPECIALS_H

#include <math.h>

static inline void make_special(float *x, int count)
{
    const float specials[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
    for (int i = 0; i < count; ++i)
        x[i] = i % 7 ? floorf(x[i] * 4) / 4 : specials[i / 7 % 5];
}

#endif
