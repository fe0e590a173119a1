/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: HDF5 files through the wrapper. All of what was accepted is read: datasets up to a size, and the
 * attributes that Keras uses. */
#include <stdlib.h>
#include "core/alloc.h"
#include "io/hdf5.h"

enum { MAX_BYTES = 1 << 24 };

static void require(bool condition)
{
    if (!condition) abort();
}

static void read_attributes(tp_hdf5 *file)
{
    static const char *const groups[] = {"", "model_weights", "layers"};
    tp_arena *arena;
    require(tp_arena_create(0, &arena) == TPUCL_OK);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const char *text;
        const char *const *texts;
        size_t count;
        if (!tp_hdf5_has_group(file, groups[i])) continue;
        if (tp_hdf5_attribute_text(file, groups[i], "model_config", arena, &text) != TPUCL_OK)
            require(tpucl_last_error()->message[0]);
        if (tp_hdf5_attribute_texts(file, groups[i], "layer_names", arena, &texts, &count) !=
            TPUCL_OK)
            require(tpucl_last_error()->message[0]);
    }
    tp_arena_destroy(arena);
}

static void read_datasets(tp_hdf5 *file)
{
    for (int32_t i = 0; i < tp_hdf5_dataset_count(file); i++) {
        const tp_hdf5_dataset *dataset = tp_hdf5_dataset_at(file, i);
        const int64_t bytes = tp_shape_bytes(&dataset->shape, dataset->dtype);
        require(tp_hdf5_find_dataset(file, dataset->path) == dataset);
        if (bytes > MAX_BYTES) continue;
        void *elements = malloc((size_t)bytes + 1);
        require(elements);
        if (tp_hdf5_read(file, dataset, elements) != TPUCL_OK)
            require(tpucl_last_error()->message[0]);
        free(elements);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_hdf5 *file;
    tpucl_status status = tp_hdf5_open_bytes(data, size, "fuzz", &file);
    if (status != TPUCL_OK) {
        require(tpucl_last_error()->status == status && tpucl_last_error()->message[0]);
        return 0;
    }
    read_attributes(file);
    read_datasets(file);
    tp_hdf5_close(file);
    return 0;
}
