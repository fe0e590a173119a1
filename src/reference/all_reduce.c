/* SPDX-License-Identifier: Apache-2.0
 * Element by element, so that no copies of the parts are needed. */
#include "reference/all_reduce.h"

#include "num/reduce.h"

void tp_reference_all_reduce(const float *const *parts, int32_t count, int64_t elems, float *out)
{
    for (int64_t i = 0; i < elems; ++i) {
        tp_tree tree;
        tp_tree_begin(&tree);
        for (int32_t part = 0; part < count; ++part)
            tp_tree_push(&tree, TP_REDUCE_ADD, parts[part][i]);
        out[i] = tp_flush(tp_tree_end(&tree, TP_REDUCE_ADD));
    }
}
