/* SPDX-License-Identifier: Apache-2.0
 * What a selector means; the grammar is in platform.h. Every failure lists what there is, because
 * the next thing a person needs is the list to choose from. */
#include "device/platform_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "core/env.h"
#include "core/str.h"
#include "topo/topology.h"

/* OpenCL itself has no limit; a sub-device without a core has no use. */
enum { MAX_SPLIT = TP_TOPOLOGY_MAX_CORES };

typedef enum selector_kind {
    SELECT_DEFAULT,
    SELECT_INDEX,
    SELECT_PAIR,
    SELECT_TYPE,
    SELECT_NAME
} selector_kind;

typedef struct selector {
    selector_kind kind;
    uint64_t platform, index;
    tp_device_type type;
    char name[128];
    uint32_t split;
    char text[160]; /* as given, for messages */
} selector;

const char *tp_device_type_name(tp_device_type type)
{
    switch (type) {
    case TP_DEVICE_CPU:
        return "cpu";
    case TP_DEVICE_GPU:
        return "gpu";
    case TP_DEVICE_ACCELERATOR:
        return "accelerator";
    }
    return "unknown";
}

static bool is_number(tp_view view)
{
    if (!view.length || view.length > 9) return false;
    for (size_t i = 0; i < view.length; i++)
        if (view.data[i] < '0' || view.data[i] > '9') return false;
    return true;
}

static uint64_t number_of(tp_view view) /* of at most nine digits */
{
    uint64_t value = 0;
    for (size_t i = 0; i < view.length; i++)
        value = value * 10 + (uint64_t)(view.data[i] - '0');
    return value;
}

/* Takes "/n" off the end. A slash that is not followed by a number belongs to a name. */
static tpucl_status cut_split(tp_view *inout_text, selector *out)
{
    out->split = 1;
    for (size_t i = inout_text->length; i-- > 0;) {
        if (inout_text->data[i] != '/') continue;
        const tp_view tail = {inout_text->data + i + 1, inout_text->length - i - 1};
        if (!is_number(tail)) return TPUCL_OK;
        const uint64_t split = number_of(tail);
        if (split < 1 || split > MAX_SPLIT)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "device selector '%s': cannot split into %llu, expected 1 to %d",
                           out->text, (unsigned long long)split, MAX_SPLIT);
        out->split = (uint32_t)split;
        inout_text->length = i;
        return TPUCL_OK;
    }
    return TPUCL_OK;
}

static tpucl_status parse(const char *text, selector *out)
{
    *out = (selector){.split = 1};
    if (!text || !text[0]) text = tp_env_text(TP_ENV_DEVICE);
    if (!text) return TPUCL_OK;
    if (strlen(text) >= sizeof out->name)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "a device selector of %zu characters, expected at most %zu", strlen(text),
                       sizeof out->name - 1);
    snprintf(out->text, sizeof out->text, "%s", text);
    tp_view rest = tp_view_trim(tp_view_of(text));
    TP_TRY(cut_split(&rest, out));
    if (!rest.length) return TPUCL_OK; /* "/8": the default device in eight */
    if (is_number(rest)) {
        out->kind = SELECT_INDEX;
        out->index = number_of(rest);
        return TPUCL_OK;
    }
    const char *colon = memchr(rest.data, ':', rest.length);
    if (colon) {
        const tp_view platform = {rest.data, (size_t)(colon - rest.data)};
        const tp_view device = {colon + 1, rest.length - platform.length - 1};
        if (is_number(platform) && is_number(device)) {
            out->kind = SELECT_PAIR;
            out->platform = number_of(platform);
            out->index = number_of(device);
            return TPUCL_OK;
        }
    }
    memcpy(out->name, rest.data, rest.length);
    out->name[rest.length] = '\0';
    out->kind = SELECT_NAME;
    for (tp_device_type type = TP_DEVICE_CPU; type <= TP_DEVICE_ACCELERATOR; type++) {
        if (strcasecmp(out->name, tp_device_type_name(type)) != 0) continue;
        out->kind = SELECT_TYPE;
        out->type = type;
    }
    return TPUCL_OK;
}

static bool matches(const selector *wanted, const tp_device_entry *entry, uint32_t index)
{
    switch (wanted->kind) {
    case SELECT_DEFAULT:
        return entry->usable;
    case SELECT_INDEX:
        return wanted->index == index;
    case SELECT_PAIR:
        return wanted->platform == entry->platform_index && wanted->index == entry->device_index;
    case SELECT_TYPE:
        return wanted->type == entry->caps.type && entry->usable;
    case SELECT_NAME:
        return tp_str_contains_nocase(entry->caps.name, wanted->name) ||
               tp_str_contains_nocase(entry->caps.platform, wanted->name) ||
               tp_str_contains_nocase(entry->caps.vendor, wanted->name);
    }
    return false;
}

/* "; there are 2 devices: 0:0 'name' (cpu, platform), ..." or why there are none. */
static void describe_list(const tp_device_list *list, char *out_text, size_t room)
{
    const size_t count = list->devices.count;
    size_t used = 0;
    if (count)
        used += (size_t)snprintf(out_text, room, "; there %s:", count == 1 ? "is" : "are");
    else
        used += (size_t)snprintf(out_text, room, "; there are no devices");
    for (size_t i = 0; i < count && used < room; i++) {
        const tp_device_entry *entry = &list->devices.items[i].entry;
        used += (size_t)snprintf(out_text + used, room - used, "%s %s '%s' (%s, %s%s)",
                                 i ? "," : "", entry->selector, entry->caps.name,
                                 tp_device_type_name(entry->caps.type), entry->caps.platform,
                                 entry->usable ? "" : ", not usable");
    }
    for (size_t i = 0; !count && i < list->notes.count && used < room; i++)
        used += (size_t)snprintf(out_text + used, room - used, "; %s", list->notes.items[i]);
}

static tpucl_status fail_with_list(const tp_device_list *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static tpucl_status fail_with_list(const tp_device_list *list, const char *format, ...)
{
    char what[512], known[1400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    describe_list(list, known, sizeof known);
    return TP_FAIL(TPUCL_NO_DEVICE, "%s%s", what, known);
}

static tpucl_status find_matches(const tp_device_list *list, const selector *wanted,
                                 uint32_t *out_indices, uint32_t *out_count)
{
    const tp_device_entry *refused = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->devices.count; i++) {
        const tp_device_entry *entry = &list->devices.items[i].entry;
        if (!matches(wanted, entry, i)) continue;
        if (entry->usable)
            out_indices[count++] = i;
        else
            refused = entry;
    }
    *out_count = count;
    if (count) return TPUCL_OK;
    if (refused)
        return fail_with_list(list, "device %s '%s' is not usable: %s", refused->selector,
                              refused->caps.name, refused->reason);
    if (wanted->kind == SELECT_DEFAULT) return fail_with_list(list, "no usable OpenCL device");
    return fail_with_list(list, "device selector '%s' matches no device", wanted->text);
}

tpucl_status tp_device_list_select_all(const tp_device_list *list, const char *selector_text,
                                       uint32_t *out_indices, uint32_t *out_count,
                                       uint32_t *out_split)
{
    selector wanted;
    TP_TRY(parse(selector_text, &wanted));
    TP_TRY(find_matches(list, &wanted, out_indices, out_count));
    *out_split = wanted.split;
    return TPUCL_OK;
}

/* The first GPU, else accelerator, else CPU; devices that must be asked for come last. */
static int preference(const tp_device_entry *entry)
{
    const int by_type = entry->caps.type == TP_DEVICE_GPU           ? 2
                        : entry->caps.type == TP_DEVICE_ACCELERATOR ? 1
                                                                    : 0;
    return entry->quirks.effects & TP_QUIRK_NOT_DEFAULT ? by_type - 10 : by_type;
}

static tpucl_status choose(const tp_device_list *list, const selector *wanted, uint32_t *scratch,
                           tp_device_choice *out_choice)
{
    uint32_t count;
    TP_TRY(find_matches(list, wanted, scratch, &count));
    if (wanted->kind == SELECT_NAME && count > 1)
        return fail_with_list(list, "device selector '%s' matches %u devices, expected one",
                              wanted->text, count);
    uint32_t best = scratch[0];
    for (uint32_t i = 1; i < count; i++)
        if (preference(tp_device_list_entry(list, scratch[i])) >
            preference(tp_device_list_entry(list, best)))
            best = scratch[i];
    *out_choice = (tp_device_choice){.index = best, .split = wanted->split};
    return TPUCL_OK;
}

tpucl_status tp_device_list_select(const tp_device_list *list, const char *selector_text,
                                   tp_device_choice *out_choice)
{
    selector wanted;
    TP_TRY(parse(selector_text, &wanted));
    uint32_t *scratch = TP_NEW_ARRAY(uint32_t, list->devices.count);
    if (!scratch) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = choose(list, &wanted, scratch, out_choice);
    tp_free(scratch);
    return status;
}
