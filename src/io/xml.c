/* SPDX-License-Identifier: Apache-2.0
 * A scanner for the XML of object stores (XML 1.0, the parts that they use). */
#include "io/xml.h"
#include <string.h>

static tpucl_status broken(const char *what)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA, "the server's XML is broken: %s", what);
}

static void drop(tp_view *view, size_t count)
{
    view->data += count;
    view->length -= count;
}

static bool begins(tp_view view, const char *text)
{
    const size_t length = strlen(text);
    return view.length >= length && memcmp(view.data, text, length) == 0;
}

/* Drops all up to and with `end`. */
static bool drop_behind(tp_view *view, const char *end)
{
    const char *at = view->length ? memmem(view->data, view->length, end, strlen(end)) : NULL;
    if (!at) return false;
    drop(view, (size_t)(at - view->data) + strlen(end));
    return true;
}

/* Up to the '>' that ends a tag; those in quoted attributes do not count. */
static bool find_tag_end(tp_view view, size_t *out_at)
{
    char quote = 0;
    for (size_t i = 0; i < view.length; i++) {
        const char c = view.data[i];
        if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? 0 : c;
        } else if (!quote && c == '>') {
            *out_at = i;
            return true;
        }
    }
    return false;
}

static tp_view tag_name(tp_view tag)
{
    size_t length = 0, from = 0;
    while (length < tag.length && !strchr(" \t\r\n/", tag.data[length])) {
        if (tag.data[length] == ':') from = length + 1;
        length++;
    }
    return (tp_view){tag.data + from, length - from};
}

static tpucl_status take_tag(tp_xml *xml)
{
    size_t end;
    drop(&xml->rest, 1);
    if (!find_tag_end(xml->rest, &end)) return broken("a tag does not end");
    tp_view tag = {xml->rest.data, end};
    drop(&xml->rest, end + 1);
    const bool closes = begins(tag, "/");
    if (closes) drop(&tag, 1);
    xml->value = tag_name(tag);
    if (xml->value.length == 0) return broken("a tag has no name");
    if (closes) {
        if (xml->depth == 0) return broken("an element is closed that was never opened");
        xml->depth--;
        xml->kind = TP_XML_CLOSE;
        return TPUCL_OK;
    }
    xml->depth++;
    xml->kind = TP_XML_OPEN;
    if (tag.data[tag.length - 1] == '/') xml->open = xml->value;
    return TPUCL_OK;
}

tpucl_status tp_xml_next(tp_xml *xml)
{
    if (xml->open.length) {
        xml->value = xml->open;
        xml->open = (tp_view){0};
        xml->depth--;
        xml->kind = TP_XML_CLOSE;
        return TPUCL_OK;
    }
    while (xml->rest.length) {
        if (begins(xml->rest, "<?")) {
            if (!drop_behind(&xml->rest, "?>")) return broken("an instruction does not end");
        } else if (begins(xml->rest, "<!--")) {
            if (!drop_behind(&xml->rest, "-->")) return broken("a comment does not end");
        } else if (begins(xml->rest, "<!")) {
            return broken("it has a document type or raw data, which no store sends");
        } else if (xml->rest.data[0] == '<') {
            return take_tag(xml);
        } else {
            const char *tag = memchr(xml->rest.data, '<', xml->rest.length);
            const size_t length = tag ? (size_t)(tag - xml->rest.data) : xml->rest.length;
            xml->value = (tp_view){xml->rest.data, length};
            xml->kind = TP_XML_TEXT;
            drop(&xml->rest, length);
            return TPUCL_OK;
        }
    }
    if (xml->depth) return broken("it ends in the middle of an element");
    xml->kind = TP_XML_END;
    xml->value = (tp_view){0};
    return TPUCL_OK;
}

/* ---- text ---- */

static void append_code_point(tp_str_builder *out, uint32_t c)
{
    if (c < 0x80) {
        tp_str_append_char(out, (char)c);
        return;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t mark[] = {0, 0xC0, 0xE0, 0xF0};
    tp_str_append_char(out, (char)(mark[more] | (c >> (6 * more))));
    for (int i = more - 1; i >= 0; i--)
        tp_str_append_char(out, (char)(0x80 | ((c >> (6 * i)) & 63)));
}

static bool parse_reference(tp_view digits, uint32_t *out)
{
    uint32_t base = 10, value = 0;
    if (begins(digits, "x")) {
        base = 16;
        drop(&digits, 1);
    }
    if (digits.length == 0) return false;
    for (size_t i = 0; i < digits.length; i++) {
        const char c = digits.data[i];
        const uint32_t low = (uint32_t)(c | 32) - 'a';
        const uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)(c - '0') : low < 6 ? low + 10 : 99;
        if (digit >= base) return false;
        value = value * base + digit;
        if (value > 0x10FFFF) return false;
    }
    *out = value;
    return value != 0 && (value < 0xD800 || value > 0xDFFF);
}

tpucl_status tp_xml_append_text(tp_str_builder *out, tp_view raw)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    while (raw.length) {
        const char *mark = memchr(raw.data, '&', raw.length);
        const size_t plain = mark ? (size_t)(mark - raw.data) : raw.length;
        tp_str_append_bytes(out, raw.data, plain);
        drop(&raw, plain);
        if (!raw.length) break;
        const char *end = memchr(raw.data, ';', raw.length);
        if (!end) return broken("a reference does not end");
        tp_view name = {raw.data + 1, (size_t)(end - raw.data) - 1};
        drop(&raw, (size_t)(end - raw.data) + 1);
        uint32_t code_point = 0;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (tp_view_equal_text(name, names[i].name)) code_point = (uint8_t)names[i].c;
        if (code_point == 0) {
            if (!begins(name, "#")) return broken("an entity that XML does not know");
            drop(&name, 1);
            if (!parse_reference(name, &code_point)) return broken("a reference to no character");
        }
        append_code_point(out, code_point);
    }
    return out->status;
}

void tp_xml_find(tp_view document, const char *name, char *out, size_t bytes)
{
    tp_xml xml = {.rest = document};
    tp_str_builder text = {0};
    out[0] = 0;
    while (tp_xml_next(&xml) == TPUCL_OK && xml.kind != TP_XML_END) {
        if (xml.kind != TP_XML_OPEN || !tp_view_equal_text(xml.value, name)) continue;
        if (tp_xml_next(&xml) != TPUCL_OK || xml.kind != TP_XML_TEXT) break;
        if (tp_xml_append_text(&text, xml.value) != TPUCL_OK) break;
        const size_t length = text.length < bytes ? text.length : bytes - 1;
        if (length) memcpy(out, text.data, length);
        out[length] = 0;
        for (size_t i = 0; i < length; i++)
            if ((unsigned char)out[i] < 32 || out[i] == 127) out[i] = ' ';
        break;
    }
    tp_str_builder_deinit(&text);
}
