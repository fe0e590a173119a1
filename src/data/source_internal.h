/* SPDX-License-Identifier: Apache-2.0
 * An array as a file holds it, on its way into a source. */
#ifndef TP_DATA_SOURCE_INTERNAL_H
#define TP_DATA_SOURCE_INTERNAL_H

#include "core/thread.h"
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

/* The next field, whose array it takes over when it succeeds: array->data is NULL then. */
tpucl_status tp_source_add_field(tp_source *source, const char *name, tp_file_array *array);

/* Work that goes on in a thread; `run` fills an array that the source owns. */
typedef struct tp_source_loader {
    tp_mutex mutex; /* guards what is below: whoever waits first joins the thread */
    tp_thread *thread;
    tpucl_status status;
    tpucl_error error;
} tp_source_loader;

/* Starts `run(work)`; takes `work` over only when it succeeds. */
tpucl_status tp_source_load_in_background(tp_source *source, tpucl_status (*run)(void *work),
                                          void *work);

#endif
