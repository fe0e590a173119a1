/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: the XML that buckets answer with. */
#include <stdlib.h>
#include <string.h>
#include "io/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_xml xml = {.rest = {(const char *)data, size}};
    char text[16];
    for (;;) {
        const tpucl_status status = tp_xml_next(&xml);
        if (status != TPUCL_OK && !tpucl_last_error()->message[0]) abort();
        if (status != TPUCL_OK || xml.kind == TP_XML_END) break;
        tp_str_builder out = {0};
        if (tp_xml_append_text(&out, xml.value) == TPUCL_OK && out.length > xml.value.length)
            abort();
        tp_str_builder_deinit(&out);
    }
    tp_xml_find((tp_view){(const char *)data, size}, "Key", text, sizeof text);
    if (!memchr(text, 0, sizeof text)) abort();
    return 0;
}
