/* SPDX-License-Identifier: Apache-2.0
 * An object behind HTTP, and requests about it that are repeated where that helps: answers 408, 429, 500, 502, 503,
 * 504, S3's RequestTimeout, SlowDown and InternalError, connections that break or stall. Pauses are drawn evenly
 * from 0 to a limit that doubles ("full jitter"); Retry-After is waited for; all tries together have a budget. */
#ifndef TP_IO_REMOTE_H
#define TP_IO_REMOTE_H

#include "io/http.h"
#include "io/store.h"

typedef struct tp_remote {
    char *name; /* as the user wrote it, without a query: for messages */
    char *url;  /* of the object, percent-encoded */
    char *id, *secret, *token, *region, *bearer; /* NULL: none */
    bool follow;
} tp_remote;

void tp_remote_destroy(tp_remote *remote); /* accepts NULL; wipes secrets */

/* Reads environment and files. `scheme` is "s3://" or "gs://". Gives keys, token, region, and the server's address,
 * "https://host" without a slash at its end, for tp_free. */
tpucl_status tp_store_credentials(const char *scheme, tp_remote *remote,
                                  char **out_endpoint) TPUCL_MUST_CHECK;

typedef struct tp_retry {
    uint64_t begin_ns, budget_ns, pause_ns, random;
    int32_t tries;
} tp_retry;
tp_retry tp_retry_begin(const tp_store_options *options);
/* Waits and says true if the request is worth another try. */
bool tp_retry_again(tp_retry *retry, const tp_http_answer *answer);

/* One try, with the target's credentials. `query` is "?a=&b=..." or "". */
tpucl_status tp_remote_try(const tp_remote *remote, tp_http_client *client, tp_http_request request,
                           const char *query, tp_http_answer *answer) TPUCL_MUST_CHECK;
/* Tries within the budget. What the last answer says is up to the caller. */
tpucl_status tp_remote_send(const tp_remote *remote, tp_http_client *client,
                            const tp_store_options *options, tp_http_request request,
                            const char *query, tp_http_answer *answer,
                            tp_retry *out_retry) TPUCL_MUST_CHECK;
static inline bool tp_remote_good(const tp_http_answer *answer)
{
    return answer->code >= 200 && answer->code < 300 && !answer->problem[0];
}
/* Fills the error record: "cannot <action> '<name>': ...". */
tpucl_status tp_remote_fail(const tp_remote *remote, const char *action,
                            const tp_http_answer *answer, const tp_retry *retry);
/* RFC 3986: all but A-Z a-z 0-9 - . _ ~ as %XX; '/' stays if `slash`. */
void tp_remote_encode(tp_str_builder *out, const char *text, bool slash);

#endif
