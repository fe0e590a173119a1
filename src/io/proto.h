/* SPDX-License-Identifier: Apache-2.0
 * The wire format of protocol buffers (protobuf.dev, "Encoding"): a message is a row of fields, each a tag
 * (number << 3 | wire type) and a value. No schema: who reads knows the numbers; unknown ones are passed over. */
#ifndef TP_IO_PROTO_H
#define TP_IO_PROTO_H

#include <string.h>
#include "core/str.h"

typedef enum tp_proto_wire {
    TP_PROTO_VARINT = 0,
    TP_PROTO_FIXED64 = 1,
    TP_PROTO_BYTES = 2, /* strings, messages, packed numbers */
    TP_PROTO_FIXED32 = 5
} tp_proto_wire;

/* ---- reading ---- */

/* Borrows the message. The first mistake sticks: next() is false from then on. */
typedef struct tp_proto_reader {
    const char *at, *end;
    const char *mistake; /* what is wrong with the bytes at `at`; NULL: nothing */
} tp_proto_reader;

typedef struct tp_proto_field {
    uint32_t number;
    tp_proto_wire wire;
    uint64_t value; /* VARINT, FIXED32, FIXED64 */
    tp_view bytes;  /* BYTES: where they lie in the message */
} tp_proto_field;

static inline tp_proto_reader tp_proto_read(tp_view message)
{
    return (tp_proto_reader){message.data, message.data + message.length, NULL};
}
/* False at the end, and when what follows is no field. Groups (wire types 3 and 4) are skipped. */
bool tp_proto_next(tp_proto_reader *reader, tp_proto_field *out_field);

/* Numbers of packed fields, one after the other; false at the end or with a mistake. */
bool tp_proto_next_varint(tp_proto_reader *reader, uint64_t *out_value);
bool tp_proto_next_fixed32(tp_proto_reader *reader, uint32_t *out_value);
bool tp_proto_next_fixed64(tp_proto_reader *reader, uint64_t *out_value);

/* ---- writing ---- */

/* Into a tp_str_builder, whose first failure sticks until finish. Numbers in the shortest form, as protoc's
 * own writers do it, so that equal messages are equal bytes. */
void tp_proto_put_tag(tp_str_builder *to, uint32_t number, tp_proto_wire wire);
void tp_proto_put_varint(tp_str_builder *to, uint64_t value); /* without a tag */
void tp_proto_put_uint(tp_str_builder *to, uint32_t number,
                       uint64_t value); /* negative: as uint64 */
void tp_proto_put_float(tp_str_builder *to, uint32_t number, float value);
void tp_proto_put_double(tp_str_builder *to, uint32_t number, double value);
void tp_proto_put_bytes(tp_str_builder *to, uint32_t number, const void *bytes, size_t length);
void tp_proto_put_text(tp_str_builder *to, uint32_t number, const char *text);
void tp_proto_put_floats(tp_str_builder *to, uint32_t number, const float *values, size_t count);
void tp_proto_put_doubles(tp_str_builder *to, uint32_t number, const double *values, size_t count);
void tp_proto_put_ints(tp_str_builder *to, uint32_t number, const int64_t *values, size_t count);

/* A message inside: what is put between the two is its contents. `begin` goes to its end. */
size_t tp_proto_begin(tp_str_builder *to, uint32_t number);
void tp_proto_end(tp_str_builder *to, size_t begin);

#endif
