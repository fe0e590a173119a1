/* SPDX-License-Identifier: Apache-2.0
 * Variables of a training by index, whether they are on devices or in the reference interpreter. */
#ifndef TP_TRAIN_PARAM_STORE_H
#define TP_TRAIN_PARAM_STORE_H

#include "exec/variables.h"
#include "reference/reference.h"
#include "train/session.h"

typedef struct tp_param {
    const char *name;
    tp_dtype dtype;
    tp_shape shape;
    uint64_t bytes;
    bool is_model; /* and no slot of the optimizer */
} tp_param;

/* One of the two is set. Borrowed. */
typedef struct tp_param_store {
    tp_variables *variables;
    tp_reference *reference;
    const tp_graph *graph; /* the interpreter's */
} tp_param_store;

tp_param_store tp_session_params(tp_session *session);

int32_t tp_param_store_count(const tp_param_store *store);
tp_param tp_param_store_param(const tp_param_store *store, int32_t index);
int32_t tp_param_store_find(const tp_param_store *store, const char *name); /* -1: none */
/* Row-major elements in the variable's dtype; waits for the work in flight. */
tpucl_status tp_param_store_read(const tp_param_store *store, int32_t index, int32_t group,
                                 void *out_data);
tpucl_status tp_param_store_write(const tp_param_store *store, int32_t index, int32_t group,
                                  const void *data);

#endif
