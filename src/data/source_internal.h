/* SPDX-License-Identifier: Apache-2.0
 * An array as a file holds it, on its way into a source. */
#ifndef TP_DATA_SOURCE_INTERNAL_H
#define TP_DATA_SOURCE_INTERNAL_H

#include "data/source.h"

typedef struct tp_file_array {
    tp_dtype dtype;
    tp_shape shape; /* with the example axis in front */
    void *data;     /* tp_free */
} tp_file_array;

/* Makes a source of "image" and "label"; takes the arrays over, also when it fails. Adds the channel axis to
 * images of rank 2, checks that the counts agree. */
tpucl_status tp_source_adopt_pair(const char *inputs_path, tp_file_array *inputs,
                                  const char *labels_path, tp_file_array *labels,
                                  tp_source **out_source);

#endif
