/* SPDX-License-Identifier: Apache-2.0
 * Which kind of store an address belongs to. */
#include "io/store.h"
#include <stdlib.h>
#include <string.h>
#include "core/env.h"
#include "core/file.h"
#include "io/store_internal.h"

enum { SMALLEST_PART = 5 << 20 };

const char *tp_store_path(const char *url)
{
    return tp_str_starts_with(url, "file://") ? url + strlen("file://") : url;
}

static tpucl_status find(const char *url, const tp_store_ops **out_ops)
{
    static const tp_store_ops *const kinds[] = {&tp_store_s3, &tp_store_gs, &tp_store_http,
                                                &tp_store_https};
    *out_ops = &tp_store_file;
    const char *mark = strstr(url, "://");
    if (!mark || tp_str_starts_with(url, tp_store_file.scheme)) return TPUCL_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!tp_str_starts_with(url, kinds[i]->scheme)) continue;
        *out_ops = kinds[i];
        return TPUCL_OK;
    }
    /* "a/b://c" is an odd path, "ftp://c" a store that is not known. */
    if (memchr(url, '/', (size_t)(mark - url))) return TPUCL_OK;
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "'%.*s://' is no store that is known; there are file, s3, gs, http and https",
                   (int)(mark - url), url);
}

static tpucl_status complete(const tp_store_options *options, tp_store_options *out)
{
    *out = options ? *options : (tp_store_options){0};
    int64_t seconds;
    TP_TRY(tp_env_int(TP_ENV_STORE_RETRY, 0, 86400, 120, &seconds));
    if (out->block_bytes == 0) out->block_bytes = 8 << 20;
    if (out->blocks <= 0) out->blocks = 4;
    if (out->blocks > 64) out->blocks = 64;
    if (out->part_bytes == 0) out->part_bytes = 16 << 20;
    if (out->part_bytes < SMALLEST_PART) out->part_bytes = SMALLEST_PART;
    if (out->page_count <= 0) out->page_count = 1000;
    if (out->retry_ns == 0) out->retry_ns = (uint64_t)seconds * 1000000000u;
    if (out->first_pause_ns == 0) out->first_pause_ns = 500000000u;
    return TPUCL_OK;
}

static tpucl_status refuse(const tp_store_ops *ops, const char *what)
{
    return TP_FAIL(TPUCL_UNSUPPORTED, "%s addresses can only be read, not %s", ops->scheme, what);
}

tpucl_status tp_store_stat(const char *url, const tp_store_options *options,
                           tp_store_info *out_info)
{
    const tp_store_ops *ops;
    tp_store_options full;
    TP_TRY(find(url, &ops));
    TP_TRY(complete(options, &full));
    *out_info = (tp_store_info){0};
    return ops->stat(url, &full, out_info);
}

tpucl_status tp_store_open_reader(const char *url, uint64_t offset, const tp_store_options *options,
                                  tp_reader **out_reader)
{
    const tp_store_ops *ops;
    tp_store_options full;
    TP_TRY(find(url, &ops));
    TP_TRY(complete(options, &full));
    return ops->open_reader(url, offset, &full, out_reader);
}

tpucl_status tp_store_open_writer(const char *url, const tp_store_options *options,
                                  tp_writer **out_writer)
{
    const tp_store_ops *ops;
    tp_store_options full;
    TP_TRY(find(url, &ops));
    TP_TRY(complete(options, &full));
    if (!ops->open_writer) return refuse(ops, "written");
    return ops->open_writer(url, &full, out_writer);
}

tpucl_status tp_store_list(const char *prefix, const tp_store_options *options, tp_arena *arena,
                           const tp_store_entry **out_entries, size_t *out_count)
{
    const tp_store_ops *ops;
    tp_store_options full;
    TP_TRY(find(prefix, &ops));
    TP_TRY(complete(options, &full));
    if (!ops->list) return refuse(ops, "listed");
    return ops->list(prefix, &full, arena, out_entries, out_count);
}

tpucl_status tp_store_remove(const char *url, const tp_store_options *options)
{
    const tp_store_ops *ops;
    tp_store_options full;
    TP_TRY(find(url, &ops));
    TP_TRY(complete(options, &full));
    if (!ops->remove) return refuse(ops, "removed");
    return ops->remove(url, &full);
}

tpucl_status tp_store_abort_uploads(const char *prefix, const tp_store_options *options,
                                    size_t *out_count)
{
    const tp_store_ops *ops;
    tp_store_options full;
    *out_count = 0;
    TP_TRY(find(prefix, &ops));
    TP_TRY(complete(options, &full));
    return ops->abort_uploads ? ops->abort_uploads(prefix, &full, out_count) : TPUCL_OK;
}

bool tp_store_is_remote(const char *url)
{
    const char *mark = strstr(url, "://");
    return mark && !tp_str_starts_with(url, tp_store_file.scheme) &&
           !memchr(url, '/', (size_t)(mark - url));
}

char *tp_store_join(tp_arena *arena, const char *folder, const char *name)
{
    if (strstr(name, "://") || name[0] == '/') return tp_arena_strdup(arena, name);
    if (folder[0] == 0) return tp_arena_strdup(arena, name);
    return tp_arena_printf(arena, "%s%s%s", folder, tp_str_ends_with(folder, "/") ? "" : "/", name);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const tp_store_entry *)a)->url, ((const tp_store_entry *)b)->url);
}

void tp_store_sort(tp_store_entry *entries, size_t count)
{
    if (count) qsort(entries, count, sizeof *entries, compare);
}
