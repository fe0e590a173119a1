/* SPDX-License-Identifier: Apache-2.0
 * The grammar of expressions, by recursive descent; nodes are added as it goes. See expression.h.
 */
#include "model/expression.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "graph/builder.h"
#include "model/expression_internal.h"

enum { LONGEST_TEXT = 8192, DEEPEST = 64 };

/* ---- mistakes ---- */

/* The line that holds the place, and a mark below it; long lines are cut around the place. */
static void point_at(const tp_expression *e, const char *at, char *out, size_t room)
{
    enum { BEFORE = 60, AFTER = 60 };
    const char *begin = at, *end = at;
    while (begin > e->text && begin[-1] != '\n' && at - begin < BEFORE)
        begin--;
    while (*end && *end != '\n' && end - at < AFTER)
        end++;
    snprintf(out, room, "\n    %.*s\n    %*s^", (int)(end - begin), begin, (int)(at - begin), "");
}

tpucl_status tp_expression_fail(const tp_expression *e, const char *at, const char *format, ...)
{
    char text[700], place[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    point_at(e, at, place, sizeof place);
    return TP_FAIL(TPUCL_INVALID_CONFIG, "%s, column %d: %s%s", e->what, (int)(at - e->text) + 1,
                   text, place);
}

tpucl_status tp_expression_keep(const tp_expression *e, const char *at, tp_node_id node,
                                tp_expression_value *out_value)
{
    const tpucl_status status = tp_graph_check(e->graph);
    if (status == TPUCL_OUT_OF_MEMORY) return status;
    if (status != TPUCL_OK) {
        char message[600];
        snprintf(message, sizeof message, "%.*s", (int)sizeof message - 1,
                 tpucl_last_error()->message);
        return tp_expression_fail(e, at, "%s", message);
    }
    *out_value = (tp_expression_value){.node = node, .at = at};
    return TPUCL_OK;
}

/* ---- values ---- */

tp_dtype tp_expression_dtype(const tp_expression *e, const tp_expression_value *value)
{
    return value->node == TP_NO_NODE ? TP_F32 : tp_graph_node(e->graph, value->node)->dtype;
}

tpucl_status tp_expression_node(const tp_expression *e, const tp_expression_value *value,
                                tp_dtype dtype, tp_node_id *out_node)
{
    tp_expression_value made = *value;
    if (value->node == TP_NO_NODE)
        TP_TRY(
            tp_expression_keep(e, value->at, tp_op_scalar(e->graph, dtype, value->number), &made));
    *out_node = made.node;
    return TPUCL_OK;
}

/* What two operands of these dtypes are calculated in. */
static bool common_dtype(tp_dtype a, tp_dtype b, tp_dtype *out_dtype)
{
    *out_dtype = a == b ? a : TP_F32;
    if (a == b) return true;
    const bool a_is_number = tp_dtype_is_float(a) || a == TP_S32;
    const bool b_is_number = tp_dtype_is_float(b) || b == TP_S32;
    return a_is_number && b_is_number;
}

tpucl_status tp_expression_unify(const tp_expression *e, const char *at,
                                 const tp_expression_value *a, const tp_expression_value *b,
                                 tp_node_id *out_a, tp_node_id *out_b)
{
    tp_dtype dtype_a = tp_expression_dtype(e, a), dtype_b = tp_expression_dtype(e, b), common;
    const bool a_is_literal = a->node == TP_NO_NODE, b_is_literal = b->node == TP_NO_NODE;
    /* a whole number takes an integer's dtype, any other one makes f32 of both */
    if (a_is_literal && (dtype_b != TP_S32 || a->number == rint(a->number))) dtype_a = dtype_b;
    if (b_is_literal && (dtype_a != TP_S32 || b->number == rint(b->number))) dtype_b = dtype_a;
    if (!common_dtype(dtype_a, dtype_b, &common) ||
        (common == TP_PRED && (a_is_literal || b_is_literal)))
        return tp_expression_fail(e, at,
                                  "%s meets %s; write where(mask, x, 0) or cast(mask, f32) to "
                                  "calculate with a mask",
                                  a_is_literal ? "a number" : tp_dtype_name(dtype_a),
                                  b_is_literal ? "a number" : tp_dtype_name(dtype_b));
    tp_expression_value made = {0};
    TP_TRY(tp_expression_node(e, a, common, out_a));
    TP_TRY(tp_expression_node(e, b, common, out_b));
    TP_TRY(tp_expression_keep(e, at, tp_op_convert(e->graph, *out_a, common), &made));
    *out_a = made.node;
    TP_TRY(tp_expression_keep(e, at, tp_op_convert(e->graph, *out_b, common), &made));
    *out_b = made.node;
    return TPUCL_OK;
}

/* ---- tokens ---- */

static void skip(tp_expression *e)
{
    e->next += strspn(e->next, " \t\r\n");
}

/* Takes the text if it comes next. */
static bool accept(tp_expression *e, const char *text)
{
    skip(e);
    const size_t length = strlen(text);
    if (strncmp(e->next, text, length) != 0) return false;
    e->next += length;
    return true;
}

/* The same for a one-character operator that is no part of a longer one. */
static bool accept_operator(tp_expression *e, const char *text, const char *not_before)
{
    skip(e);
    if (strncmp(e->next, text, strlen(text)) != 0) return false;
    const char after = e->next[strlen(text)];
    if (after != '\0' && strchr(not_before, after)) return false;
    e->next += strlen(text);
    return true;
}

static tpucl_status expect(tp_expression *e, const char *text)
{
    if (accept(e, text)) return TPUCL_OK;
    if (!*e->next) return tp_expression_fail(e, e->next, "expected '%s', found the end", text);
    return tp_expression_fail(e, e->next, "expected '%s', found '%c'", text, *e->next);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static tp_view read_word(tp_expression *e)
{
    skip(e);
    tp_view word = {.data = e->next};
    while (is_word(e->next[word.length]))
        word.length++;
    e->next += word.length;
    return word;
}

static bool is_number(const tp_expression *e)
{
    const char *at = e->next;
    return (*at >= '0' && *at <= '9') || (*at == '.' && at[1] >= '0' && at[1] <= '9');
}

static tpucl_status read_number(tp_expression *e, double *out_number)
{
    tp_view view = {.data = e->next};
    const char *at = e->next;
    while ((*at >= '0' && *at <= '9') || *at == '.')
        at++;
    if (*at == 'e' || *at == 'E') {
        const char *digits = at + 1 + (at[1] == '-' || at[1] == '+');
        if (*digits >= '0' && *digits <= '9')
            for (at = digits; *at >= '0' && *at <= '9';)
                at++;
    }
    view.length = (size_t)(at - e->next);
    if (is_word(*at) || tp_str_parse_double(view, out_number) != TPUCL_OK)
        return tp_expression_fail(e, e->next, "'%.*s' is no number",
                                  (int)(view.length + is_word(*at)), view.data);
    e->next = at;
    return TPUCL_OK;
}

static tpucl_status read_integer(tp_expression *e, int64_t *out_value)
{
    skip(e);
    const char *at = e->next;
    const bool is_negative = accept(e, "-");
    double number = 0;
    skip(e);
    if (!is_number(e)) return tp_expression_fail(e, at, "expected a whole number");
    TP_TRY(read_number(e, &number));
    if (number != rint(number) || number > 1e9)
        return tp_expression_fail(e, at, "expected a whole number");
    *out_value = (int64_t)(is_negative ? -number : number);
    return TPUCL_OK;
}

/* ---- calls ---- */

static tpucl_status read_or(tp_expression *e, tp_expression_value *out_value);

/* axis=-1 or axis=[1, 2] or axis=(1, 2) */
static tpucl_status read_axes(tp_expression *e, tp_expression_call *call)
{
    const bool is_list = accept(e, "[") || accept(e, "(");
    call->axis_count = 0;
    do {
        if (call->axis_count == TP_MAX_RANK)
            return tp_expression_fail(e, e->next, "more than %d axes", TP_MAX_RANK);
        TP_TRY(read_integer(e, &call->axes[call->axis_count++]));
    } while (is_list && accept(e, ","));
    if (!is_list || accept(e, "]")) return TPUCL_OK;
    return expect(e, ")");
}

/* Returns with *out_is_named set when it was one. */
static tpucl_status read_named_argument(tp_expression *e, tp_expression_call *call,
                                        bool *out_is_named)
{
    skip(e);
    const char *at = e->next;
    const tp_view word = read_word(e);
    *out_is_named = word.length && accept_operator(e, "=", "=");
    if (!*out_is_named) {
        e->next = at;
        return TPUCL_OK;
    }
    if (tp_view_equal_text(word, "axis")) return read_axes(e, call);
    if (!tp_view_equal_text(word, "keepdims"))
        return tp_expression_fail(e, at, "no argument is called '%.*s'; there are axis, keepdims",
                                  TP_VIEW_ARGS(word));
    const char *value_at = e->next;
    const tp_view value = read_word(e);
    call->keepdims = tp_view_equal_text(value, "true") || tp_view_equal_text(value, "True");
    if (call->keepdims || tp_view_equal_text(value, "false") || tp_view_equal_text(value, "False"))
        return TPUCL_OK;
    return tp_expression_fail(e, value_at, "keepdims is true or false");
}

static bool read_dtype(tp_expression *e, tp_expression_call *call)
{
    static const char *const dtypes[] = {"f32",     "bf16",     "s32",   "pred",
                                         "float32", "bfloat16", "int32", "bool"};
    const char *at = e->next;
    const tp_view word = read_word(e);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (tp_view_equal_text(word, dtypes[i])) {
            call->word = word;
            return true;
        }
    e->next = at;
    return false;
}

static tpucl_status read_call(tp_expression *e, tp_view name, tp_expression_value *out_value)
{
    tp_expression_call call = {.name = name, .at = name.data, .axis_count = -1};
    while (!accept(e, ")")) {
        bool is_named = false;
        if (call.count || call.axis_count >= 0) TP_TRY(expect(e, ","));
        TP_TRY(read_named_argument(e, &call, &is_named));
        if (is_named || (call.count == 1 && read_dtype(e, &call))) continue;
        if (call.count == TP_EXPRESSION_MAX_ARGUMENTS)
            return tp_expression_fail(e, e->next, "more than %d arguments",
                                      TP_EXPRESSION_MAX_ARGUMENTS);
        TP_TRY(read_or(e, &call.values[call.count++]));
    }
    return tp_expression_apply(e, &call, out_value);
}

static tpucl_status find_name(tp_expression *e, tp_view word, tp_expression_value *out_value)
{
    const char *known[32];
    char text[64];
    size_t count = 0;
    for (int32_t i = 0; i < e->name_count; i++) {
        if (tp_view_equal_text(word, e->names[i].name)) {
            *out_value = (tp_expression_value){.node = e->names[i].node, .at = word.data};
            return TPUCL_OK;
        }
        if (count < sizeof known / sizeof *known) known[count++] = e->names[i].name;
    }
    snprintf(text, sizeof text, "%.*s", TP_VIEW_ARGS(word));
    const char *nearest = tp_str_nearest(text, known, count);
    char all[300] = "";
    for (size_t i = 0; i < count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", known[i]);
    return tp_expression_fail(e, word.data, "there is no '%s'%s%s%s; there are %s", text,
                              nearest ? ", did you mean '" : "", nearest ? nearest : "",
                              nearest ? "'" : "", count ? all : "no names");
}

/* ---- the grammar, from the tightest ---- */

/* [..., i] and [..., a:b] of the last axis */
static tpucl_status read_index(tp_expression *e, tp_expression_value *inout_value)
{
    const char *at = e->next - 1;
    int64_t begin = 0, end;
    bool is_range = false;
    if (inout_value->node == TP_NO_NODE) return tp_expression_fail(e, at, "a number has no axes");
    tp_shape shape = tp_graph_node(e->graph, inout_value->node)->shape;
    if (shape.rank == 0) return tp_expression_fail(e, at, "a scalar has no axes");
    TP_TRY(tp_expression_keep_batch(e, at, tp_view_of("[...]"), &shape, shape.rank - 1));
    TP_TRY(expect(e, "..."));
    TP_TRY(expect(e, ","));
    const int64_t size = shape.dims[shape.rank - 1];
    skip(e);
    if (*e->next != ':') TP_TRY(read_integer(e, &begin));
    end = begin + 1;
    if (begin == -1) end = size;
    if (accept(e, ":")) {
        is_range = true;
        end = size;
        skip(e);
        if (*e->next != ']') TP_TRY(read_integer(e, &end));
    }
    TP_TRY(expect(e, "]"));
    begin += begin < 0 ? size : 0;
    end += end < 0 ? size : 0;
    if (begin < 0 || end > size || begin >= end)
        return tp_expression_fail(e, at, "elements %lld to %lld of an axis of %lld",
                                  (long long)begin, (long long)end - 1, (long long)size);
    int64_t from[TP_MAX_RANK] = {0}, to[TP_MAX_RANK];
    memcpy(to, shape.dims, sizeof to);
    from[shape.rank - 1] = begin;
    to[shape.rank - 1] = end;
    tp_node_id node = tp_op_slice(e->graph, inout_value->node, from, to, NULL);
    if (!is_range && node != TP_NO_NODE) {
        shape.dims[--shape.rank] = 0;
        node = tp_op_reshape(e->graph, node, shape);
    }
    return tp_expression_keep(e, at, node, inout_value);
}

static tpucl_status read_primary(tp_expression *e, tp_expression_value *out_value)
{
    skip(e);
    const char *at = e->next;
    if (is_number(e)) {
        *out_value = (tp_expression_value){.node = TP_NO_NODE, .at = at};
        return read_number(e, &out_value->number);
    }
    if (accept(e, "(")) {
        TP_TRY(read_or(e, out_value));
        TP_TRY(expect(e, ")"));
    } else {
        const tp_view word = read_word(e);
        if (!word.length && !*at)
            return tp_expression_fail(e, at, "expected a value, found the end");
        if (!word.length) return tp_expression_fail(e, at, "expected a value, found '%c'", *at);
        if (accept(e, "("))
            TP_TRY(read_call(e, word, out_value));
        else
            TP_TRY(find_name(e, word, out_value));
    }
    while (accept(e, "["))
        TP_TRY(read_index(e, out_value));
    return TPUCL_OK;
}

static tpucl_status apply_two(const tp_expression *e, const char *at, const char *function,
                              const tp_expression_value *a, const tp_expression_value *b,
                              tp_expression_value *out_value)
{
    const tp_expression_call call = {
        .name = tp_view_of(function), .at = at, .values = {*a, *b}, .count = 2, .axis_count = -1};
    return tp_expression_apply(e, &call, out_value);
}

static tpucl_status read_unary(tp_expression *e, tp_expression_value *out_value)
{
    skip(e);
    const char *at = e->next;
    tp_expression_value value;
    if (e->depth >= DEEPEST) return tp_expression_fail(e, at, "nested more than %d deep", DEEPEST);
    e->depth++;
    const bool is_negated = accept(e, "-"),
               is_inverted = !is_negated && accept_operator(e, "!", "=");
    if (is_negated || is_inverted) {
        TP_TRY(read_unary(e, &value));
        if (is_negated && value.node == TP_NO_NODE) {
            *out_value = (tp_expression_value){TP_NO_NODE, -value.number, at};
        } else {
            const tp_expression_call call = {.name = tp_view_of(is_negated ? "negate" : "not"),
                                             .at = at,
                                             .values = {value},
                                             .count = 1,
                                             .axis_count = -1};
            TP_TRY(tp_expression_apply(e, &call, out_value));
        }
    } else {
        TP_TRY(read_primary(e, out_value));
        at = (skip(e), e->next);
        if (accept(e, "**")) {
            TP_TRY(read_unary(e, &value));
            const tp_expression_value base = *out_value;
            TP_TRY(apply_two(e, at, "power", &base, &value, out_value));
        }
    }
    e->depth--;
    return TPUCL_OK;
}

/* One level of operators that associate to the left. */
typedef struct operator_row {
    const char *text, *not_before, *function;
} operator_row;

typedef tpucl_status (*reader)(tp_expression *e, tp_expression_value *out_value);

static tpucl_status read_level(tp_expression *e, const operator_row *rows, reader tighter,
                               tp_expression_value *out_value)
{
    TP_TRY(tighter(e, out_value));
    for (;;) {
        const operator_row *row = rows;
        skip(e);
        const char *at = e->next;
        while (row->text && !accept_operator(e, row->text, row->not_before))
            row++;
        if (!row->text) return TPUCL_OK;
        tp_expression_value left = *out_value, right;
        TP_TRY(tighter(e, &right));
        TP_TRY(apply_two(e, at, row->function, &left, &right, out_value));
    }
}

static tpucl_status read_product(tp_expression *e, tp_expression_value *out_value)
{
    static const operator_row rows[] = {{"*", "*", "multiply"}, {"/", "", "divide"}, {0}};
    return read_level(e, rows, read_unary, out_value);
}

static tpucl_status read_sum(tp_expression *e, tp_expression_value *out_value)
{
    static const operator_row rows[] = {{"+", "", "add"}, {"-", "", "subtract"}, {0}};
    return read_level(e, rows, read_product, out_value);
}

static tpucl_status read_comparison(tp_expression *e, tp_expression_value *out_value)
{
    static const operator_row rows[] = {{"<=", "", "less_equal"},
                                        {">=", "", "greater_equal"},
                                        {"==", "", "equal"},
                                        {"!=", "", "not_equal"},
                                        {"<", "", "less"},
                                        {">", "", "greater"},
                                        {0}};
    return read_level(e, rows, read_sum, out_value);
}

static tpucl_status read_and(tp_expression *e, tp_expression_value *out_value)
{
    static const operator_row rows[] = {{"&", "", "and"}, {0}};
    return read_level(e, rows, read_comparison, out_value);
}

static tpucl_status read_or(tp_expression *e, tp_expression_value *out_value)
{
    static const operator_row rows[] = {{"|", "", "or"}, {0}};
    return read_level(e, rows, read_and, out_value);
}

tpucl_status tp_expression_parse(tp_expression *e, tp_node_id *out_node)
{
    tp_expression_value value;
    TP_TRY(tp_graph_check(e->graph));
    if (strlen(e->text) > LONGEST_TEXT)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%s has %zu characters, expected at most %d", e->what,
                       strlen(e->text), LONGEST_TEXT);
    TP_TRY(read_or(e, &value));
    skip(e);
    if (*e->next) return tp_expression_fail(e, e->next, "expected the end, found '%c'", *e->next);
    return tp_expression_node(e, &value, TP_F32, out_node);
}
