/* SPDX-License-Identifier: Apache-2.0
 * Runs a fuzz target without libFuzzer: over every file of a corpus folder, over each of its prefixes, and
 * over a fixed number of mutations drawn from a fixed seed. So the targets are ordinary tests with any
 * compiler. Usage: <target> <corpus folder> [mutations per file [prefixes per file]] */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer's names; a target may bring a mutator of its own, which calls the general one. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity,
                                                     unsigned seed);

enum { MAX_BYTES = 1 << 20, DEFAULT_MUTATIONS = 500, DEFAULT_PREFIXES = 2000 };

static uint64_t random_state = 1;

static uint64_t next_random(void) /* xorshift64 (Marsaglia 2003) */
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

/* The target sees a copy of exactly its size, so that a sanitizer sees a step over the end. */
static void run_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) exit(1);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* Changes, removes or doubles a few bytes; returns the new size. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t capacity)
{
    static const char interesting[] = "{}[]\",:0-9.eEtfn\\u \n\xff";
    for (uint64_t edits = 1 + next_random() % 4; edits && size; edits--) {
        size_t at = (size_t)(next_random() % size);
        size_t length = 1 + (size_t)(next_random() % 16);
        if (length > size - at) length = size - at;
        switch (next_random() % 4) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << next_random() % 8);
            break;
        case 1:
            bytes[at] = (uint8_t)interesting[next_random() % (sizeof interesting - 1)];
            break;
        case 2:
            memmove(bytes + at, bytes + at + length, size - at - length);
            size -= length;
            break;
        default:
            if (size + length > capacity) break;
            memmove(bytes + at + length, bytes + at, size - at);
            size += length;
        }
    }
    return size;
}

static void run_file(const char *path, long mutations, size_t prefixes)
{
    static uint8_t original[MAX_BYTES], changed[MAX_BYTES];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    size_t size = fread(original, 1, sizeof original, file);
    fclose(file);
    for (size_t length = 0; length <= size; length += 1 + size / prefixes)
        run_copy(original, length);
    run_copy(original, size);
    for (long i = 0; i < mutations; i++) {
        memcpy(changed, original, size);
        run_copy(changed,
                 LLVMFuzzerCustomMutator
                     ? LLVMFuzzerCustomMutator(changed, size, MAX_BYTES, (unsigned)next_random())
                     : LLVMFuzzerMutate(changed, size, MAX_BYTES));
    }
}

int main(int argument_count, char **arguments)
{
    long mutations = argument_count > 2 ? atol(arguments[2]) : DEFAULT_MUTATIONS;
    long prefixes = argument_count > 3 ? atol(arguments[3]) : DEFAULT_PREFIXES;
    DIR *folder = argument_count > 1 ? opendir(arguments[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: %s <corpus folder> [mutations per file [prefixes per file]]\n",
                arguments[0]);
        return 2;
    }
    int count = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", arguments[1], entry->d_name);
        run_file(path, mutations, prefixes > 0 ? (size_t)prefixes : 1);
        count++;
    }
    closedir(folder);
    printf("%d corpus files, %ld mutations each\n", count, mutations);
    return count ? 0 : 1;
}
