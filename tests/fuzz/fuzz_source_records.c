/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a file of records as the data of a training, damage left out: found, read, decoded,
 * resized. */
#include <stdio.h>
#include <stdlib.h>
#include <tpucl/status.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "data/source_records.h"
#include "repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);

/* Most changes get the checksums that belong to them, or nothing behind would be seen. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
    const size_t changed = LLVMFuzzerMutate(data, size, capacity);
    if (seed % 4 && tp_compression_sniff(data, changed) == TP_COMPRESSION_NONE)
        tp_fuzz_repair_records(data, changed);
    return changed;
}

static void read_all(const tp_source *source)
{
    void *worker = NULL, *out[TP_SOURCE_MAX_FIELDS] = {NULL};
    require(source->example_count > 0 && source->field_count == 2);
    require(source->ops->open_worker(source, &worker) == TPUCL_OK);
    for (int32_t f = 0; f < source->field_count; f++) {
        out[f] = malloc(source->fields[f].bytes);
        require(out[f] != NULL);
    }
    for (int64_t i = 0; i < source->example_count && i < 100; i++) {
        const tp_source_place place = {.example = i};
        bool is_there;
        if (source->ops->read(source, worker, &place, out, &is_there) != TPUCL_OK)
            require(tpucl_last_error()->message[0]);
    }
    for (int32_t f = 0; f < source->field_count; f++)
        free(out[f]);
    source->ops->close_worker(worker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const char *paths[] = {path};
    const tp_record_preset *preset = NULL;
    snprintf(path, sizeof path, "/tmp/tpucl_fuzz_%d", (int)getpid());
    FILE *file = fopen(path, "wb");
    require(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    for (int i = 0; i < 2; i++) { /* encoded images, bare samples */
        tp_record_source_options options = {
            .paths = paths,
            .path_count = 1,
            .index = {.policy = TP_RECORD_SKIP, .resident_bytes = 1 << 20},
            .image = {.height = 8, .width = 8, .channels = 3, .resize = TP_RESIZE_STRETCH}};
        tp_source *source = NULL;
        require(tp_record_preset_find(i ? "raw" : "tfds", &preset) == TPUCL_OK);
        tp_record_source_use_preset(preset, &options);
        if (tp_source_open_records(&options, &source) == TPUCL_OK) {
            uint64_t bytes = source->fields[0].bytes;
            if (bytes <= 1 << 20) read_all(source);
        } else {
            require(tpucl_last_error()->message[0]);
        }
        tp_source_destroy(source);
    }
    unlink(path);
    return 0;
}
