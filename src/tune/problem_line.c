/* SPDX-License-Identifier: Apache-2.0
 * See problem_line.h. Words are cut at blanks; sizes come first, in their order, then options in any.
 */
#include "tune/problem_line.h"

#include <stdio.h>
#include "core/file.h"
#include "core/problems.h"

#define MAX_SIZE INT32_MAX
#define MAX_ELEMENTS ((int64_t)1 << 40)
#define MAX_MULTIPLY_ADDS ((int64_t)1 << 60)
enum { MAX_FILE_BYTES = 1 << 20 };

/* What options say, before sizes are worked out from it. */
typedef enum pad_rule { PAD_SAME, PAD_VALID, PAD_NUMBER } pad_rule;
typedef struct conv_options {
    pad_rule rule;
    int64_t pad, stride, dilation;
} conv_options;

/* ---- words ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool next_word(tp_view *inout_rest, tp_view *out_word)
{
    size_t begin = 0, end;
    while (begin < inout_rest->length && is_blank(inout_rest->data[begin]))
        begin++;
    for (end = begin; end < inout_rest->length && !is_blank(inout_rest->data[end]);)
        end++;
    if (begin == end) return false;
    *out_word = (tp_view){inout_rest->data + begin, end - begin};
    *inout_rest = (tp_view){inout_rest->data + end, inout_rest->length - end};
    return true;
}

static tpucl_status parse_number(tp_view word, const char *name, int64_t least, int64_t *out_value)
{
    if (tp_str_parse_int64(word, out_value) == TPUCL_OK && *out_value >= least &&
        *out_value <= MAX_SIZE)
        return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s is '%.*s', expected a number from %lld to %lld",
                   name, TP_VIEW_ARGS(word), (long long)least, (long long)MAX_SIZE);
}

static tpucl_status next_size(tp_view *inout_rest, const char *name, int64_t *out_value)
{
    tp_view word;
    if (!next_word(inout_rest, &word))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s is missing", name);
    return parse_number(word, name, 1, out_value);
}

static tpucl_status next_kernel(tp_view *inout_rest, tp_mxu_conv *conv)
{
    tp_view word, height;
    if (!next_word(inout_rest, &word))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the kernel's size is missing, expected '3x3'");
    if (!tp_view_next(&word, 'x', &height) || word.length == 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the kernel's size is '%.*s', expected '3x3'",
                       TP_VIEW_ARGS(height));
    TP_TRY(parse_number(height, "the kernel's height", 1, &conv->kernel_h));
    return parse_number(word, "the kernel's width", 1, &conv->kernel_w);
}

/* ---- options ---- */

static tpucl_status parse_layout(tp_view value, tp_problem_line *line)
{
    bool fits = value.length == 2;
    for (size_t i = 0; fits && i < 2; i++)
        fits = value.data[i] == 'N' || value.data[i] == 'T';
    if (!fits)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "layout is '%.*s', expected NN, NT, TN or TT",
                       TP_VIEW_ARGS(value));
    line->a_is_transposed = value.data[0] == 'T';
    line->b_is_transposed = value.data[1] == 'T';
    return TPUCL_OK;
}

static tpucl_status parse_pad(tp_view value, conv_options *options)
{
    options->rule = tp_view_equal_text(value, "same")    ? PAD_SAME
                    : tp_view_equal_text(value, "valid") ? PAD_VALID
                                                         : PAD_NUMBER;
    return options->rule == PAD_NUMBER ? parse_number(value, "pad", 0, &options->pad) : TPUCL_OK;
}

static tpucl_status parse_op(tp_view value, tp_mxu_kind *out_kind)
{
    if (tp_view_equal_text(value, "forward"))
        *out_kind = TP_MXU_CONV;
    else if (tp_view_equal_text(value, "input_grad"))
        *out_kind = TP_MXU_CONV_INPUT_GRAD;
    else if (tp_view_equal_text(value, "filter_grad"))
        *out_kind = TP_MXU_CONV_FILTER_GRAD;
    else
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "op is '%.*s', expected forward, input_grad or filter_grad",
                       TP_VIEW_ARGS(value));
    return TPUCL_OK;
}

typedef enum option { TIMES, BATCH, LAYOUT, STRIDE, PAD, DILATION, GROUPS, OP, OPTIONS } option;
static const char *const names[OPTIONS] = {"times", "batch",    "layout", "stride",
                                           "pad",   "dilation", "groups", "op"};

static tpucl_status parse_value(option which, tp_view value, tp_problem_line *line,
                                conv_options *options)
{
    switch (which) {
    case TIMES:
        return parse_number(value, "times", 1, &line->times);
    case BATCH:
        return parse_number(value, "batch", 1, &line->batch);
    case LAYOUT:
        return parse_layout(value, line);
    case STRIDE:
        return parse_number(value, "stride", 1, &options->stride);
    case PAD:
        return parse_pad(value, options);
    case DILATION:
        return parse_number(value, "dilation", 1, &options->dilation);
    case GROUPS:
        return parse_number(value, "groups", 1, &line->conv.groups);
    case OP:
        return parse_op(value, &line->kind);
    case OPTIONS:
        break;
    }
    return TPUCL_OK;
}

static tpucl_status parse_options(tp_view rest, tp_problem_line *line, conv_options *options)
{
    bool was_given[OPTIONS] = {false};
    const bool is_dot = line->kind == TP_MXU_DOT;
    tp_view word, name;
    while (next_word(&rest, &word)) {
        int which = 0;
        const tp_view whole = word;
        if (!tp_view_next(&word, '=', &name) || name.length == whole.length)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%.*s' is too much here, expected options: %s",
                           TP_VIEW_ARGS(whole),
                           is_dot ? "batch= layout= times="
                                  : "stride= pad= dilation= groups= op= times=");
        while (which < OPTIONS && !tp_view_equal_text(name, names[which]))
            which++;
        if (which == OPTIONS || (which != TIMES && is_dot != (which == BATCH || which == LAYOUT)))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s has no option '%.*s', expected %s",
                           is_dot ? "dot" : "conv", TP_VIEW_ARGS(name),
                           is_dot ? "batch, layout or times"
                                  : "stride, pad, dilation, groups, op or times");
        if (was_given[which])
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' is given twice", names[which]);
        was_given[which] = true;
        TP_TRY(parse_value((option)which, word, line, options));
    }
    return TPUCL_OK;
}

/* ---- sizes ---- */

static bool multiply(int64_t *inout_product, int64_t factor, int64_t limit)
{
    if (factor > 0 && *inout_product > (limit - 1) / factor) return false;
    *inout_product *= factor;
    return true;
}

/* Whether the product of `count` factors stays below `limit`. */
static bool is_below(int64_t limit, const int64_t *factors, size_t count)
{
    int64_t product = 1;
    for (size_t i = 0; i < count; i++)
        if (!multiply(&product, factors[i], limit)) return false;
    return true;
}

static tpucl_status check_sizes(const tp_problem_line *line)
{
    const tp_mxu_conv *c = &line->conv;
    bool fits = true;
    if (line->kind == TP_MXU_DOT) {
        fits = is_below(MAX_ELEMENTS, (const int64_t[]){line->batch, line->m, line->k}, 3) &&
               is_below(MAX_ELEMENTS, (const int64_t[]){line->batch, line->k, line->n}, 3) &&
               is_below(MAX_ELEMENTS, (const int64_t[]){line->batch, line->m, line->n}, 3);
    } else {
        fits =
            is_below(MAX_ELEMENTS, (const int64_t[]){c->images, c->in_h, c->in_w, c->in_c}, 4) &&
            is_below(MAX_ELEMENTS, (const int64_t[]){c->images, c->out_h, c->out_w, c->out_c}, 4) &&
            is_below(MAX_ELEMENTS, (const int64_t[]){c->kernel_h, c->kernel_w, c->in_c, c->out_c},
                     4);
    }
    if (!fits)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "a tensor has 2^40 elements or more, too many");
    return TPUCL_OK;
}

static tpucl_status check_work(const tp_problem_line *line)
{
    if (is_below(MAX_MULTIPLY_ADDS, (const int64_t[]){line->batch, line->m, line->n, line->k}, 4))
        return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "it has 2^60 multiply-adds or more, too many");
}

/* Keras' "same": as many outputs as strides begin in the input. */
static tpucl_status pad_axis(const conv_options *options, const char *axis, int64_t in,
                             int64_t kernel, int64_t *out_before, int64_t *out_size)
{
    const int64_t reach = (kernel - 1) * options->dilation + 1; /* below 2^62 + 1 */
    if (options->rule == PAD_SAME) {
        *out_size = (in - 1) / options->stride + 1;
        const int64_t whole = (*out_size - 1) * options->stride + reach - in;
        *out_before = whole > 0 ? whole / 2 : 0;
        return TPUCL_OK;
    }
    *out_before = options->rule == PAD_NUMBER ? options->pad : 0;
    const int64_t room = in + 2 * *out_before - reach;
    if (room < 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "the %s of %lld with its padding is smaller than the kernel's reach of %lld",
                       axis, (long long)in, (long long)reach);
    *out_size = room / options->stride + 1;
    return TPUCL_OK;
}

static tpucl_status set_conv_sizes(tp_problem_line *line, const conv_options *options)
{
    tp_mxu_conv *c = &line->conv;
    if (c->in_c % c->groups != 0 || c->out_c % c->groups != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%lld channels and %lld filters do not divide into %lld groups",
                       (long long)c->in_c, (long long)c->out_c, (long long)c->groups);
    c->stride_h = c->stride_w = options->stride;
    c->dilation_h = c->dilation_w = options->dilation;
    TP_TRY(pad_axis(options, "height", c->in_h, c->kernel_h, &c->pad_top, &c->out_h));
    TP_TRY(pad_axis(options, "width", c->in_w, c->kernel_w, &c->pad_left, &c->out_w));
    TP_TRY(check_sizes(line));
    const int64_t taps = c->kernel_h * c->kernel_w;
    if (line->kind == TP_MXU_CONV_FILTER_GRAD) {
        line->m = taps * (c->in_c / c->groups);
        line->n = c->out_c;
        line->k = c->images * c->out_h * c->out_w;
    } else if (line->kind == TP_MXU_CONV_INPUT_GRAD) {
        line->m = c->images * c->in_h * c->in_w;
        line->n = c->in_c;
        line->k = taps * (c->out_c / c->groups);
    } else {
        line->m = c->images * c->out_h * c->out_w;
        line->n = c->out_c;
        line->k = taps * (c->in_c / c->groups);
    }
    return TPUCL_OK;
}

/* ---- lines ---- */

static tpucl_status parse_dot(tp_view rest, tp_problem_line *line)
{
    conv_options unused = {0};
    line->kind = TP_MXU_DOT;
    TP_TRY(next_size(&rest, "M", &line->m));
    TP_TRY(next_size(&rest, "N", &line->n));
    TP_TRY(next_size(&rest, "K", &line->k));
    TP_TRY(parse_options(rest, line, &unused));
    return check_sizes(line);
}

static tpucl_status parse_conv(tp_view rest, tp_problem_line *line)
{
    conv_options options = {.rule = PAD_SAME, .stride = 1, .dilation = 1};
    line->kind = TP_MXU_CONV;
    line->conv.groups = 1;
    TP_TRY(next_size(&rest, "the number of images", &line->conv.images));
    TP_TRY(next_size(&rest, "the height", &line->conv.in_h));
    TP_TRY(next_size(&rest, "the width", &line->conv.in_w));
    TP_TRY(next_size(&rest, "the number of channels", &line->conv.in_c));
    TP_TRY(next_size(&rest, "the number of filters", &line->conv.out_c));
    TP_TRY(next_kernel(&rest, &line->conv));
    TP_TRY(parse_options(rest, line, &options));
    return set_conv_sizes(line, &options);
}

tpucl_status tp_problem_line_parse(tp_view text, tp_problem_line *out_line)
{
    tp_view rest = text, word;
    *out_line = (tp_problem_line){.batch = 1, .times = 1, .number = 1};
    for (size_t i = 0; i < rest.length; i++)
        if (rest.data[i] == '#') rest.length = i;
    if (!next_word(&rest, &word)) return TP_FAIL(TPUCL_NOT_FOUND, "the line has no problem");
    if (tp_view_equal_text(word, "dot"))
        TP_TRY(parse_dot(rest, out_line));
    else if (tp_view_equal_text(word, "conv"))
        TP_TRY(parse_conv(rest, out_line));
    else
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the line begins with '%.*s', expected dot or conv",
                       TP_VIEW_ARGS(word));
    return check_work(out_line);
}

tpucl_status tp_problem_lines_parse(tp_view text, const char *what, tp_problem_lines *out_lines)
{
    tp_problems problems = {0};
    tp_view part;
    for (int32_t number = 1; tp_view_next(&text, '\n', &part); number++) {
        tp_problem_line line;
        const tpucl_status status = tp_problem_line_parse(part, &line);
        line.number = number;
        if (status == TPUCL_OK)
            TP_TRY(tp_problem_lines_push(out_lines, line));
        else if (status != TPUCL_NOT_FOUND)
            tp_problems_add(&problems, "%s:%d: %s", what, number, tpucl_last_error()->message);
    }
    return tp_problems_result(&problems, TPUCL_INVALID_ARGUMENT, what);
}

tpucl_status tp_problem_lines_read(const char *path, tp_problem_lines *out_lines)
{
    char *text;
    size_t length;
    TP_TRY(tp_file_read(path, MAX_FILE_BYTES, &text, &length));
    const tpucl_status status =
        tp_problem_lines_parse((tp_view){text, length}, tp_file_base_name(path), out_lines);
    tp_free(text);
    return status;
}

/* ---- what a line is ---- */

static bool is_same_padded(const tp_mxu_conv *c)
{
    const conv_options same = {.stride = c->stride_h, .dilation = c->dilation_h};
    int64_t top, left, height, width;
    return pad_axis(&same, "", c->in_h, c->kernel_h, &top, &height) == TPUCL_OK &&
           pad_axis(&same, "", c->in_w, c->kernel_w, &left, &width) == TPUCL_OK &&
           top == c->pad_top && left == c->pad_left && height == c->out_h && width == c->out_w;
}

static const char *op_text(tp_mxu_kind kind)
{
    return kind == TP_MXU_CONV_INPUT_GRAD    ? " op=input_grad"
           : kind == TP_MXU_CONV_FILTER_GRAD ? " op=filter_grad"
                                             : "";
}

static void append(char *out_text, size_t *inout_length, const char *name, int64_t value)
{
    *inout_length +=
        (size_t)snprintf(out_text + *inout_length, 32, " %s=%lld", name, (long long)value);
}

void tp_problem_line_print(const tp_problem_line *line, char out_text[TP_PROBLEM_LINE_BYTES])
{
    const tp_mxu_conv *c = &line->conv;
    size_t length;
    if (line->kind == TP_MXU_DOT) {
        length = (size_t)snprintf(out_text, TP_PROBLEM_LINE_BYTES, "dot %lld %lld %lld",
                                  (long long)line->m, (long long)line->n, (long long)line->k);
        if (line->batch != 1) append(out_text, &length, "batch", line->batch);
        if (line->a_is_transposed || line->b_is_transposed)
            snprintf(out_text + length, 16, " layout=%c%c", line->a_is_transposed ? 'T' : 'N',
                     line->b_is_transposed ? 'T' : 'N');
        return;
    }
    length = (size_t)snprintf(out_text, TP_PROBLEM_LINE_BYTES,
                              "conv %lld %lld %lld %lld %lld %lldx%lld", (long long)c->images,
                              (long long)c->in_h, (long long)c->in_w, (long long)c->in_c,
                              (long long)c->out_c, (long long)c->kernel_h, (long long)c->kernel_w);
    if (c->stride_h != 1) append(out_text, &length, "stride", c->stride_h);
    if (!is_same_padded(c)) append(out_text, &length, "pad", c->pad_top);
    if (c->dilation_h != 1) append(out_text, &length, "dilation", c->dilation_h);
    if (c->groups != 1) append(out_text, &length, "groups", c->groups);
    snprintf(out_text + length, 24, "%s", op_text(line->kind));
}

void tp_problem_line_to_mxu(const tp_problem_line *line, tp_precision precision,
                            tp_mxu_problem *out_problem)
{
    const bool is_dot = line->kind == TP_MXU_DOT, is_f32 = precision == TP_PRECISION_F32;
    const bool gives_f32 = is_f32 || is_dot || line->kind == TP_MXU_CONV_FILTER_GRAD;
    const int64_t m = line->m, n = line->n, k = line->k;
    *out_problem = (tp_mxu_problem){
        .kind = line->kind,
        .precision = precision,
        .batch = line->batch,
        .m = m,
        .n = n,
        .k = k,
        .a = {.dtype = is_f32 ? TP_F32 : TP_BF16},
        .b = {.dtype = is_f32 ? TP_F32 : TP_BF16,
              .is_replicated = !is_dot && line->kind != TP_MXU_CONV_FILTER_GRAD},
        .conv = line->conv,
        .c_dtype = gives_f32 ? TP_F32 : TP_BF16,
    };
    if (!is_dot) return;
    tp_mxu_operand *a = &out_problem->a, *b = &out_problem->b;
    a->stride_batch = m * k;
    a->stride_outer = line->a_is_transposed ? 1 : k;
    a->stride_inner = line->a_is_transposed ? m : 1;
    b->stride_batch = k * n;
    b->stride_outer = line->b_is_transposed ? k : 1;
    b->stride_inner = line->b_is_transposed ? 1 : n;
}

double tp_problem_line_flops(const tp_problem_line *line)
{
    const tp_mxu_conv *c = &line->conv;
    if (line->kind == TP_MXU_DOT)
        return 2.0 * (double)line->batch * (double)line->m * (double)line->n * (double)line->k;
    const double taps = (double)(c->kernel_h * c->kernel_w) * (double)(c->in_c / c->groups);
    return 2.0 * taps * (double)(c->images * c->out_h * c->out_w) * (double)c->out_c;
}
