/* SPDX-License-Identifier: Apache-2.0
 * IDX files, the format of MNIST and Fashion-MNIST: 0, 0, type, rank, then `rank` big-endian u32 sizes, then
 * the elements. Read through zlib, which passes plain files as they are.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/env.h"
#include "core/file.h"
#include "data/source_internal.h"
#include "io/store.h"

enum { TYPE_U8 = 0x08, MAX_EXPANSION = 1032 /* deflate's largest ratio, zlib's documentation */ };

static const char system_folder[] = "/usr/share/datasets/fashion-mnist";

static tpucl_status fail_to_decompress(gzFile file, const char *path, uint64_t offset)
{
    int code = 0;
    const char *text = gzerror(file, &code);
    return TP_FAIL_CODE(TPUCL_CORRUPT_DATA, code, "'%s' cannot be decompressed at offset %llu: %s",
                        path, (unsigned long long)offset, text);
}

static tpucl_status read_exactly(gzFile file, const char *path, uint64_t offset, void *out,
                                 uint64_t bytes)
{
    uint64_t done = 0;
    while (done < bytes) {
        unsigned chunk = bytes - done > (1u << 30) ? 1u << 30 : (unsigned)(bytes - done);
        int got = gzread(file, (char *)out + done, chunk);
        if (got < 0) return fail_to_decompress(file, path, offset + done);
        if (got == 0)
            return TP_FAIL(
                TPUCL_CORRUPT_DATA, "'%s' ends at offset %llu; its header promises %llu bytes",
                path, (unsigned long long)(offset + done), (unsigned long long)(offset + bytes));
        done += (uint64_t)got;
    }
    return TPUCL_OK;
}

static tpucl_status read_header(gzFile file, const char *path, tp_shape *out_shape)
{
    unsigned char head[4], sizes[4 * TP_MAX_RANK];
    int64_t dims[TP_MAX_RANK];
    TP_TRY(read_exactly(file, path, 0, head, 4));
    if (head[0] || head[1] || head[2] != TYPE_U8 || head[3] < 1 || head[3] > TP_MAX_RANK)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' starts with %02x%02x%02x%02x, which is no IDX file of bytes (expected "
                       "000008 and a rank from 01 to %02x)",
                       path, head[0], head[1], head[2], head[3], TP_MAX_RANK);
    TP_TRY(read_exactly(file, path, 4, sizes, 4u * head[3]));
    for (int i = 0; i < head[3]; i++)
        dims[i] = (int64_t)sizes[4 * i] << 24 | sizes[4 * i + 1] << 16 | sizes[4 * i + 2] << 8 |
                  sizes[4 * i + 3];
    if (tp_shape_init(out_shape, head[3], dims) == TPUCL_OK) return TPUCL_OK;
    tp_error_note("header of '%s'", path);
    return tp_error_recast(TPUCL_CORRUPT_DATA);
}

/* A file behind its header: the elements are still to be read. */
typedef struct payload {
    gzFile file;
    char *path;
    void *data; /* the array's, borrowed */
    uint64_t bytes, offset;
} payload;

static void payload_destroy(payload *work)
{
    if (!work) return;
    if (work->file) gzclose_r(work->file);
    tp_free(work->path);
    tp_free(work);
}

/* Nothing follows the elements. Where they end with zlib's buffer, it sees its checksum only now, or that it is
 * missing: that is no failure of gzread. */
static tpucl_status check_end(const payload *work)
{
    const uint64_t end = work->offset + work->bytes;
    char extra;
    int code = Z_OK, got = gzread(work->file, &extra, 1);
    if (got < 0) return fail_to_decompress(work->file, work->path, end);
    if (got > 0)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' goes on behind the %llu bytes that its header promises", work->path,
                       (unsigned long long)end);
    (void)gzerror(work->file, &code);
    if (code == Z_BUF_ERROR)
        return TP_FAIL_CODE(TPUCL_CORRUPT_DATA, code,
                            "'%s' was cut: the checksum behind its compressed bytes is missing",
                            work->path);
    return TPUCL_OK;
}

/* Reads the elements and makes sure that the file ends there; frees `user`. */
static tpucl_status payload_read(void *user)
{
    payload *work = user;
    tpucl_status status =
        read_exactly(work->file, work->path, work->offset, work->data, work->bytes);
    if (status == TPUCL_OK) status = check_end(work);
    payload_destroy(work);
    return status;
}

/* zlib reads files: an object goes into one without a name, in memory, as long as it is read. */
static tpucl_status copy_object(tp_reader *from, int descriptor)
{
    enum { CHUNK = 1 << 16 };
    char chunk[CHUNK];
    for (;;) {
        size_t got = 0;
        TP_TRY(tp_reader_read(from, chunk, sizeof chunk, &got));
        for (size_t done = 0; done < got;) {
            const ssize_t now = write(descriptor, chunk + done, got - done);
            if (now < 0 && errno == EINTR) continue;
            if (now < 0)
                return TP_FAIL_CODE(TPUCL_OUT_OF_MEMORY, errno, "no memory for '%s': %s",
                                    from->name, strerror(errno));
            done += (size_t)now;
        }
        if (got == 0) return TPUCL_OK;
    }
}

static tpucl_status open_object(const char *url, gzFile *out_file, uint64_t *out_bytes)
{
    tp_reader *from = NULL;
    TP_TRY(tp_store_open_reader(url, 0, NULL, &from));
    const int descriptor = memfd_create("tpucl", MFD_CLOEXEC);
    tpucl_status status = descriptor < 0
                              ? TP_FAIL_CODE(TPUCL_OUT_OF_MEMORY, errno, "no memory for '%s': %s",
                                             url, strerror(errno))
                              : copy_object(from, descriptor);
    *out_bytes = from->offset;
    tp_reader_close(from);
    if (status == TPUCL_OK && lseek(descriptor, 0, SEEK_SET) == 0)
        *out_file = gzdopen(descriptor, "rb");
    if (status == TPUCL_OK && !*out_file) status = TPUCL_OUT_OF_MEMORY;
    if (status != TPUCL_OK && descriptor >= 0) close(descriptor);
    return status;
}

static tpucl_status open_gz(const char *path, gzFile *out_file, uint64_t *out_bytes)
{
    if (tp_store_is_remote(path)) return open_object(path, out_file, out_bytes);
    *out_file = gzopen(tp_store_path(path), "rb");
    if (!*out_file)
        return TP_FAIL_CODE(errno == ENOENT ? TPUCL_NOT_FOUND : TPUCL_IO_ERROR, errno,
                            "'%s' cannot be opened: %s", path, strerror(errno));
    return tp_file_size(tp_store_path(path), out_bytes);
}

/* Reads and checks the header and allocates the array. */
static tpucl_status payload_open(payload *work, tp_file_array *out)
{
    const char *path = work->path;
    uint64_t file_bytes = 0;
    TP_TRY(open_gz(path, &work->file, &file_bytes));
    gzbuffer(work->file, 1u << 18);
    TP_TRY(read_header(work->file, path, &out->shape));
    out->dtype = TP_U8;
    work->bytes = (uint64_t)tp_shape_bytes(&out->shape, TP_U8);
    work->offset = 4 + 4u * (unsigned)out->shape.rank;
    if (work->bytes / MAX_EXPANSION > file_bytes)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' has %llu bytes and its header promises %llu elements, more than any "
                       "compression yields",
                       path, (unsigned long long)file_bytes, (unsigned long long)work->bytes);
    out->data = work->data = tp_alloc(work->bytes);
    if (!out->data)
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for the %llu bytes of '%s'",
                       (unsigned long long)work->bytes, path);
    return TPUCL_OK;
}

/* *out_work is what is left to do: payload_read. On failure out->data is the caller's to free. */
static tpucl_status open_array(const char *path, tp_file_array *out, payload **out_work)
{
    payload *work = TP_NEW(payload);
    if (work) work->path = tp_alloc_strdup(path);
    tpucl_status status = work && work->path ? payload_open(work, out) : TPUCL_OUT_OF_MEMORY;
    if (status != TPUCL_OK) {
        payload_destroy(work);
        return status;
    }
    *out_work = work;
    return TPUCL_OK;
}

static tpucl_status widen_labels(const char *path, tp_file_array *labels)
{
    if (labels->shape.rank != 1)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' has rank %d; labels have rank 1", path,
                       labels->shape.rank);
    size_t count = (size_t)labels->shape.dims[0];
    int32_t *wide = TP_NEW_ARRAY(int32_t, count);
    if (!wide) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        wide[i] = ((const unsigned char *)labels->data)[i];
    tp_free(labels->data);
    labels->data = wide;
    labels->dtype = TP_S32;
    return TPUCL_OK;
}

/* Small files are read at once, so that what is wrong with them is known before anything else begins. */
enum { BACKGROUND_BYTES = 8 << 20 };

static tpucl_status read_both(payload **images, payload *labels, tp_file_array *label_array,
                              const char *labels_path)
{
    TP_TRY(payload_read(labels));
    TP_TRY(widen_labels(labels_path, label_array));
    if ((*images)->bytes >= BACKGROUND_BYTES) return TPUCL_OK;
    payload *work = *images;
    *images = NULL;
    return payload_read(work);
}

tpucl_status tp_source_open_idx(const char *inputs_path, const char *labels_path,
                                tp_source **out_source)
{
    tp_file_array inputs = {0}, labels = {0};
    payload *images = NULL, *rest = NULL;
    tpucl_status status = open_array(inputs_path, &inputs, &images);
    if (status == TPUCL_OK) status = open_array(labels_path, &labels, &rest);
    if (status == TPUCL_OK) status = read_both(&images, rest, &labels, labels_path);
    if (status != TPUCL_OK) {
        payload_destroy(images);
        tp_free(inputs.data);
        tp_free(labels.data);
        return status;
    }
    status = tp_source_adopt_pair(inputs_path, &inputs, labels_path, &labels, out_source);
    if (status == TPUCL_OK && images) {
        status = tp_source_load_in_background(*out_source, payload_read, images);
        if (status == TPUCL_OK) return TPUCL_OK;
        tp_source_destroy(*out_source);
        *out_source = NULL;
    }
    payload_destroy(images);
    return status;
}

static bool has_file(tp_arena *arena, const char *folder, const char *name)
{
    const char *path = tp_file_join(arena, folder, name);
    return path && tp_file_exists(path);
}

static const char *find_folder(tp_arena *arena, const char *folder, const char *name)
{
    if (folder && *folder) return folder;
    const char *data_dir = tp_env_text(TP_ENV_DATA_DIR);
    if (data_dir) {
        const char *below = tp_file_join(arena, data_dir, "fashion-mnist");
        if (below && has_file(arena, below, name)) return below;
        if (has_file(arena, data_dir, name)) return data_dir;
    }
    return system_folder;
}

tpucl_status tp_source_open_fashion_mnist(const char *folder, bool is_test, tp_source **out_source)
{
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    const char *images = is_test ? "t10k-images-idx3-ubyte.gz" : "train-images-idx3-ubyte.gz";
    const char *labels = is_test ? "t10k-labels-idx1-ubyte.gz" : "train-labels-idx1-ubyte.gz";
    const char *found = find_folder(arena, folder, images);
    const char *images_path = tp_file_join(arena, found, images);
    const char *labels_path = tp_file_join(arena, found, labels);
    tpucl_status status = images_path && labels_path
                              ? tp_source_open_idx(images_path, labels_path, out_source)
                              : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_NOT_FOUND)
        tp_error_note(
            "Fashion-MNIST was not found; Debian's package dataset-fashion-mnist brings it "
            "to %s, or set data.folder or TPUCL_DATA_DIR",
            system_folder);
    tp_arena_destroy(arena);
    return status;
}
