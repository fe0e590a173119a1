/* SPDX-License-Identifier: Apache-2.0
 * protoc --decode, the independent reader of what src/io writes in the wire format. The schemas are in
 * tests/proto. */
#ifndef TP_TESTS_PROTOC_H
#define TP_TESTS_PROTOC_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The text of `message` ("Example" of example.proto); free(). Skips the test where there is no protoc. */
static char *protoc_decode(const char *schema, const char *message, const void *bytes,
                           size_t length)
{
    char path[] = "/tmp/tpucl_protoc_XXXXXX", command[1024];
    if (system("command -v protoc >/dev/null") != 0) cr_skip_test("protoc is not installed");
    const int descriptor = mkstemp(path);
    cr_assert(descriptor >= 0 && write(descriptor, bytes, length) == (ssize_t)length);
    close(descriptor);
    snprintf(command, sizeof command,
             "protoc --decode=%s -I%s/tests/proto %s/tests/proto/%s.proto <%s 2>&1", message,
             TPUCL_SOURCE_DIR, TPUCL_SOURCE_DIR, schema, path);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe != NULL);
    char *text = calloc(1, 1 << 20);
    cr_assert(text != NULL);
    const size_t got = fread(text, 1, (1 << 20) - 1, pipe);
    text[got] = 0;
    cr_assert_eq(pclose(pipe), 0, "%s", text);
    unlink(path);
    return text;
}

#endif
