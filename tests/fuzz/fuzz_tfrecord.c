/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: TFRecord files, compressed or not, under both policies. */
#include <stdlib.h>
#include <tpucl/status.h>
#include "io/tfrecord.h"
#include "repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);

/* Every other change gets the checksums that belong to it. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
    const size_t changed = LLVMFuzzerMutate(data, size, capacity);
    if (seed % 2 && tp_compression_sniff(data, changed) == TP_COMPRESSION_NONE)
        tp_fuzz_repair_records(data, changed);
    return changed;
}

static void read_all(const uint8_t *data, size_t size, tp_record_policy policy, bool is_unchecked)
{
    const tp_record_options options = {
        .policy = policy, .is_unchecked = is_unchecked, .max_record_bytes = 1 << 24};
    tp_reader *source;
    tp_record_reader *reader;
    tp_record record;
    bool found = true;
    uint64_t sum = 0;
    require(tp_reader_open_bytes(data, size, "fuzz", &source) == TPUCL_OK);
    require(tp_record_reader_adopt(source, &options, &reader) == TPUCL_OK);
    while (found) {
        const tpucl_status status = tp_record_reader_next(reader, &record, &found);
        require(policy == TP_RECORD_STOP || status == TPUCL_OK);
        if (status != TPUCL_OK) {
            require(status == TPUCL_CORRUPT_DATA && tpucl_last_error()->message[0]);
            break;
        }
        for (size_t i = 0; found && i < record.length; i++)
            sum += record.bytes[i];
    }
    require(sum <= 255 * tp_record_reader_counts(reader).bytes);
    tp_record_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size, TP_RECORD_STOP, false);
    read_all(data, size, TP_RECORD_SKIP, true);
    return 0;
}
