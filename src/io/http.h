/* SPDX-License-Identifier: Apache-2.0
 * One HTTP request and its answer. http_curl.c is the only file that knows libcurl; http_none.c stands for it in a
 * build without. No retries here: io/http_retry.h decides about them.
 *
 * TLS certificates are always verified. Secrets (keys, bearer token) never come into a message.
 */
#ifndef TP_IO_HTTP_H
#define TP_IO_HTTP_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"
#include "core/str.h"

enum {
    TP_HTTP_HEADERS = 8,
    TP_HTTP_ETAG_BYTES = 128,
    TP_HTTP_TEXT_BYTES =
        8 << 20 /* longest answer that is kept as text: a page of a list is below 1 MiB */
};

/* AWS Signature Version 4, service s3. Texts are borrowed; `token` may be NULL. */
typedef struct tp_http_keys {
    const char *id, *secret, *token, *region;
} tp_http_keys;

typedef struct tp_http_request {
    const char *method;
    const char *url; /* percent-encoded; for signed requests query keys sorted, each with '=' */
    const char *headers[TP_HTTP_HEADERS]; /* "name: value", up to the first NULL */
    const void *body;                     /* NULL: none */
    size_t body_bytes;
    const tp_http_keys *keys; /* NULL: not signed */
    const char *bearer;       /* NULL: no token */
    bool follow;              /* redirections, never from https to http */
    void *into; /* where the body of a 2xx answer goes; NULL: into the answer's text */
    size_t into_bytes;
} tp_http_request;

/* Zero-initialise; tp_http_answer_deinit() frees. Everything in it is hostile. */
typedef struct tp_http_answer {
    int32_t code;                  /* 0: no answer came */
    size_t got;                    /* bytes in `into`, also of an answer that broke off */
    tp_str_builder text;           /* all other bodies, at most TP_HTTP_TEXT_BYTES */
    bool has_length, has_total;    /* of `length`, `total` */
    uint64_t length;               /* Content-Length */
    uint64_t range_first, total;   /* Content-Range: first byte, bytes of the whole object */
    char etag[TP_HTTP_ETAG_BYTES]; /* with its quotes, "" when there was none */
    char region[64];               /* x-amz-bucket-region */
    int64_t retry_after_s;         /* -1: not said */
    char problem[256];             /* what kept the answer from being complete, else "" */
    bool passing;                  /* the problem may pass: a reset, a time-out */
} tp_http_answer;

void tp_http_answer_deinit(tp_http_answer *answer);

/* A client keeps connections. Thread-compatible: each thread its own. */
typedef struct tp_http_client tp_http_client;
tpucl_status tp_http_client_create(tp_http_client **out_client) TPUCL_MUST_CHECK;
void tp_http_client_destroy(tp_http_client *client);

/* Replaces what is in the answer. A failure is ours (memory, no libcurl); what went wrong on the way stands in the
 * answer. */
tpucl_status tp_http_perform(tp_http_client *client, const tp_http_request *request,
                             tp_http_answer *answer) TPUCL_MUST_CHECK;

#endif
