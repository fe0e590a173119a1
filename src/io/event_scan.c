/* SPDX-License-Identifier: Apache-2.0
 * Event and Summary messages (TensorBoard, compat/proto/event.proto, summary.proto): the fields that say what there
 * is; pictures and tensors are passed over. */
#include "io/event_scan.h"

#include <string.h>
#include "io/proto.h"
#include "io/tfrecord.h"

enum { EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { SUMMARY_VALUE = 1 };
enum {
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_IMAGE = 4,
    VALUE_HISTOGRAM = 5,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9
};
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1 };
enum { SESSION_LOG_STATUS = 1, SESSION_START = 1 };
enum { TENSOR_FLOATS = 5, MOST_TAGS = 1 << 20 };

typedef struct value {
    tp_view tag, plugin;
    bool is_scalar;
    double scalar;
    uint64_t bytes;
} value;

static float float_of(uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    float number;
    memcpy(&number, &word, sizeof number);
    return number;
}

static tp_view plugin_of(tp_view metadata)
{
    tp_proto_reader outer = tp_proto_read(metadata);
    tp_proto_field field;
    tp_view name = {"", 0};
    while (tp_proto_next(&outer, &field)) {
        if (field.number != METADATA_PLUGIN || field.wire != TP_PROTO_BYTES) continue;
        tp_proto_reader inner = tp_proto_read(field.bytes);
        while (tp_proto_next(&inner, &field))
            if (field.number == PLUGIN_NAME && field.wire == TP_PROTO_BYTES) name = field.bytes;
    }
    return name;
}

/* The one number of a tensor of floats, packed or not. */
static void read_tensor(tp_view tensor, value *out)
{
    tp_proto_reader reader = tp_proto_read(tensor);
    tp_proto_field field;
    while (tp_proto_next(&reader, &field)) {
        if (field.number != TENSOR_FLOATS) continue;
        uint32_t word = (uint32_t)field.value;
        if (field.wire == TP_PROTO_BYTES && field.bytes.length == 4)
            memcpy(&word, field.bytes.data, sizeof word);
        else if (field.wire != TP_PROTO_FIXED32)
            continue;
        out->is_scalar = true;
        out->scalar = (double)float_of(word);
    }
}

static bool read_value(tp_view message, value *out)
{
    tp_proto_reader reader = tp_proto_read(message);
    tp_proto_field field;
    *out = (value){.plugin = {"", 0}, .bytes = message.length};
    while (tp_proto_next(&reader, &field)) {
        if (field.number == VALUE_SIMPLE && field.wire == TP_PROTO_FIXED32) {
            out->is_scalar = true;
            out->scalar = (double)float_of(field.value);
            out->plugin = tp_view_of("scalars");
        }
        if (field.wire != TP_PROTO_BYTES) continue;
        if (field.number == VALUE_TAG) out->tag = field.bytes;
        if (field.number == VALUE_IMAGE) out->plugin = tp_view_of("images");
        if (field.number == VALUE_HISTOGRAM) out->plugin = tp_view_of("histograms");
        if (field.number == VALUE_TENSOR) read_tensor(field.bytes, out);
        if (field.number == VALUE_METADATA) out->plugin = plugin_of(field.bytes);
    }
    return reader.mistake == NULL;
}

static tp_event_tag *find_tag(tp_event_scan *scan, const value *v)
{
    for (size_t i = 0; i < scan->tag_count; i++)
        if (strlen(scan->tags[i].tag) == v->tag.length &&
            memcmp(scan->tags[i].tag, v->tag.data, v->tag.length) == 0)
            return &scan->tags[i];
    if (scan->tag_count == MOST_TAGS) return NULL;
    if (scan->tag_count == scan->tag_capacity) {
        const size_t capacity = scan->tag_capacity ? 2 * scan->tag_capacity : 32;
        tp_event_tag *tags = TP_ARENA_NEW_ARRAY(scan->arena, tp_event_tag, capacity);
        if (!tags) return NULL;
        if (scan->tag_count) memcpy(tags, scan->tags, scan->tag_count * sizeof *tags);
        scan->tags = tags;
        scan->tag_capacity = capacity;
    }
    tp_event_tag tag = {.tag = tp_arena_strndup(scan->arena, v->tag.data, v->tag.length),
                        .plugin = ""};
    if (!tag.tag || strlen(tag.tag) != v->tag.length) return NULL; /* a zero inside is no tag */
    scan->tags[scan->tag_count] = tag;
    return &scan->tags[scan->tag_count++];
}

static tpucl_status add_value(tp_event_scan *scan, const value *v, int64_t step)
{
    tp_event_tag *tag = v->tag.length ? find_tag(scan, v) : NULL;
    if (!tag) return TPUCL_OK;
    /* Only the first value of a tag says what shows it. */
    if (!*tag->plugin && v->plugin.length) {
        tag->plugin = tp_arena_strndup(scan->arena, v->plugin.data, v->plugin.length);
        if (!tag->plugin) return TPUCL_OUT_OF_MEMORY;
    }
    if (!tag->values || step < tag->first_step) tag->first_step = step;
    if (!tag->values || step >= tag->last_step) {
        tag->last_step = step;
        tag->is_scalar = v->is_scalar && strcmp(tag->plugin, "scalars") == 0;
        tag->last_value = v->scalar;
    }
    tag->values++;
    tag->bytes += v->bytes;
    return TPUCL_OK;
}

static tpucl_status add_summary(tp_event_scan *scan, tp_view summary, int64_t step,
                                bool *out_is_good)
{
    tp_proto_reader reader = tp_proto_read(summary);
    tp_proto_field field;
    value v;
    while (tp_proto_next(&reader, &field)) {
        if (field.number != SUMMARY_VALUE || field.wire != TP_PROTO_BYTES) continue;
        if (!read_value(field.bytes, &v)) *out_is_good = false;
        TP_TRY(add_value(scan, &v, step));
    }
    if (reader.mistake) *out_is_good = false;
    return TPUCL_OK;
}

static bool is_start(tp_view log)
{
    tp_proto_reader reader = tp_proto_read(log);
    tp_proto_field field;
    bool is = false;
    while (tp_proto_next(&reader, &field))
        is = is || (field.number == SESSION_LOG_STATUS && field.value == SESSION_START);
    return is;
}

static tpucl_status add_event(tp_event_scan *scan, const tp_record *record, const char *name)
{
    const tp_view message = {(const char *)record->bytes, record->length};
    tp_proto_reader reader = tp_proto_read(message);
    tp_proto_field field;
    tp_view summary = {NULL, 0};
    int64_t step = 0;
    bool is_good = true;
    while (tp_proto_next(&reader, &field)) {
        if (field.number == EVENT_STEP && field.wire == TP_PROTO_VARINT)
            step = (int64_t)field.value;
        if (field.number == EVENT_SUMMARY && field.wire == TP_PROTO_BYTES) summary = field.bytes;
        if (field.number == EVENT_SESSION_LOG && field.wire == TP_PROTO_BYTES &&
            is_start(field.bytes))
            scan->starts++;
    }
    is_good = reader.mistake == NULL;
    scan->events++;
    if (summary.data) TP_TRY(add_summary(scan, summary, step, &is_good));
    if (is_good) return TPUCL_OK;
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': the record at %llu is no event", name,
                   (unsigned long long)record->offset);
}

bool tp_event_scan_is_events(tp_reader *source)
{
    const tp_record_options options = {.max_record_bytes = 1 << 16};
    tp_record_reader *reader = NULL;
    tp_record record;
    bool found = false, is = false;
    if (tp_record_reader_adopt(source, &options, &reader) == TPUCL_OK &&
        tp_record_reader_next(reader, &record, &found) == TPUCL_OK && found) {
        const tp_view message = {(const char *)record.bytes, record.length};
        tp_proto_reader fields = tp_proto_read(message);
        tp_proto_field field;
        while (tp_proto_next(&fields, &field))
            is = is || (field.number == EVENT_FILE_VERSION && field.wire == TP_PROTO_BYTES &&
                        field.bytes.length > 6 && memcmp(field.bytes.data, "brain.", 6) == 0);
    }
    tp_record_reader_close(reader);
    tp_error_clear();
    return is;
}

tpucl_status tp_event_scan_add(tp_event_scan *scan, tp_reader *source, const char *name)
{
    const tp_record_options options = {0};
    tp_record_reader *reader = NULL;
    tp_record record;
    bool found = true;
    TP_TRY(tp_record_reader_adopt(source, &options, &reader));
    tpucl_status status = TPUCL_OK;
    while (status == TPUCL_OK && found) {
        status = tp_record_reader_next(reader, &record, &found);
        if (status == TPUCL_OK && found) status = add_event(scan, &record, name);
    }
    tp_record_reader_close(reader);
    return status;
}
