/* SPDX-License-Identifier: Apache-2.0
 * The guest's side of reading HDF5: it opens the file and answers until the host closes the socket. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/str.h"
#include "io/hdf5_library.h"

/* ---- the socket ---- */

bool tp_hdf5_transfer(int socket, void *bytes, size_t length, bool is_sending)
{
    for (size_t done = 0; done < length;) {
        char *at = (char *)bytes + done;
        const ssize_t moved = is_sending ? send(socket, at, length - done, MSG_NOSIGNAL)
                                         : recv(socket, at, length - done, 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return false;
        done += (size_t)moved;
    }
    return true;
}

static bool answer(int socket, tpucl_status status, bool exists, void *bytes, size_t length)
{
    tp_hdf5_answer head = {.status = (int32_t)status, .exists = exists};
    if (status == TPUCL_OK)
        head.bytes = length;
    else
        snprintf(head.message, sizeof head.message, "%.500s", tpucl_last_error()->message);
    return tp_hdf5_transfer(socket, &head, sizeof head, true) &&
           tp_hdf5_transfer(socket, bytes, (size_t)head.bytes, true);
}

/* ---- answers ---- */

static tp_hdf5_row row_of(const tp_hdf5_dataset *dataset, const char *group)
{
    tp_hdf5_row row = {.rank = -1};
    const char *path = dataset ? dataset->path : group;
    if (dataset) {
        row.rank = dataset->shape.rank;
        row.dtype = (int32_t)dataset->dtype;
        row.is_readable = dataset->is_readable;
        memcpy(row.dims, dataset->shape.dims, sizeof row.dims);
    }
    memcpy(row.path, path, strlen(path)); /* shorter: the walk has seen to it */
    return row;
}

static bool answer_table(int socket, const tp_hdf5_guest *guest, tpucl_status opened)
{
    const size_t groups = guest->groups.count, datasets = guest->datasets.count;
    tp_hdf5_row *rows = NULL;
    if (opened == TPUCL_OK) {
        rows = TP_NEW_ARRAY(tp_hdf5_row, groups + datasets + 1);
        if (!rows) opened = TPUCL_OUT_OF_MEMORY;
    }
    for (size_t i = 0; rows && i < groups + datasets; i++)
        rows[i] = i < groups ? row_of(NULL, guest->groups.items[i])
                             : row_of(&guest->datasets.items[i - groups], NULL);
    const bool is_sent = answer(socket, opened, true, rows, (groups + datasets) * sizeof *rows);
    tp_free(rows);
    return is_sent;
}

static bool answer_elements(int socket, tp_hdf5_guest *guest, int32_t index)
{
    void *elements = NULL;
    size_t bytes = 0;
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    if (index < 0 || (size_t)index >= guest->datasets.count) return false;
    const tp_hdf5_dataset *dataset = &guest->datasets.items[index];
    bytes = (size_t)tp_shape_bytes(&dataset->shape, dataset->dtype);
    elements = tp_alloc_zero(bytes);
    if (elements) status = tp_hdf5_read_elements(guest, dataset, elements);
    const bool is_sent = answer(socket, status, true, elements, bytes);
    tp_free(elements);
    return is_sent;
}

static bool answer_texts(int socket, tp_hdf5_guest *guest, const tp_hdf5_request *request)
{
    tp_hdf5_texts texts = {0};
    tp_str_builder all = {0};
    bool exists = false;
    char *bytes = NULL;
    size_t length = 0;
    tpucl_status status = tp_hdf5_read_texts(guest, request->group, request->name, &texts, &exists);
    for (size_t i = 0; status == TPUCL_OK && i < texts.count; i++)
        tp_str_append_bytes(&all, texts.items[i], strlen(texts.items[i]) + 1);
    if (status == TPUCL_OK) status = tp_str_builder_finish(&all, &bytes, &length);
    const bool is_sent = answer(socket, status, exists, bytes, length);
    tp_free(bytes);
    tp_str_builder_deinit(&all);
    tp_hdf5_texts_deinit(&texts);
    return is_sent;
}

static tpucl_status open_source(tp_hdf5_guest *guest, const tp_hdf5_source *source)
{
    guest->name = source->name;
    TP_TRY(tp_arena_create(0, &guest->arena));
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* no error stacks on standard error */
    if (source->bytes)
        guest->file = H5LTopen_file_image((void *)(uintptr_t)source->bytes, source->length,
                                          H5LT_FILE_IMAGE_DONT_COPY | H5LT_FILE_IMAGE_DONT_RELEASE);
    else
        guest->file = H5Fopen(source->name, H5F_ACC_RDONLY, H5P_DEFAULT);
    return guest->file < 0 ? tp_hdf5_fail(guest, "the file", source->name)
                           : tp_hdf5_read_table(guest);
}

void tp_hdf5_serve(int socket, const tp_hdf5_source *source)
{
    tp_hdf5_guest guest = {.file = -1};
    tp_hdf5_request request;
    const tpucl_status opened = open_source(&guest, source);
    bool goes_on = true;
    while (goes_on && tp_hdf5_transfer(socket, &request, sizeof request, false)) {
        request.group[sizeof request.group - 1] = request.name[sizeof request.name - 1] = 0;
        if (request.question == TP_HDF5_ASK_TABLE)
            goes_on = answer_table(socket, &guest, opened);
        else if (request.question == TP_HDF5_ASK_ELEMENTS)
            goes_on = answer_elements(socket, &guest, request.dataset);
        else
            goes_on = answer_texts(socket, &guest, &request);
    }
    /* Nothing is freed: the process ends, and what a hostile file did to the library is best left alone. */
}
