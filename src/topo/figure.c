/* SPDX-License-Identifier: Apache-2.0
 * Figures with their units. Files may use the unit that their source uses; in memory everything is in the
 * base unit of TP_FIGURE_LIST. */
#include "topo/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/str.h"

static const char *const keys[TP_FIGURE_COUNT] = {
#define FIGURE_KEY(id, key, unit, meaning) key,
    TP_FIGURE_LIST(FIGURE_KEY)
#undef FIGURE_KEY
};

static const char *const units[TP_FIGURE_COUNT] = {
#define FIGURE_UNIT(id, key, unit, meaning) unit,
    TP_FIGURE_LIST(FIGURE_UNIT)
#undef FIGURE_UNIT
};

const char *tp_figure_key(tp_figure_id id)
{
    return keys[id];
}

/* Units other than the base units themselves. */
static const struct {
    const char *unit, *base;
    double factor;
} scaled_units[] = {
    {"GFLOP/s", "FLOP/s", 1e9},
    {"TFLOP/s", "FLOP/s", 1e12},
    {"PFLOP/s", "FLOP/s", 1e15},
    {"KiB", "B", 0x1p10},
    {"MiB", "B", 0x1p20},
    {"GiB", "B", 0x1p30},
    {"TiB", "B", 0x1p40},
    {"kB", "B", 1e3},
    {"MB", "B", 1e6},
    {"GB", "B", 1e9},
    {"TB", "B", 1e12},
    {"MB/s", "B/s", 1e6},
    {"GB/s", "B/s", 1e9},
    {"TB/s", "B/s", 1e12},
    {"GiB/s", "B/s", 0x1p30},
    {"Gbit/s", "B/s", 1e9 / 8},
    {"ms", "s", 1e-3},
    {"us", "s", 1e-6},
    {"ns", "s", 1e-9},
    {"kW", "W", 1e3},
};
enum { SCALED_UNIT_COUNT = sizeof scaled_units / sizeof scaled_units[0] };

static bool find_factor(const char *unit, const char *base, double *out_factor)
{
    *out_factor = 1;
    if (strcmp(unit, base) == 0) return true;
    for (int i = 0; i < SCALED_UNIT_COUNT; i++) {
        if (strcmp(scaled_units[i].base, base) != 0 || strcmp(scaled_units[i].unit, unit) != 0)
            continue;
        *out_factor = scaled_units[i].factor;
        return true;
    }
    return false;
}

static void list_units(const char *base, char *out_text, size_t size)
{
    size_t used = (size_t)snprintf(out_text, size, "'%s'", base);
    for (int i = 0; i < SCALED_UNIT_COUNT && used < size; i++) {
        if (strcmp(scaled_units[i].base, base) == 0)
            used += (size_t)snprintf(out_text + used, size - used, ", '%s'", scaled_units[i].unit);
    }
}

static bool may_be_zero(tp_figure_id id)
{
    return id == TP_FIGURE_HBM_RESERVED || id == TP_FIGURE_ICI_LINKS;
}

/* Things that are counted. */
static bool is_whole(tp_figure_id id)
{
    return strcmp(units[id], "units") == 0 || strcmp(units[id], "cells") == 0 ||
           strcmp(units[id], "lanes") == 0 || strcmp(units[id], "links") == 0;
}

static void check_value(tp_figure_id id, const tp_json *value, double number, tp_problems *problems)
{
    char where[TP_JSON_WHERE_BYTES], found[TP_JSON_FOUND_BYTES];
    const char *expected = NULL;
    if (is_whole(id) && (number != floor(number) || number > 1e6))
        expected = "a whole number of at most 1000000";
    if (number < 0 || (number == 0 && !may_be_zero(id)))
        expected = may_be_zero(id) ? "a number from 0" : "a number above 0";
    if (!expected && !isfinite(number)) expected = "a smaller number";
    if (expected)
        tp_problems_add(problems, "expected %s, found %s at %s", expected,
                        tp_json_found(value, found), tp_json_where(value, where));
}

static tpucl_status copy_text(const tp_json *object, const char *key, tp_arena *arena,
                              tp_problems *problems, const char **out_text)
{
    const char *text = NULL;
    if (!tp_problems_add_failed(problems, tp_json_get_string(object, key, &text)) || !text)
        return TPUCL_OK;
    *out_text = tp_arena_strdup(arena, text);
    return *out_text ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status read_figure(tp_figure_id id, const tp_json *object, tp_arena *arena,
                                tp_problems *problems, tp_figure *figure)
{
    static const char *const members[] = {"value", "unit", "source", "note"};
    const tp_json *value, *unit, *source;
    if (!tp_problems_add_failed(problems, tp_json_expect(object, TP_JSON_OBJECT))) return TPUCL_OK;
    tp_json_report_unknown(object, members, 4, problems);
    bool good =
        tp_problems_add_failed(problems, tp_json_require(object, "value", TP_JSON_NUMBER, &value));
    good &=
        tp_problems_add_failed(problems, tp_json_require(object, "unit", TP_JSON_STRING, &unit));
    good &= tp_problems_add_failed(problems,
                                   tp_json_require(object, "source", TP_JSON_STRING, &source));
    if (!good) return TPUCL_OK;
    double factor;
    if (!find_factor(unit->string, units[id], &factor)) {
        char list[128], found[TP_JSON_FOUND_BYTES], where[TP_JSON_WHERE_BYTES];
        list_units(units[id], list, sizeof list);
        tp_problems_add(problems, "expected one of the units %s, found %s at %s", list,
                        tp_json_found(unit, found), tp_json_where(unit, where));
    }
    figure->known = true;
    figure->value = value->number * factor;
    check_value(id, value, figure->value, problems);
    TP_TRY(copy_text(object, "source", arena, problems, &figure->source));
    return copy_text(object, "note", arena, problems, &figure->note);
}

tpucl_status tp_figures_read(const tp_json *object, tp_arena *arena, tp_problems *problems,
                             tp_figure out_figures[TP_FIGURE_COUNT])
{
    if (!tp_problems_add_failed(problems, tp_json_expect(object, TP_JSON_OBJECT))) return TPUCL_OK;
    tp_json_report_unknown(object, keys, TP_FIGURE_COUNT, problems);
    for (int id = 0; id < TP_FIGURE_COUNT; id++) {
        const tp_json *member = tp_json_member(object, keys[id]);
        if (!member) continue;
        TP_TRY(read_figure((tp_figure_id)id, member, arena, problems, &out_figures[id]));
    }
    return TPUCL_OK;
}

void tp_figures_write(const tp_figure figures[TP_FIGURE_COUNT], tp_json_writer *writer)
{
    tp_json_begin_object(writer);
    for (int id = 0; id < TP_FIGURE_COUNT; id++) {
        const tp_figure *figure = &figures[id];
        if (!figure->known) continue;
        tp_json_key(writer, keys[id]);
        tp_json_begin_object(writer);
        /* Exact in int64: whole bytes and counts stay free of exponents. */
        bool whole = figure->value == floor(figure->value) && figure->value < 0x1p53;
        if (whole)
            tp_json_put_int(writer, "value", (int64_t)figure->value);
        else
            tp_json_put_double(writer, "value", figure->value);
        tp_json_put_string(writer, "unit", units[id]);
        tp_json_put_string(writer, "source", figure->source);
        if (figure->note) tp_json_put_string(writer, "note", figure->note);
        tp_json_end_object(writer);
    }
    tp_json_end_object(writer);
}
