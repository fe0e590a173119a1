/* SPDX-License-Identifier: Apache-2.0
 * What tuning records are filed under: problems, classes of devices, the kernels' sources.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/env.h"
#include "core/file.h"
#include "kernel/records.h"
#include "kernel/source.h"

/* ---- problems ---- */

typedef struct text {
    char *bytes;
    size_t length;
} text;

static void append(text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(text *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int added =
        vsnprintf(out->bytes + out->length, TP_MXU_KEY_BYTES - out->length, format, arguments);
    va_end(arguments);
    if (added > 0) out->length += (size_t)added;
    if (out->length >= TP_MXU_KEY_BYTES) out->length = TP_MXU_KEY_BYTES - 1;
}

/* 'N': rows of [outer or inner] as a dense matrix in the order of its name; 'T': the transposed one; 0: neither.
 * `rows` runs slowest in N. */
static char layout_of(const tp_mxu_operand *operand, int64_t batch, int64_t rows, int64_t columns,
                      bool outer_is_row)
{
    const int64_t row = outer_is_row ? operand->stride_outer : operand->stride_inner;
    const int64_t column = outer_is_row ? operand->stride_inner : operand->stride_outer;
    if (batch > 1 && operand->stride_batch != rows * columns) return 0;
    if (row == columns && column == 1) return 'N';
    return column == rows && row == 1 ? 'T' : 0;
}

static void append_strides(text *out, char name, const tp_mxu_operand *operand, int64_t batch)
{
    append(out, " %c=%lld,%lld,%lld", name, (long long)(batch > 1 ? operand->stride_batch : 0),
           (long long)operand->stride_outer, (long long)operand->stride_inner);
}

static void append_dot(text *out, const tp_mxu_problem *p)
{
    const char a = layout_of(&p->a, p->batch, p->m, p->k, true);
    const char b = layout_of(&p->b, p->batch, p->k, p->n, false);
    append(out, "dot %lld %lld %lld", (long long)p->m, (long long)p->n, (long long)p->k);
    if (p->batch != 1) append(out, " batch=%lld", (long long)p->batch);
    if (a != 0 && b != 0) {
        if (a != 'N' || b != 'N') append(out, " layout=%c%c", a, b);
        return;
    }
    append_strides(out, 'a', &p->a, p->batch);
    append_strides(out, 'b', &p->b, p->batch);
}

static void append_pair(text *out, const char *name, int64_t y, int64_t x)
{
    if (y == 1 && x == 1) return;
    if (y == x)
        append(out, " %s=%lld", name, (long long)y);
    else
        append(out, " %s=%lldx%lld", name, (long long)y, (long long)x);
}

static void append_conv(text *out, const tp_mxu_problem *p)
{
    const tp_mxu_conv *c = &p->conv;
    append(out, "conv %lld %lld %lld %lld %lld %lldx%lld", (long long)c->images, (long long)c->in_h,
           (long long)c->in_w, (long long)c->in_c, (long long)c->out_c, (long long)c->kernel_h,
           (long long)c->kernel_w);
    append_pair(out, "stride", c->stride_h, c->stride_w);
    append(out, " pad=%lld,%lld out=%lldx%lld", (long long)c->pad_top, (long long)c->pad_left,
           (long long)c->out_h, (long long)c->out_w);
    append_pair(out, "dilation", c->dilation_h, c->dilation_w);
    if (tp_mxu_groups(c) != 1) append(out, " groups=%lld", (long long)c->groups);
}

const char *tp_mxu_key_print(const tp_mxu_problem *problem, char out_text[TP_MXU_KEY_BYTES])
{
    text out = {out_text, 0};
    if (problem->kind == TP_MXU_DOT)
        append_dot(&out, problem);
    else
        append_conv(&out, problem);
    append(&out, " %s*%s", tp_dtype_name(problem->a.dtype), tp_dtype_name(problem->b.dtype));
    if (problem->precision != TP_PRECISION_DEFAULT)
        append(&out, " precision=%s", tp_precision_name(problem->precision));
    if (problem->kind == TP_MXU_CONV_INPUT_GRAD) append(&out, " op=input_grad");
    if (problem->kind == TP_MXU_CONV_FILTER_GRAD) append(&out, " op=filter_grad");
    return out_text;
}

/* ---- devices ---- */

/* Lower-case letters and digits; a dash for whatever else lies between. File names end at 255 bytes,
 * so names of drivers are cut. */
enum { SLUG_BYTES = 64 };
static void print_slug(const char *name, char out_text[SLUG_BYTES])
{
    size_t length = 0;
    for (; *name != '\0' && length + 1 < SLUG_BYTES; name++) {
        const unsigned char c = (unsigned char)*name;
        if (c < 0x80 && isalnum(c))
            out_text[length++] = (char)tolower(c);
        else if (length > 0 && out_text[length - 1] != '-')
            out_text[length++] = '-';
    }
    if (length > 0 && out_text[length - 1] == '-') length--;
    out_text[length] = '\0';
}

static const char *type_name(tp_device_type type)
{
    return type == TP_DEVICE_CPU ? "cpu" : type == TP_DEVICE_GPU ? "gpu" : "accelerator";
}

void tp_width_class_print(const tp_device_caps *caps, char out_text[TP_DEVICE_CLASS_BYTES])
{
    snprintf(out_text, TP_DEVICE_CLASS_BYTES, "%s-v%u%s", type_name(caps->type),
             caps->preferred_float_vector, caps->has_bf16_pairs ? "-pairs" : "");
}

void tp_device_class_print(const tp_device_caps *caps, char out_text[TP_DEVICE_CLASS_BYTES])
{
    char platform[SLUG_BYTES], name[SLUG_BYTES] = "",
                               width[TP_DEVICE_CLASS_BYTES]; /* of a few characters */
    const bool is_pocl = strcmp(caps->platform, "Portable Computing Language") == 0;
    tp_width_class_print(caps, width);
    print_slug(is_pocl ? "pocl" : caps->platform, platform);
    if (caps->type != TP_DEVICE_CPU) print_slug(caps->name, name);
    snprintf(out_text, TP_DEVICE_CLASS_BYTES, "%s%s%s%s%.32s", platform, platform[0] ? "-" : "",
             name, name[0] ? "-" : "", width);
}

/* ---- kernels, folder ---- */

tpucl_status tp_kernel_sources_hash(char out_hex[TP_SHA256_HEX_BYTES])
{
    tp_arena *arena = NULL;
    tp_sha256 hash;
    tpucl_status status = TPUCL_OK;
    TP_TRY(tp_arena_create(0, &arena));
    tp_sha256_init(&hash);
    for (const tp_embedded_file *file = tp_kernel_source_files(); file->name != NULL; file++) {
        const char *source = NULL;
        TP_TRY_GOTO(status, tp_kernel_source_find(file->name, arena, &source), done);
        tp_sha256_update_text(&hash, file->name);
        tp_sha256_update_text(&hash, source);
    }
    tp_sha256_finish_hex(&hash, out_hex);
done:
    tp_arena_destroy(arena);
    return status;
}

const char *tp_records_folder(tp_arena *arena)
{
    static const struct {
        tp_env_id id;
        const char *below;
    } places[] = {{TP_ENV_TUNING_DIR, ""},
                  {TP_ENV_XDG_DATA_HOME, "/tpucl/tuning"},
                  {TP_ENV_HOME, "/.local/share/tpucl/tuning"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *base = tp_env_text(places[i].id);
        if (base != NULL) return tp_arena_printf(arena, "%s%s", base, places[i].below);
    }
    return NULL;
}
