/* SPDX-License-Identifier: Apache-2.0
 * The compiling process: one program after the other. */
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "device/compiler.h"

typedef struct server {
    int socket;
    tp_device *device;
} server;

/* False at the end of the stream, or when it breaks. */
static bool receive(int socket, void *bytes, size_t count)
{
    for (char *at = bytes; count;) {
        const ssize_t got = read(socket, at, count);
        if (got <= 0) return false;
        at += got;
        count -= (size_t)got;
    }
    return true;
}

static bool reply(int socket, tp_compiler_outcome outcome, double seconds)
{
    const tp_compiler_reply message = {TP_COMPILER_MAGIC, (uint32_t)outcome, seconds};
    return send(socket, &message, sizeof message, MSG_NOSIGNAL) == (ssize_t)sizeof message;
}

/* Zero-terminated; NULL when it does not come. */
static char *receive_text(int socket, uint32_t bytes)
{
    if (bytes > TP_COMPILER_MAX_BYTES) return NULL;
    char *text = tp_alloc((size_t)bytes + 1);
    if (!text) return NULL;
    text[bytes] = '\0';
    if (receive(socket, text, bytes)) return text;
    tp_free(text);
    return NULL;
}

/* False when the other side is gone. */
static bool serve_one(server *s)
{
    tp_compiler_request request;
    if (!receive(s->socket, &request, sizeof request) || request.magic != TP_COMPILER_MAGIC)
        return false;
    char *label = receive_text(s->socket, request.label_bytes);
    char *options = label ? receive_text(s->socket, request.options_bytes) : NULL;
    char *source = options ? receive_text(s->socket, request.source_bytes) : NULL;
    bool goes_on = false;
    if (source) {
        const uint64_t begin_ns = tp_clock_now_ns();
        const bool is_stored =
            tp_device_program_store(s->device, label, request.key, source, options);
        goes_on = reply(s->socket, is_stored ? TP_COMPILER_STORED : TP_COMPILER_NOT_STORED,
                        (double)(tp_clock_now_ns() - begin_ns) * 1e-9);
    }
    tp_free(label);
    tp_free(options);
    tp_free(source);
    return goes_on;
}

static void serve(server *s)
{
    struct pollfd waiting = {.fd = s->socket, .events = POLLIN};
    if (!reply(s->socket, TP_COMPILER_READY, 0)) return;
    while (poll(&waiting, 1, TP_COMPILER_IDLE_MS) > 0 && serve_one(s))
        continue;
}

static tpucl_status open_device(const char *label, const char *identity, tp_program_cache *cache,
                                tp_device **out_device)
{
    tp_device_list *list = NULL;
    tp_device_choice choice;
    const tp_device_options options = {.cache = cache};
    TP_TRY(tp_device_list_create(&list));
    tpucl_status status = tp_device_list_select(list, label, &choice);
    if (status == TPUCL_OK) status = tp_device_open(list, choice.index, &options, out_device);
    tp_device_list_destroy(list);
    TP_TRY(status);
    if (strcmp(tp_device_identity(*out_device), identity) == 0) return TPUCL_OK;
    return TP_FAIL(TPUCL_NO_DEVICE, "device '%s' is '%s' here, expected '%s'", label,
                   tp_device_identity(*out_device), identity);
}

tpucl_status tp_compiler_serve(int socket, const char *label, const char *identity,
                               const char *cache_folder)
{
    tp_program_cache *cache = NULL;
    server s = {.socket = socket};
    TP_TRY(tp_program_cache_open(cache_folder, 0, &cache));
    const tpucl_status status = open_device(label, identity, cache, &s.device);
    if (status == TPUCL_OK) serve(&s);
    tp_device_close(s.device);
    tp_program_cache_close(cache);
    return status;
}
