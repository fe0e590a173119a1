/* SPDX-License-Identifier: Apache-2.0
 * The XML that object stores answer with, as a stream of events over bytes in memory: elements and text, no more.
 * Attributes, comments and instructions are passed over; a document type (entities of one's own, the ways to
 * attack a parser) is refused. Hostile input: no recursion, no allocation, time linear in the length. */
#ifndef TP_IO_XML_H
#define TP_IO_XML_H

#include "core/str.h"

typedef enum tp_xml_kind { TP_XML_END, TP_XML_OPEN, TP_XML_CLOSE, TP_XML_TEXT } tp_xml_kind;

/* Begin with {.rest = bytes}. */
typedef struct tp_xml {
    tp_view rest;
    tp_xml_kind kind;
    tp_view value; /* the name without its prefix, or raw text; borrowed from the bytes */
    tp_view open;  /* name of an element that closes itself: its close comes next */
    int32_t depth; /* open elements around the event; an OPEN counts itself */
} tp_xml;

/* TPUCL_CORRUPT_DATA for what is not well-formed as far as it is looked at. Ends with TP_XML_END. */
tpucl_status tp_xml_next(tp_xml *xml) TPUCL_MUST_CHECK;

/* Appends `raw` with &amp; &lt; &gt; &quot; &apos; and numeric references resolved. */
tpucl_status tp_xml_append_text(tp_str_builder *out, tp_view raw) TPUCL_MUST_CHECK;

/* The text of the first element `name` in the document; "" when there is none or it is broken. Always terminated,
 * cut at `bytes` - 1; control characters become spaces. */
void tp_xml_find(tp_view document, const char *name, char *out, size_t bytes);

#endif
