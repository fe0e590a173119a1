/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: zip archives. Entries that were accepted are read, within limits of size. */
#include <stdlib.h>
#include "core/alloc.h"
#include "io/zip.h"
#include "repair.h"

static void require(bool condition)
{
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);

/* Three of four changes get the checksums that belong to them. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
    const size_t changed = LLVMFuzzerMutate(data, size, capacity);
    if (seed % 4 != 3) tp_fuzz_repair_zip(data, changed);
    return changed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_zip *zip;
    tpucl_status status = tp_zip_open_bytes(data, size, "fuzz", &zip);
    if (status != TPUCL_OK) {
        require(tpucl_last_error()->status == status && tpucl_last_error()->message[0]);
        return 0;
    }
    for (int32_t i = 0; i < tp_zip_count(zip); i++) {
        const tp_zip_entry *entry = tp_zip_entry_at(zip, i);
        char *bytes;
        size_t length;
        if (tp_zip_read(zip, entry, 1 << 20, &bytes, &length) != TPUCL_OK) continue;
        require(length == entry->bytes && bytes[length] == 0);
        tp_free(bytes);
    }
    tp_zip_close(zip);
    return 0;
}
