/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: whole files of Keras, archives and HDF5, through the import: container, configuration, mapping,
 * weights. */
#include <stdlib.h>
#include "keras/import.h"
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
    tp_keras_import *import = NULL;
    const tpucl_status status = tp_keras_import_bytes(data, size, "fuzz", &import);
    if (status != TPUCL_OK) {
        require(tpucl_last_error()->status == status && tpucl_last_error()->message[0]);
        return 0;
    }
    /* either a configuration, or what is wrong */
    const tpucl_status found = tp_keras_check_findings(&import->mapped.findings, "fuzz");
    require((found == TPUCL_OK) == (import->config != NULL));
    tp_keras_import_destroy(import);
    return 0;
}
