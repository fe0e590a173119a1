/* SPDX-License-Identifier: Apache-2.0
 * Protocol buffers' wire format, bytes by hand. */
#include "io/proto.h"

enum { MAX_VARINT_BYTES = 10, MAX_GROUPS = 32, MAX_FIELD_NUMBER = (1 << 29) - 1 };
enum { WIRE_BEGIN_GROUP = 3, WIRE_END_GROUP = 4 };

/* ---- reading ---- */

static bool mistake(tp_proto_reader *reader, const char *what)
{
    if (!reader->mistake) reader->mistake = what;
    return false;
}

static size_t left(const tp_proto_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

bool tp_proto_next_varint(tp_proto_reader *reader, uint64_t *out_value)
{
    uint64_t value = 0;
    const char *at = reader->at;
    if (reader->mistake || at == reader->end) return false;
    for (int i = 0; i < MAX_VARINT_BYTES; i++) {
        if (at == reader->end) return mistake(reader, "a number is cut");
        const uint8_t byte = (uint8_t)*at++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i); /* of the tenth byte one bit counts */
        if (byte < 0x80) {
            reader->at = at;
            *out_value = value;
            return true;
        }
    }
    return mistake(reader, "a number has more than 10 bytes");
}

static uint64_t little_endian(const char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++)
        value |= (uint64_t)(uint8_t)bytes[i] << (8 * i);
    return value;
}

bool tp_proto_next_fixed32(tp_proto_reader *reader, uint32_t *out_value)
{
    if (reader->mistake || reader->at == reader->end) return false;
    if (left(reader) < 4) return mistake(reader, "a number of 4 bytes is cut");
    *out_value = (uint32_t)little_endian(reader->at, 4);
    reader->at += 4;
    return true;
}

bool tp_proto_next_fixed64(tp_proto_reader *reader, uint64_t *out_value)
{
    if (reader->mistake || reader->at == reader->end) return false;
    if (left(reader) < 8) return mistake(reader, "a number of 8 bytes is cut");
    *out_value = little_endian(reader->at, 8);
    reader->at += 8;
    return true;
}

/* A field must have its value: the end of the message is a mistake here. */
static bool next_value(tp_proto_reader *reader, tp_proto_field *field)
{
    uint32_t narrow = 0;
    bool is_there = false;
    switch (field->wire) {
    case TP_PROTO_VARINT:
        is_there = tp_proto_next_varint(reader, &field->value);
        break;
    case TP_PROTO_FIXED64:
        is_there = tp_proto_next_fixed64(reader, &field->value);
        break;
    case TP_PROTO_FIXED32:
        is_there = tp_proto_next_fixed32(reader, &narrow);
        field->value = narrow;
        break;
    case TP_PROTO_BYTES:
        is_there = tp_proto_next_varint(reader, &field->value);
        if (!is_there) break;
        if (field->value > left(reader)) return mistake(reader, "a length exceeds what is left");
        field->bytes = (tp_view){reader->at, (size_t)field->value};
        reader->at += field->bytes.length;
        break;
    default:
        return mistake(reader, "a wire type is unknown");
    }
    return is_there || mistake(reader, "a field has no value");
}

/* Groups end by themselves, one inside the other; their contents are nobody's. */
bool tp_proto_next(tp_proto_reader *reader, tp_proto_field *out_field)
{
    uint32_t open[MAX_GROUPS];
    int depth = 0;
    uint64_t tag = 0;
    while (tp_proto_next_varint(reader, &tag)) {
        *out_field = (tp_proto_field){(uint32_t)(tag >> 3), (tp_proto_wire)(tag & 7), 0, {NULL, 0}};
        if (tag >> 3 == 0 || tag >> 3 > MAX_FIELD_NUMBER)
            return mistake(reader, "a field's number is out of range");
        if ((tag & 7) == WIRE_BEGIN_GROUP) {
            if (depth == MAX_GROUPS) return mistake(reader, "groups are nested too deep");
            open[depth++] = out_field->number;
        } else if ((tag & 7) == WIRE_END_GROUP) {
            if (depth == 0 || open[--depth] != out_field->number)
                return mistake(reader, "a group ends that was not begun");
        } else if (!next_value(reader, out_field)) {
            return false;
        } else if (depth == 0) {
            return true;
        }
    }
    return depth ? mistake(reader, "a group does not end") : false;
}

/* ---- writing ---- */

void tp_proto_put_varint(tp_str_builder *to, uint64_t value)
{
    char bytes[MAX_VARINT_BYTES];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (char)(uint8_t)(value | 0x80);
    bytes[count++] = (char)value;
    tp_str_append_bytes(to, bytes, count);
}

void tp_proto_put_tag(tp_str_builder *to, uint32_t number, tp_proto_wire wire)
{
    tp_proto_put_varint(to, (uint64_t)number << 3 | (unsigned)wire);
}

void tp_proto_put_uint(tp_str_builder *to, uint32_t number, uint64_t value)
{
    tp_proto_put_tag(to, number, TP_PROTO_VARINT);
    tp_proto_put_varint(to, value);
}

static void put_little_endian(tp_str_builder *to, uint64_t value, size_t count)
{
    char bytes[8];
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)(uint8_t)(value >> (8 * i));
    tp_str_append_bytes(to, bytes, count);
}

static uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void tp_proto_put_float(tp_str_builder *to, uint32_t number, float value)
{
    tp_proto_put_tag(to, number, TP_PROTO_FIXED32);
    put_little_endian(to, bits_of_float(value), 4);
}

void tp_proto_put_double(tp_str_builder *to, uint32_t number, double value)
{
    tp_proto_put_tag(to, number, TP_PROTO_FIXED64);
    put_little_endian(to, bits_of_double(value), 8);
}

void tp_proto_put_bytes(tp_str_builder *to, uint32_t number, const void *bytes, size_t length)
{
    tp_proto_put_tag(to, number, TP_PROTO_BYTES);
    tp_proto_put_varint(to, length);
    if (length) tp_str_append_bytes(to, bytes, length);
}

void tp_proto_put_text(tp_str_builder *to, uint32_t number, const char *text)
{
    tp_proto_put_bytes(to, number, text, strlen(text));
}

void tp_proto_put_floats(tp_str_builder *to, uint32_t number, const float *values, size_t count)
{
    tp_proto_put_tag(to, number, TP_PROTO_BYTES);
    tp_proto_put_varint(to, 4 * (uint64_t)count);
    for (size_t i = 0; i < count; i++)
        put_little_endian(to, bits_of_float(values[i]), 4);
}

void tp_proto_put_doubles(tp_str_builder *to, uint32_t number, const double *values, size_t count)
{
    tp_proto_put_tag(to, number, TP_PROTO_BYTES);
    tp_proto_put_varint(to, 8 * (uint64_t)count);
    for (size_t i = 0; i < count; i++)
        put_little_endian(to, bits_of_double(values[i]), 8);
}

void tp_proto_put_ints(tp_str_builder *to, uint32_t number, const int64_t *values, size_t count)
{
    const size_t begin = tp_proto_begin(to, number);
    for (size_t i = 0; i < count; i++)
        tp_proto_put_varint(to, (uint64_t)values[i]);
    tp_proto_end(to, begin);
}

size_t tp_proto_begin(tp_str_builder *to, uint32_t number)
{
    tp_proto_put_tag(to, number, TP_PROTO_BYTES);
    tp_str_append_char(to, 0); /* room for the length of short messages */
    return to->length;
}

void tp_proto_end(tp_str_builder *to, size_t begin)
{
    if (to->status != TPUCL_OK) return;
    const size_t length = to->length - begin;
    size_t more = 0; /* bytes of the length besides the first */
    for (uint64_t rest = (uint64_t)length >> 7; rest; rest >>= 7)
        more++;
    for (size_t i = 0; i < more; i++)
        tp_str_append_char(to, 0);
    if (to->status != TPUCL_OK) return;
    if (more) memmove(to->data + begin + more, to->data + begin, length);
    uint64_t rest = length;
    for (size_t i = 0; i <= more; i++, rest >>= 7)
        to->data[begin - 1 + i] = (char)(uint8_t)((rest & 0x7f) | (i < more ? 0x80 : 0));
}
