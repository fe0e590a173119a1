/* SPDX-License-Identifier: Apache-2.0
 * Which features of a record become which fields: read from texts, or a preset's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "data/source_records.h"

static const char *const kind_names[] = {"image", "bytes", "float", "int"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

static tpucl_status expected(const char *text, const char *what)
{
    return TP_FAIL(TPUCL_INVALID_CONFIG,
                   "'%s' is no feature: expected %s; as in \"image/encoded image\", \"x "
                   "float[28,28]\" or \"label int -1\"",
                   text, what);
}

/* "[2,3]" or nothing; *inout_at moves behind it. */
static tpucl_status parse_shape(const char *text, const char **inout_at, tp_shape *out_shape)
{
    int64_t dims[TP_MAX_RANK] = {0};
    int rank = 0;
    const char *at = *inout_at;
    if (*at != '[') return tp_shape_init(out_shape, 0, dims);
    do {
        char *end;
        errno = 0;
        const long long dim = strtoll(at + 1, &end, 10);
        if (end == at + 1 || errno || dim < 1 || dim > INT32_MAX || rank == TP_MAX_RANK - 1)
            return expected(text, "sizes above 0 between the brackets");
        dims[rank++] = dim;
        at = end;
    } while (*at == ',');
    if (*at != ']') return expected(text, "']' behind the sizes");
    *inout_at = at + 1;
    return tp_shape_init(out_shape, rank, dims);
}

tpucl_status tp_record_field_parse(const char *text, tp_arena *arena, tp_record_field *out_field)
{
    const char *blank = strchr(text, ' ');
    tp_record_field field = {.kind = TP_RECORD_IMAGE};
    if (!blank || blank == text) return expected(text, "a key, a blank and a kind");
    const char *at = blank + 1;
    const size_t length = strcspn(at, "[ ");
    int kind = 0;
    while (kind < KINDS &&
           !(strlen(kind_names[kind]) == length && strncmp(kind_names[kind], at, length) == 0))
        kind++;
    if (kind == KINDS) return expected(text, "image, bytes, float or int behind the key");
    field.kind = (tp_record_field_kind)kind;
    at += length;
    TP_TRY(parse_shape(text, &at, &field.shape));
    if (field.kind == TP_RECORD_IMAGE && field.shape.rank)
        return expected(text, "the size of images in data.image");
    if (*at == ' ') {
        char *end;
        field.offset = strtoll(at + 1, &end, 10);
        if (field.kind != TP_RECORD_INT || end == at + 1)
            return expected(text, "a number to be added behind int alone");
        at = end;
    }
    if (*at) return expected(text, "nothing more");
    field.key = tp_arena_strndup(arena, text, (size_t)(blank - text));
    if (!field.key) return TPUCL_OUT_OF_MEMORY;
    *out_field = field;
    return TPUCL_OK;
}

void tp_record_source_use_preset(const tp_record_preset *preset, tp_record_source_options *options)
{
    options->fields[0] =
        (tp_record_field){.name = "image",
                          .key = preset->keys[TP_PART_IMAGE],
                          .kind = preset->is_raw ? TP_RECORD_BYTES : TP_RECORD_IMAGE};
    options->fields[1] = (tp_record_field){.name = "label",
                                           .key = preset->keys[TP_PART_LABEL],
                                           .kind = TP_RECORD_INT,
                                           .offset = -preset->first_label};
    options->field_count = 2;
    options->label_count = 1;
}
