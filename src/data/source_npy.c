/* SPDX-License-Identifier: Apache-2.0
 * NumPy's .npy files, versions 1 to 3 (numpy/lib/format.py): magic, version, length of a header that is a
 * Python dict literal with exactly the keys descr, fortran_order and shape, then the elements. The header
 * is parsed by hand, never evaluated.
 */
#include <ctype.h>
#include <string.h>
#include "core/alloc.h"
#include "core/file.h"
#include "data/source_internal.h"
#include "io/store.h"

enum { MAX_HEADER = 65536 };
static const size_t max_file_bytes = (size_t)1 << 36;
static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

typedef enum npy_kind {
    NPY_U1,
    NPY_I1,
    NPY_I2,
    NPY_I4,
    NPY_I8,
    NPY_U2,
    NPY_U4,
    NPY_F4,
    NPY_F8
} npy_kind;
static const struct {
    const char *descr;
    npy_kind kind;
    size_t bytes;
} npy_types[] = {{"|u1", NPY_U1, 1}, {"<u1", NPY_U1, 1}, {"|i1", NPY_I1, 1}, {"<i2", NPY_I2, 2},
                 {"<i4", NPY_I4, 4}, {"<i8", NPY_I8, 8}, {"<u2", NPY_U2, 2}, {"<u4", NPY_U4, 4},
                 {"<f4", NPY_F4, 4}, {"<f8", NPY_F8, 8}};

typedef struct cursor {
    const char *path, *text;
    size_t length, at, base; /* base: offset of the header in the file */
} cursor;

typedef struct npy_header {
    npy_kind kind;
    size_t element_bytes;
    tp_shape shape;
} npy_header;

static tpucl_status fail_at(const cursor *c, const char *expected)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA, "header of '%s' at offset %zu: expected %s", c->path,
                   c->base + c->at, expected);
}

static void skip_blanks(cursor *c)
{
    while (c->at < c->length && isspace((unsigned char)c->text[c->at]))
        c->at++;
}

static bool take(cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at >= c->length || c->text[c->at] != wanted) return false;
    c->at++;
    return true;
}

static tpucl_status take_text(cursor *c, char *out, size_t room)
{
    skip_blanks(c);
    char quote = c->at < c->length ? c->text[c->at] : '\0';
    if (quote != '\'' && quote != '"') return fail_at(c, "a quoted text");
    size_t begin = ++c->at;
    while (c->at < c->length && c->text[c->at] != quote)
        c->at++;
    if (c->at >= c->length || c->at - begin >= room) return fail_at(c, "a short quoted text");
    if (memchr(c->text + begin, '\0', c->at - begin)) return fail_at(c, "a text without zeros");
    memcpy(out, c->text + begin, c->at - begin);
    out[c->at - begin] = '\0';
    c->at++;
    return TPUCL_OK;
}

static bool take_word(cursor *c, const char *word)
{
    skip_blanks(c);
    size_t length = strlen(word);
    if (c->length - c->at < length || memcmp(c->text + c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

static tpucl_status take_shape(cursor *c, tp_shape *out)
{
    int64_t dims[TP_MAX_RANK];
    int rank = 0;
    if (!take(c, '(')) return fail_at(c, "'(' of a shape");
    while (!take(c, ')')) {
        if (rank == TP_MAX_RANK) return fail_at(c, "a shape of rank 8 or less");
        int64_t value = 0;
        size_t begin = c->at;
        while (c->at < c->length && isdigit((unsigned char)c->text[c->at])) {
            value = value * 10 + (c->text[c->at++] - '0');
            if (value > TP_MAX_ELEMS) return fail_at(c, "a smaller number");
        }
        if (c->at == begin) return fail_at(c, "a number or ')'");
        dims[rank++] = value;
        if (!take(c, ',') && !(c->at < c->length && c->text[c->at] == ')'))
            return fail_at(c, "',' or ')'");
        skip_blanks(c);
    }
    if (tp_shape_init(out, rank, dims) == TPUCL_OK) return TPUCL_OK;
    tp_error_note("header of '%s'", c->path);
    return tp_error_recast(TPUCL_CORRUPT_DATA);
}

static tpucl_status take_descr(cursor *c, npy_header *out)
{
    char descr[16];
    TP_TRY(take_text(c, descr, sizeof descr));
    for (size_t i = 0; i < sizeof npy_types / sizeof *npy_types; i++)
        if (strcmp(npy_types[i].descr, descr) == 0) {
            out->kind = npy_types[i].kind;
            out->element_bytes = npy_types[i].bytes;
            return TPUCL_OK;
        }
    return TP_FAIL(
        TPUCL_UNSUPPORTED,
        "'%s' has elements '%s'; expected little-endian u1, i1, u2, i2, u4, i4, i8, f4 or "
        "f8",
        c->path, descr);
}

static tpucl_status take_order(cursor *c)
{
    if (take_word(c, "True"))
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "'%s' is in Fortran order; save numpy.ascontiguousarray(x)", c->path);
    return take_word(c, "False") ? TPUCL_OK : fail_at(c, "True or False");
}

static tpucl_status parse_header(cursor *c, npy_header *out)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    int seen = 0;
    if (!take(c, '{')) return fail_at(c, "'{'");
    while (!take(c, '}')) {
        char key[24];
        int index = 0;
        TP_TRY(take_text(c, key, sizeof key));
        while (index < 3 && strcmp(keys[index], key) != 0)
            index++;
        if (index == 3) return fail_at(c, "the keys descr, fortran_order and shape only");
        if (seen >> index & 1) return fail_at(c, "every key once");
        seen |= 1 << index;
        if (!take(c, ':')) return fail_at(c, "':'");
        TP_TRY(index == 0   ? take_descr(c, out)
               : index == 1 ? take_order(c)
                            : take_shape(c, &out->shape));
        if (!take(c, ',')) {
            if (!take(c, '}')) return fail_at(c, "',' or '}'");
            break;
        }
    }
    return seen == 7 ? TPUCL_OK : fail_at(c, "all of descr, fortran_order and shape");
}

static tpucl_status no_npy(const char *path)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' is no .npy file: it does not start with 93 'NUMPY'",
                   path);
}

/* Before gigabytes are read of what may be any other file. */
static tpucl_status check_magic(const char *path)
{
    char head[sizeof magic];
    size_t length = 0;
    TP_TRY(tp_file_read_head(path, sizeof head, head, &length));
    return length && memcmp(head, magic, length) != 0 ? no_npy(path) : TPUCL_OK;
}

static tpucl_status find_data(const char *path, const char *bytes, size_t length, npy_header *out,
                              size_t *out_offset)
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (length < 10 || memcmp(bytes, magic, sizeof magic) != 0) return no_npy(path);
    size_t head = b[6] == 1 ? 10 : 12, text = 0;
    if (b[6] < 1 || b[6] > 3 || length < head)
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' has .npy version %d.%d; expected 1, 2 or 3", path,
                       b[6], b[7]);
    text = (size_t)b[8] | (size_t)b[9] << 8;
    if (head == 12) text |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (text > MAX_HEADER || text > length - head)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' has %zu bytes, its header says it is %zu long",
                       path, length, text);
    cursor c = {path, bytes + head, text, 0, head};
    TP_TRY(parse_header(&c, out));
    *out_offset = head + text;
    uint64_t wanted = (uint64_t)tp_shape_elems(&out->shape) * out->element_bytes;
    if (wanted != length - *out_offset)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' has %zu bytes of elements; its header promises %llu", path,
                       length - *out_offset, (unsigned long long)wanted);
    return TPUCL_OK;
}

static int64_t element_as_int(npy_kind kind, const char *at)
{
    int16_t i2;
    uint16_t u2;
    int32_t i4;
    uint32_t u4;
    int64_t i8;
    switch (kind) {
    case NPY_I1:
        return *(const signed char *)at;
    case NPY_I2:
        memcpy(&i2, at, 2);
        return i2;
    case NPY_U2:
        memcpy(&u2, at, 2);
        return u2;
    case NPY_I4:
        memcpy(&i4, at, 4);
        return i4;
    case NPY_U4:
        memcpy(&u4, at, 4);
        return u4;
    case NPY_I8:
        memcpy(&i8, at, 8);
        return i8;
    default:
        return *(const unsigned char *)at;
    }
}

static tpucl_status convert_ints(const char *path, const npy_header *header, const char *data,
                                 int32_t *out)
{
    int64_t count = tp_shape_elems(&header->shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t value = element_as_int(header->kind, data + (size_t)i * header->element_bytes);
        if (value < INT32_MIN || value > INT32_MAX)
            return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' element %lld is %lld, outside 32 bits", path,
                           (long long)i, (long long)value);
        out[i] = (int32_t)value;
    }
    return TPUCL_OK;
}

/* u1 stays bytes for inputs; other integers become s32, floats f32. */
static tpucl_status convert(const char *path, const npy_header *header, const char *data,
                            bool is_label, tp_file_array *out)
{
    int64_t count = tp_shape_elems(&header->shape);
    bool is_float = header->kind == NPY_F4 || header->kind == NPY_F8;
    bool is_bytes = header->kind == NPY_U1 && !is_label;
    out->shape = header->shape;
    out->dtype = is_bytes ? TP_U8 : is_float ? TP_F32 : TP_S32;
    out->data = tp_alloc((size_t)count * tp_dtype_size(out->dtype));
    if (!out->data) return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for the elements of '%s'", path);
    if (!is_bytes && !is_float) return convert_ints(path, header, data, out->data);
    if (header->kind == NPY_F8) {
        for (int64_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, data + 8 * (size_t)i, 8);
            ((float *)out->data)[i] = (float)value;
        }
        return TPUCL_OK;
    }
    memcpy(out->data, data, (size_t)count * header->element_bytes);
    return TPUCL_OK;
}

static tpucl_status open_npy(const char *path, bool is_label, tp_file_array *out)
{
    char *bytes = NULL;
    size_t length = 0, offset = 0;
    npy_header header = {0};
    if (!tp_store_is_remote(path)) TP_TRY(check_magic(tp_store_path(path)));
    TP_TRY(tp_store_read(path, max_file_bytes, &bytes, &length));
    tpucl_status status = find_data(path, bytes, length, &header, &offset);
    if (status == TPUCL_OK) status = convert(path, &header, bytes + offset, is_label, out);
    tp_free(bytes);
    if (status != TPUCL_OK) {
        tp_free(out->data);
        out->data = NULL;
    }
    return status;
}

tpucl_status tp_source_open_npy(const char *inputs_path, const char *labels_path,
                                tp_source **out_source)
{
    tp_file_array inputs = {0}, labels = {0};
    TP_TRY(open_npy(inputs_path, false, &inputs));
    tpucl_status status = open_npy(labels_path, true, &labels);
    if (status != TPUCL_OK) {
        tp_free(inputs.data);
        return status;
    }
    return tp_source_adopt_pair(inputs_path, &inputs, labels_path, &labels, out_source);
}

/* One file as the source's next field. */
static tpucl_status add_npy(const tp_source_file *file, const char *first_path, tp_source *source)
{
    tp_file_array array = {0};
    TP_TRY(open_npy(file->path, file->is_label, &array));
    tpucl_status status = TPUCL_OK;
    const int64_t examples = array.shape.rank > 0 ? array.shape.dims[0] : 0;
    if (array.shape.rank < 1 || array.shape.rank > TP_MAX_RANK - 1 || examples < 1)
        status = TP_FAIL(TPUCL_CORRUPT_DATA,
                         "'%s' has rank %d and %lld examples; expected an "
                         "example axis with at least one",
                         file->path, array.shape.rank, (long long)examples);
    else if (source->field_count && examples != source->example_count)
        status = TP_FAIL(
            TPUCL_CORRUPT_DATA, "'%s' has %lld examples and '%s' has %lld; expected equal numbers",
            first_path, (long long)source->example_count, file->path, (long long)examples);
    source->example_count = examples;
    if (status == TPUCL_OK) status = tp_source_add_field(source, file->name, &array);
    tp_free(array.data);
    return status;
}

tpucl_status tp_source_open_npy_files(const tp_source_file *files, int32_t file_count,
                                      tp_source **out_source)
{
    if (file_count < 1 || file_count > TP_SOURCE_MAX_FIELDS)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%d files, expected 1 to %d", file_count,
                       TP_SOURCE_MAX_FIELDS);
    tp_source *source = TP_NEW(tp_source);
    tpucl_status status = source ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < file_count && status == TPUCL_OK; i++) {
        status = add_npy(&files[i], files[0].path, source);
        source->label_count += files[i].is_label;
    }
    if (status != TPUCL_OK) {
        tp_source_destroy(source);
        return status;
    }
    *out_source = source;
    return TPUCL_OK;
}

tpucl_status tp_source_add_npy(tp_source *source, const tp_source_file *file)
{
    if (source->field_count == TP_SOURCE_MAX_FIELDS)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "the data have more than %d arrays",
                       TP_SOURCE_MAX_FIELDS);
    if (tp_source_find_field(source, file->name) >= 0)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "the data have an array '%s' already", file->name);
    TP_TRY(add_npy(file, source->fields[0].name, source));
    source->label_count += file->is_label;
    return TPUCL_OK;
}
