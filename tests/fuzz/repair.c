/* SPDX-License-Identifier: Apache-2.0 */
#include "repair.h"
#include <string.h>
#include <zlib.h>

/* Layouts: PKWARE APPNOTE 6.3, sections 4.3.7 (local header) and 4.3.12 (central directory header). */
enum {
    LOCAL_BYTES = 30,
    LOCAL_CRC = 14,
    LOCAL_SIZE = 18,
    LOCAL_NAME_LENGTH = 26,
    LOCAL_EXTRA_LENGTH = 28,
    CENTRAL_BYTES = 46,
    CENTRAL_METHOD = 10,
    CENTRAL_CRC = 16,
    CENTRAL_OFFSET = 42
};

static uint32_t read_little(const uint8_t *at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << 8 * i;
    return value;
}

static void write_little(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void repair_entry(uint8_t *bytes, size_t size, uint8_t *central)
{
    const size_t local = read_little(central + CENTRAL_OFFSET, 4);
    if (read_little(central + CENTRAL_METHOD, 2) != 0) return;
    if (local > size || size - local < LOCAL_BYTES) return;
    if (memcmp(bytes + local, "PK\3\4", 4) != 0) return;
    const size_t names = read_little(bytes + local + LOCAL_NAME_LENGTH, 2) +
                         read_little(bytes + local + LOCAL_EXTRA_LENGTH, 2);
    const size_t data = local + LOCAL_BYTES + names;
    const size_t length = read_little(bytes + local + LOCAL_SIZE, 4);
    if (data > size || size - data < length) return;
    const uint32_t checksum = (uint32_t)crc32(0, bytes + data, (uInt)length);
    write_little(bytes + local + LOCAL_CRC, checksum);
    write_little(central + CENTRAL_CRC, checksum);
}

void tp_fuzz_repair_zip(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + CENTRAL_BYTES <= size; at++)
        if (memcmp(bytes + at, "PK\1\2", 4) == 0) repair_entry(bytes, size, bytes + at);
}
