/* SPDX-License-Identifier: Apache-2.0
 * Web servers as stores to read from. Addresses are used as they are; a query may be a secret (a signed address), so
 * messages leave it out. */
#include <string.h>
#include "core/alloc.h"
#include "io/store_internal.h"

static tpucl_status open_target(const char *url, tp_remote **out_remote)
{
    const char *host = strstr(url, "://") + 3;
    const size_t host_length = strcspn(host, "/?#");
    for (const char *c = url; *c; c++)
        if ((unsigned char)*c <= 32 || *c == 127)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "an http address holds a space or control character; write it as %%20");
    if (memchr(host, '@', host_length))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "an http address may hold no user or password");
    tp_remote *remote = TP_NEW(tp_remote);
    if (!remote) return TPUCL_OUT_OF_MEMORY;
    remote->follow = true;
    remote->url = tp_alloc_strdup(url);
    remote->name = tp_alloc_strdup(url);
    if (!remote->url || !remote->name) {
        tp_remote_destroy(remote);
        return TPUCL_OUT_OF_MEMORY;
    }
    remote->name[strcspn(url, "?#")] = 0;
    *out_remote = remote;
    return TPUCL_OK;
}

static tpucl_status stat_http(const char *url, const tp_store_options *options,
                              tp_store_info *out_info)
{
    tp_remote *remote;
    TP_TRY(open_target(url, &remote));
    const tpucl_status status = tp_remote_stat(remote, options, out_info);
    tp_remote_destroy(remote);
    return status;
}

static tpucl_status open_reader(const char *url, uint64_t offset, const tp_store_options *options,
                                tp_reader **out_reader)
{
    tp_remote *remote;
    TP_TRY(open_target(url, &remote));
    return tp_remote_open_reader(remote, offset, options, out_reader);
}

const tp_store_ops tp_store_http = {"http://", stat_http, open_reader, NULL, NULL, NULL, NULL};
const tp_store_ops tp_store_https = {"https://", stat_http, open_reader, NULL, NULL, NULL, NULL};
