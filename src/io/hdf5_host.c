/* SPDX-License-Identifier: Apache-2.0
 * The host's side of reading HDF5: starts the guest, asks, and checks what it is told. See hdf5_library.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "core/str.h"
#include "io/hdf5_library.h"

struct tp_hdf5 {
    tp_arena *arena;
    const char *name;
    pid_t guest;
    int socket;
    tp_hdf5_datasets datasets;
    tp_map dataset_paths, group_paths;
};

/* ---- the guest ---- */

/* Seconds of processor time: a file that keeps the library in circles ends there. */
static rlim_t guest_seconds(uint64_t file_bytes)
{
    return 5 + (rlim_t)(file_bytes >> 23);
}

/* Address space: what the process has already, and room for a file and its elements. */
static rlim_t guest_memory(uint64_t file_bytes)
{
    return ((rlim_t)2 << 30) + (rlim_t)file_bytes * 4;
}

/* Pages that the process has now; 0 when it cannot be told. */
static rlim_t address_space(void)
{
    char text[64] = {0};
    int64_t pages = 0;
    const int file = open("/proc/self/statm", O_RDONLY);
    if (file < 0) return 0;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    tp_view rest = {text, length > 0 ? (size_t)length : 0}, word;
    if (!tp_view_next(&rest, ' ', &word) || tp_str_parse_int64(word, &pages) != TPUCL_OK) return 0;
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, rlim_t value)
{
    struct rlimit now;
    if (getrlimit(resource, &now)) return;
    if (now.rlim_max == RLIM_INFINITY || now.rlim_max > value) now.rlim_max = value;
    now.rlim_cur = now.rlim_max;
    setrlimit(resource, &now);
}

/* Dies quietly: without the embedder's signal handlers, core dumps and messages of the C library. */
static void become_guest(uint64_t file_bytes)
{
    static const int signals[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT,
                                  SIGINT,  SIGTERM, SIGXCPU, SIGALRM, SIGPIPE};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
    }
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, guest_seconds(file_bytes));
    const rlim_t space = address_space();
    /* Sanitizers reserve terabytes of address space, which nothing can be measured against. */
    if (space && space < (rlim_t)1 << 42) limit(RLIMIT_AS, space + guest_memory(file_bytes));
}

static tpucl_status start_guest(tp_hdf5 *file, const tp_hdf5_source *source, uint64_t file_bytes)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        return TP_FAIL_CODE(TPUCL_IO_ERROR, errno, "no socket to read '%s' through: %s", file->name,
                            strerror(errno));
    file->guest = fork();
    if (file->guest == 0) {
        close(sockets[0]);
        become_guest(file_bytes);
        tp_hdf5_serve(sockets[1], source);
        kill(getpid(), SIGKILL); /* nothing of the embedder's may run at an exit of this process */
    }
    close(sockets[1]);
    file->socket = sockets[0];
    if (file->guest < 0)
        return TP_FAIL_CODE(TPUCL_OUT_OF_MEMORY, errno, "no process to read '%s' in: %s",
                            file->name, strerror(errno));
    return TPUCL_OK;
}

static tpucl_status guest_died(const tp_hdf5 *file)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA,
                   "'%s' is damaged or hostile: the HDF5 library did not survive reading it",
                   file->name);
}

/* ---- asking ---- */

/* Sends the question and reads the head of the answer; a failure of the guest becomes ours. */
static tpucl_status ask(tp_hdf5 *file, tp_hdf5_request *request, tp_hdf5_answer *answer)
{
    if (!tp_hdf5_transfer(file->socket, request, sizeof *request, true) ||
        !tp_hdf5_transfer(file->socket, answer, sizeof *answer, false))
        return guest_died(file);
    if (answer->status == TPUCL_OK) return TPUCL_OK;
    answer->message[sizeof answer->message - 1] = 0;
    const bool is_known = answer->status == TPUCL_OUT_OF_MEMORY ||
                          answer->status == TPUCL_UNSUPPORTED || answer->status == TPUCL_INTERNAL;
    return TP_FAIL(is_known ? (tpucl_status)answer->status : TPUCL_CORRUPT_DATA, "%s",
                   answer->message);
}

/* ---- the table ---- */

static tpucl_status add_row(tp_hdf5 *file, tp_hdf5_row *row)
{
    tp_hdf5_dataset dataset = {.dtype = (tp_dtype)row->dtype, .is_readable = row->is_readable == 1};
    if (memchr(row->path, 0, sizeof row->path) == NULL) return guest_died(file);
    const char *path = tp_arena_strdup(file->arena, row->path);
    if (!path) return TPUCL_OUT_OF_MEMORY;
    if (row->rank == -1) return tp_map_add(&file->group_paths, path, 0);
    if (row->dtype < 0 || row->dtype >= TP_DTYPE_COUNT || row->rank < 0 ||
        tp_shape_init(&dataset.shape, row->rank, row->dims) != TPUCL_OK)
        return guest_died(file);
    dataset.path = path;
    TP_TRY(tp_map_add(&file->dataset_paths, path, file->datasets.count));
    return tp_hdf5_datasets_push(&file->datasets, dataset);
}

static tpucl_status ask_table(tp_hdf5 *file)
{
    tp_hdf5_request request = {.question = TP_HDF5_ASK_TABLE};
    tp_hdf5_answer answer;
    tp_hdf5_row row;
    TP_TRY(ask(file, &request, &answer));
    if (answer.bytes % sizeof row || answer.bytes / sizeof row > TP_HDF5_MAX_OBJECTS + 1)
        return guest_died(file);
    for (uint64_t i = 0; i < answer.bytes / sizeof row; i++) {
        if (!tp_hdf5_transfer(file->socket, &row, sizeof row, false)) return guest_died(file);
        TP_TRY(add_row(file, &row));
    }
    return TPUCL_OK;
}

/* ---- open, close ---- */

static tpucl_status open_source(const char *name, const void *bytes, uint64_t length,
                                tp_hdf5 **out_file)
{
    tp_hdf5 *file = TP_NEW(tp_hdf5);
    tpucl_status status;
    if (!file) return TPUCL_OUT_OF_MEMORY;
    file->guest = -1;
    file->socket = -1;
    TP_TRY_GOTO(status, tp_arena_create(0, &file->arena), failed);
    status = TPUCL_OUT_OF_MEMORY;
    file->name = tp_arena_strdup(file->arena, name);
    if (!file->name) goto failed;
    const tp_hdf5_source source = {file->name, bytes, (size_t)length};
    TP_TRY_GOTO(status, start_guest(file, &source, length), failed);
    TP_TRY_GOTO(status, ask_table(file), failed);
    *out_file = file;
    return TPUCL_OK;
failed:
    tp_hdf5_close(file);
    return status;
}

tpucl_status tp_hdf5_open(const char *path, tp_hdf5 **out_file)
{
    uint64_t bytes;
    TP_TRY(tp_file_size(path, &bytes));
    return open_source(path, NULL, bytes, out_file);
}

tpucl_status tp_hdf5_open_bytes(const void *bytes, size_t length, const char *name,
                                tp_hdf5 **out_file)
{
    return open_source(name, bytes, length, out_file);
}

void tp_hdf5_close(tp_hdf5 *file)
{
    if (!file) return;
    if (file->socket >= 0) close(file->socket);
    if (file->guest > 0) {
        kill(file->guest, SIGKILL); /* it holds nothing that is worth an orderly end */
        while (waitpid(file->guest, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    tp_hdf5_datasets_deinit(&file->datasets);
    tp_map_deinit(&file->dataset_paths);
    tp_map_deinit(&file->group_paths);
    tp_arena_destroy(file->arena);
    tp_free(file);
}

/* ---- questions ---- */

int32_t tp_hdf5_dataset_count(const tp_hdf5 *file)
{
    return (int32_t)file->datasets.count;
}

const tp_hdf5_dataset *tp_hdf5_dataset_at(const tp_hdf5 *file, int32_t index)
{
    return &file->datasets.items[index];
}

const tp_hdf5_dataset *tp_hdf5_find_dataset(const tp_hdf5 *file, const char *path)
{
    size_t index;
    return tp_map_find(&file->dataset_paths, path, &index) ? &file->datasets.items[index] : NULL;
}

bool tp_hdf5_has_group(const tp_hdf5 *file, const char *path)
{
    return tp_map_find(&file->group_paths, path, NULL);
}

tpucl_status tp_hdf5_read(tp_hdf5 *file, const tp_hdf5_dataset *dataset, void *out_elements)
{
    tp_hdf5_request request = {.question = TP_HDF5_ASK_ELEMENTS};
    tp_hdf5_answer answer;
    const size_t bytes = (size_t)tp_shape_bytes(&dataset->shape, dataset->dtype);
    if (!dataset->is_readable)
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s': '%s' holds no numbers that tpucl has a type for",
                       file->name, dataset->path);
    if (bytes == 0) return TPUCL_OK;
    request.dataset = (int32_t)(dataset - file->datasets.items);
    TP_TRY(ask(file, &request, &answer));
    if (answer.bytes != bytes || !tp_hdf5_transfer(file->socket, out_elements, bytes, false))
        return guest_died(file);
    return TPUCL_OK;
}

/* The bytes of all texts, each ended by a zero (tp_free). */
static tpucl_status ask_texts(tp_hdf5 *file, const char *group, const char *name, char **out_bytes,
                              size_t *out_length, bool *out_exists)
{
    tp_hdf5_request request = {.question = TP_HDF5_ASK_TEXTS};
    tp_hdf5_answer answer;
    if (strlen(group) >= sizeof request.group || strlen(name) >= sizeof request.name)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%.100s' of '%.100s' is too long", name, group);
    strcpy(request.group, group);
    strcpy(request.name, name);
    TP_TRY(ask(file, &request, &answer));
    if (answer.bytes > TP_HDF5_MAX_TEXT_BYTES) return guest_died(file);
    char *bytes = tp_alloc((size_t)answer.bytes + 1);
    if (!bytes) return TPUCL_OUT_OF_MEMORY;
    const size_t length = (size_t)answer.bytes;
    if (!tp_hdf5_transfer(file->socket, bytes, length, false) ||
        (length && bytes[length - 1] != 0)) {
        tp_free(bytes);
        return guest_died(file);
    }
    *out_bytes = bytes;
    *out_length = length;
    *out_exists = answer.exists == 1;
    return TPUCL_OK;
}

tpucl_status tp_hdf5_attribute_texts(tp_hdf5 *file, const char *group, const char *name,
                                     tp_arena *arena, const char *const **out_texts,
                                     size_t *out_count)
{
    char *bytes;
    size_t length, count = 0;
    bool exists;
    TP_TRY(ask_texts(file, group, name, &bytes, &length, &exists));
    for (size_t i = 0; i < length; i++)
        count += bytes[i] == 0;
    const char **texts = TP_ARENA_NEW_ARRAY(arena, const char *, count + 1);
    tpucl_status status = texts ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    const char *at = bytes;
    for (size_t i = 0; i < count && status == TPUCL_OK; i++) {
        texts[i] = tp_arena_strdup(arena, at);
        if (!texts[i]) status = TPUCL_OUT_OF_MEMORY;
        at += strlen(at) + 1;
    }
    tp_free(bytes);
    if (status != TPUCL_OK) return status;
    *out_texts = exists ? texts : NULL;
    *out_count = count;
    return TPUCL_OK;
}

tpucl_status tp_hdf5_attribute_text(tp_hdf5 *file, const char *group, const char *name,
                                    tp_arena *arena, const char **out_text)
{
    const char *const *texts;
    size_t count;
    TP_TRY(tp_hdf5_attribute_texts(file, group, name, arena, &texts, &count));
    if (texts && count != 1)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': the attribute '%s' is no single text", file->name,
                       name);
    *out_text = texts ? texts[0] : NULL;
    return TPUCL_OK;
}
