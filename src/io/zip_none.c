/* SPDX-License-Identifier: Apache-2.0
 * Stands for zip.c in a build without libzip. */
#include "io/zip.h"

static tpucl_status refuse(const char *name)
{
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "'%s' is a zip archive, and this build of tpucl has no libzip; install libzip's "
                   "development files and build again, or save the model as .h5",
                   name);
}

tpucl_status tp_zip_open(const char *path, tp_zip **out_zip)
{
    (void)out_zip;
    return refuse(path);
}

tpucl_status tp_zip_open_bytes(const void *bytes, size_t length, const char *name, tp_zip **out_zip)
{
    (void)bytes, (void)length, (void)out_zip;
    return refuse(name);
}

void tp_zip_close(tp_zip *zip)
{
    (void)zip;
}

int32_t tp_zip_count(const tp_zip *zip)
{
    (void)zip;
    return 0;
}

const tp_zip_entry *tp_zip_entry_at(const tp_zip *zip, int32_t index)
{
    (void)zip, (void)index;
    return NULL;
}

const tp_zip_entry *tp_zip_find(const tp_zip *zip, const char *name)
{
    (void)zip, (void)name;
    return NULL;
}

tpucl_status tp_zip_read(tp_zip *zip, const tp_zip_entry *entry, uint64_t max_bytes,
                         char **out_bytes, size_t *out_length)
{
    (void)zip, (void)max_bytes, (void)out_bytes, (void)out_length;
    return refuse(entry->name);
}

tpucl_status tp_zip_write(const char *path, const tp_zip_member *members, int32_t count)
{
    (void)members, (void)count;
    return refuse(path);
}
