/* SPDX-License-Identifier: Apache-2.0
 * Binary files that may come from anywhere: saved parameters (safetensors), data sets (IDX plain and gzip, npy).
 * Every input goes through all of the readers; what is wrong must be an error with a sentence. The readers take
 * paths, so the bytes stand in memory files. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "data/source.h"
#include "io/safetensors.h"

typedef struct memory_file {
    int descriptor;
    char path[32];
} memory_file;

static memory_file memory_file_open(const void *bytes, size_t size)
{
    memory_file file = {.descriptor = memfd_create("fuzz", MFD_CLOEXEC)};
    if (file.descriptor < 0 || write(file.descriptor, bytes, size) != (ssize_t)size) abort();
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.descriptor);
    return file;
}

static void require_sentence(tpucl_status status)
{
    if (status != TPUCL_OK && !tpucl_last_error()->message[0]) abort();
}

/* Two labels, right in both formats. */
static const char idx_labels[] = "\0\0\x08\x01\0\0\0\x02\1\2";
static const char npy_labels[] =
    "\x93NUMPY\1\0\x3d\0{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}      \1\2";

static void read_parameters(const char *path)
{
    tp_safetensors *file = NULL;
    const tpucl_status status = tp_safetensors_open(path, &file);
    require_sentence(status);
    unsigned sum = 0;
    for (int32_t i = 0; status == TPUCL_OK && i < tp_safetensors_count(file); i++) {
        const tp_tensor_entry *entry = tp_safetensors_entry(file, i);
        for (uint64_t k = 0; k < entry->bytes; k++)
            sum += ((const unsigned char *)entry->data)[k];
    }
    if (sum == UINT32_MAX) puts("read"); /* so that the reads stay */
    tp_safetensors_close(file);
}

static void read_source(tpucl_status (*open)(const char *, const char *, tp_source **),
                        const char *inputs, const char *labels)
{
    tp_source *source = NULL;
    require_sentence(open(inputs, labels, &source));
    if (source) require_sentence(tp_source_wait(source));
    tp_source_destroy(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memory_file file = memory_file_open(data, size);
    memory_file idx = memory_file_open(idx_labels, sizeof idx_labels - 1);
    memory_file npy = memory_file_open(npy_labels, sizeof npy_labels - 1);
    read_parameters(file.path);
    read_source(tp_source_open_idx, file.path, idx.path);
    read_source(tp_source_open_idx, idx.path, file.path);
    read_source(tp_source_open_npy, file.path, npy.path);
    read_source(tp_source_open_npy, npy.path, file.path);
    close(file.descriptor);
    close(idx.descriptor);
    close(npy.descriptor);
    return 0;
}
