/* SPDX-License-Identifier: Apache-2.0
 * Writes safetensors files. */
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/json_write.h"
#include "io/safetensors.h"
#include "io/safetensors_dtype.h"
#include "io/store.h"

static int compare_entries(const void *a, const void *b)
{
    const tp_tensor_entry *x = *(const tp_tensor_entry *const *)a;
    const tp_tensor_entry *y = *(const tp_tensor_entry *const *)b;
    size_t size_x = tp_dtype_size(x->dtype), size_y = tp_dtype_size(y->dtype);
    if (size_x != size_y) return size_x < size_y ? 1 : -1;
    return strcmp(x->name, y->name);
}

static tpucl_status check_entries(const tp_tensor_entry *const *order, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (!tp_safetensors_dtype_name(order[i]->dtype))
            return TP_FAIL(TPUCL_UNSUPPORTED,
                           "tensor '%s' is %s, which safetensors has no name for", order[i]->name,
                           tp_dtype_name(order[i]->dtype));
        if (strcmp(order[i]->name, "__metadata__") == 0 ||
            (i > 0 && strcmp(order[i]->name, order[i - 1]->name) == 0))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "tensor name '%s' is reserved or used twice",
                           order[i]->name);
    }
    return TPUCL_OK;
}

static tpucl_status make_header(const tp_tensor_entry *const *order, int32_t count,
                                const char *const *keys, const char *const *values,
                                int32_t metadata_count, char **out_text)
{
    tp_json_writer writer = {.compact = true};
    uint64_t offset = 0;
    tp_json_begin_object(&writer);
    if (metadata_count > 0) {
        tp_json_key(&writer, "__metadata__");
        tp_json_begin_object(&writer);
        for (int32_t i = 0; i < metadata_count; i++)
            tp_json_put_string(&writer, keys[i], values[i]);
        tp_json_end_object(&writer);
    }
    for (int32_t i = 0; i < count; i++) {
        tp_json_key(&writer, order[i]->name);
        tp_json_begin_object(&writer);
        tp_json_put_string(&writer, "dtype", tp_safetensors_dtype_name(order[i]->dtype));
        tp_json_key(&writer, "shape");
        tp_json_begin_array(&writer);
        for (int d = 0; d < order[i]->shape.rank; d++)
            tp_json_write_int(&writer, order[i]->shape.dims[d]);
        tp_json_end_array(&writer);
        tp_json_key(&writer, "data_offsets");
        tp_json_begin_array(&writer);
        tp_json_write_uint(&writer, offset);
        offset += order[i]->bytes;
        tp_json_write_uint(&writer, offset);
        tp_json_end_array(&writer);
        tp_json_end_object(&writer);
    }
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

/* The header is padded with spaces so that the elements start 8-byte aligned, as other writers do. */
static tpucl_status write_all(tp_writer *writer, const char *header,
                              const tp_tensor_entry *const *order, int32_t count)
{
    size_t length = strlen(header), padding = (8 - length % 8) % 8;
    uint64_t total = length + padding;
    unsigned char little[8];
    for (int i = 0; i < 8; i++)
        little[i] = (unsigned char)(total >> (8 * i));
    TP_TRY(tp_writer_write(writer, little, sizeof little));
    TP_TRY(tp_writer_write(writer, header, length));
    TP_TRY(tp_writer_write(writer, "        ", padding));
    for (int32_t i = 0; i < count; i++)
        TP_TRY(tp_writer_write(writer, order[i]->data, order[i]->bytes));
    return TPUCL_OK;
}

tpucl_status tp_safetensors_write_to(tp_writer *writer, const tp_tensor_entry *entries,
                                     int32_t count, const char *const *keys,
                                     const char *const *values, int32_t metadata_count)
{
    char *header = NULL;
    tpucl_status status = TPUCL_OK;
    const tp_tensor_entry **order = TP_NEW_ARRAY(const tp_tensor_entry *, (size_t)count + 1);
    if (!order) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; i++)
        order[i] = &entries[i];
    qsort(order, (size_t)count, sizeof *order, compare_entries);
    TP_TRY_GOTO(status, check_entries(order, count), done);
    TP_TRY_GOTO(status, make_header(order, count, keys, values, metadata_count, &header), done);
    status = write_all(writer, header, order, count);
done:
    tp_free(header);
    tp_free(order);
    return status;
}

tpucl_status tp_safetensors_write(const char *path, const tp_tensor_entry *entries, int32_t count,
                                  const char *const *keys, const char *const *values,
                                  int32_t metadata_count)
{
    tp_writer *writer = NULL;
    TP_TRY(tp_store_create(path, &writer));
    const tpucl_status status =
        tp_safetensors_write_to(writer, entries, count, keys, values, metadata_count);
    if (status != TPUCL_OK) {
        tp_writer_abort(writer);
        return status;
    }
    return tp_writer_commit(writer);
}
