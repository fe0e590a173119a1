/* SPDX-License-Identifier: Apache-2.0
 * Files for Keras 3: .weights.h5 and .keras. */
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/file.h"
#include "io/hdf5.h"
#include "io/keras_file.h"
#include "io/zip.h"

/* The version whose layout this is; Keras reads what older ones wrote. */
static const char metadata[] =
    "{\"keras_version\": \"3.4.1\", \"date_saved\": \"1980-01-01@00:00:00\"}";

static tpucl_status put_all(tp_hdf5_writer *writer, const tp_keras_tensor *tensors, int32_t count)
{
    /* Keras' reader looks these up even when a model has no weights. */
    TP_TRY(tp_hdf5_put_group(writer, "layers"));
    TP_TRY(tp_hdf5_put_group(writer, "vars"));
    for (int32_t i = 0; i < count; i++)
        TP_TRY(tp_hdf5_put_dataset(writer, tensors[i].path, tensors[i].dtype, &tensors[i].shape,
                                   tensors[i].elements));
    return TPUCL_OK;
}

static tpucl_status make_weights(const tp_keras_tensor *tensors, int32_t count, char **out_bytes,
                                 size_t *out_length)
{
    tp_hdf5_writer *writer;
    TP_TRY(tp_hdf5_writer_create(&writer));
    tpucl_status status = put_all(writer, tensors, count);
    if (status == TPUCL_OK) status = tp_hdf5_writer_finish(writer, out_bytes, out_length);
    tp_hdf5_writer_destroy(writer);
    return status;
}

tpucl_status tp_keras_write_weights(const char *path, const tp_keras_tensor *tensors, int32_t count)
{
    char *bytes;
    size_t length;
    TP_TRY(make_weights(tensors, count, &bytes, &length));
    const tpucl_status status = tp_file_write_atomic(path, bytes, length);
    tp_free(bytes);
    return status;
}

tpucl_status tp_keras_write_model(const char *path, const char *config,
                                  const tp_keras_tensor *tensors, int32_t count)
{
    char *bytes;
    size_t length;
    TP_TRY(make_weights(tensors, count, &bytes, &length));
    const tp_zip_member members[] = {{"metadata.json", metadata, sizeof metadata - 1},
                                     {"config.json", config, strlen(config)},
                                     {"model.weights.h5", bytes, length}};
    const tpucl_status status = tp_zip_write(path, members, 3);
    tp_free(bytes);
    return status;
}
