/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "io/tfrecord.h"
#include "repair.h"

void tp_fuzz_repair_records(uint8_t *data, size_t size)
{
    for (size_t at = 0; size - at >= TP_RECORD_HEAD_BYTES;) {
        uint8_t head[TP_RECORD_HEAD_BYTES], tail[TP_RECORD_TAIL_BYTES];
        const uint8_t *bytes = data + at + TP_RECORD_HEAD_BYTES;
        const size_t left = size - at - TP_RECORD_HEAD_BYTES;
        const size_t length = data[at] | (size_t)data[at + 1] << 8; /* longer ones are cut short */
        tp_record_frame(bytes, length < left ? length : left, head, tail);
        memcpy(data + at, head, sizeof head);
        if (left < length + TP_RECORD_TAIL_BYTES) return;
        memcpy(data + at + TP_RECORD_HEAD_BYTES + length, tail, sizeof tail);
        at += TP_RECORD_HEAD_BYTES + length + TP_RECORD_TAIL_BYTES;
    }
}
