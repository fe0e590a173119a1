/* SPDX-License-Identifier: Apache-2.0
 * The shuffle, from Philox. */
#include "data/order.h"

#include "core/alloc.h"
#include "num/philox.h"

/* Keeps these draws apart from those of graph ops, which count their streams from 0. */
enum { SHUFFLE_STREAM = 0x7368756 };

/* Below `bound` (< 2^32): the high half of a 32 x 32 product, as in Lemire, "Fast random integer generation
 * in an interval", ACM TOMACS 2019, without the rejection step: its bias is below bound / 2^32. */
static int64_t draw(tp_random_stream stream, int64_t index, int64_t bound)
{
    uint32_t word = tp_random_bits(stream, (uint32_t)(index / 4), (uint32_t)(index % 4));
    return (int64_t)(((uint64_t)word * (uint64_t)bound) >> 32);
}

tpucl_status tp_order_fill(int64_t count, int64_t buffer, uint64_t seed, uint32_t epoch,
                           int64_t *out)
{
    if (count < 1 || count > UINT32_MAX)
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "%lld examples cannot be shuffled; expected 1 to 2^32 - 1",
                       (long long)count);
    if (buffer <= 0 || buffer > count) buffer = count;
    tp_random_stream stream =
        tp_random_stream_make((uint32_t)seed, (uint32_t)(seed >> 32), SHUFFLE_STREAM, 0, epoch);
    int64_t *window = TP_NEW_ARRAY(int64_t, (size_t)buffer);
    if (!window) return TPUCL_OUT_OF_MEMORY;
    for (int64_t i = 0; i < buffer; i++)
        window[i] = i;
    int64_t filled = buffer, next = buffer;
    for (int64_t i = 0; i < count; i++) {
        int64_t slot = draw(stream, i, filled);
        out[i] = window[slot];
        if (next < count)
            window[slot] = next++;
        else
            window[slot] = window[--filled];
    }
    tp_free(window);
    return TPUCL_OK;
}
