/* SPDX-License-Identifier: Apache-2.0
 * A source whose images are changed by chance while they are read: num/augment.h, on the threads of the
 * pipeline. */
#ifndef TP_DATA_SOURCE_AUGMENT_H
#define TP_DATA_SOURCE_AUGMENT_H

#include "data/source.h"
#include "num/augment.h"

typedef struct tp_source_augment_options {
    tp_augment augment;
    bool is_random; /* else the middle of the image, always */
    uint64_t seed;
    int64_t per_core_batch; /* row r of a batch is row r mod this on core r / this */
} tp_source_augment_options;

/* The input that is changed: the first one of bytes [height, width, channels]. TPUCL_INVALID_CONFIG when
 * there is none, or the window does not fit into it. */
tpucl_status tp_source_find_image(const tp_source *source, const tp_augment *augment,
                                  int32_t *out_field) TPUCL_MUST_CHECK;

/* Takes `inner` over when it succeeds. Labels that `inner` has in its arrays are in the arrays of the
 * result, too. */
tpucl_status tp_source_augment(tp_source *inner, const tp_source_augment_options *options,
                               tp_source **out_source) TPUCL_MUST_CHECK;

#endif
