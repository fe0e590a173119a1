/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: files of events. What is found is read completely; sums are repaired, so that what is behind them is
 * reached. */
#include <stdlib.h>
#include <string.h>
#include "io/event_scan.h"
#include "io/tfrecord.h"
#include "repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);

/* Seven of eight changes get the checksums that belong to them. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
    const size_t changed = LLVMFuzzerMutate(data, size, capacity);
    if (seed % 8 && tp_compression_sniff(data, changed) == TP_COMPRESSION_NONE)
        tp_fuzz_repair_records(data, changed);
    return changed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_event_scan scan = {0};
    tp_reader *source = NULL;
    if (tp_arena_create(0, &scan.arena) != TPUCL_OK) return 0;
    if (tp_reader_open_bytes(data, size, "fuzz", &source) == TPUCL_OK)
        (void)tp_event_scan_is_events(source);
    if (tp_reader_open_bytes(data, size, "fuzz", &source) == TPUCL_OK) {
        const tpucl_status status = tp_event_scan_add(&scan, source, "fuzz");
        if (status != TPUCL_OK && status != TPUCL_CORRUPT_DATA && status != TPUCL_OUT_OF_MEMORY)
            abort();
        tp_error_clear();
    }
    uint64_t values = 0;
    for (size_t i = 0; i < scan.tag_count; i++) {
        const tp_event_tag *tag = &scan.tags[i];
        if (!*tag->tag || strlen(tag->plugin) > size || tag->first_step > tag->last_step) abort();
        values += tag->values;
    }
    if (scan.tag_count > values) abort();
    tp_arena_destroy(scan.arena);
    return 0;
}
