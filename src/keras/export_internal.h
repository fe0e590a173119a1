/* SPDX-License-Identifier: Apache-2.0
 * What the files keras/export_*.c share.
 */
#ifndef TP_KERAS_EXPORT_INTERNAL_H
#define TP_KERAS_EXPORT_INTERNAL_H

#include "keras/export.h"
#include "keras/map_internal.h"

typedef struct tp_keras_exporter {
    const tp_keras_export_options *options;
    const tp_model *model; /* the same, for shapes */
    tp_arena *arena;
    tp_keras_export_layers *layers;
    tp_json_writer *writer;
} tp_keras_exporter;

void tp_keras_write_head(tp_json_writer *writer, const char *module, const char *class_name);

/* Members of a layer's object, inbound_nodes left out. `name`: NULL for the layer of a wrapper, which may have one
 * itself. TPUCL_UNSUPPORTED for what Keras has no word for. */
tpucl_status tp_keras_export_layer_members(tp_keras_exporter *ex, const tp_json *json,
                                           const char *name) TPUCL_MUST_CHECK;

#endif
