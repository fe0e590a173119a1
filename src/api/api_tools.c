/* SPDX-License-Identifier: Apache-2.0
 * What there is to choose from (topologies, configuration keys, environment), and files. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tpucl/tools.h>
#include "api/handles.h"
#include "core/env.h"
#include "core/file.h"
#include "topo/config.h"
#include "topo/topology.h"

const char *tpucl_topology_name(int32_t index)
{
    return index < 0 ? NULL : tp_topology_builtin_name((size_t)index);
}

tpucl_status tpucl_config_help(char **out_text)
{
    TP_API_NEED(out_text);
    TP_TRY(tp_config_help(out_text));
    return TPUCL_OK;
}

tpucl_status tpucl_config_schema(char **out_text)
{
    TP_API_NEED(out_text);
    TP_TRY(tp_config_schema(out_text));
    return TPUCL_OK;
}

tpucl_environment_variable tpucl_environment_at(int32_t index)
{
    tpucl_environment_variable variable = {NULL, NULL, NULL};
    if (index < 0 || index >= TP_ENV_COUNT) return variable;
    const tp_env_row *row = tp_env_describe((tp_env_id)index);
    variable.name = row->name;
    variable.value = row->value;
    variable.meaning = row->meaning;
    return variable;
}

static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static tpucl_status write_special(const char *path, const char *bytes, size_t byte_count)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return TP_FAIL_CODE(TPUCL_IO_ERROR, errno, "'%s' cannot be opened for writing: %s", path,
                            strerror(errno));
    size_t done = 0;
    while (done < byte_count) {
        ssize_t written = write(file, bytes + done, byte_count - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            int code = errno;
            close(file);
            return TP_FAIL_CODE(TPUCL_IO_ERROR, code,
                                "writing to '%s' failed after %zu of %zu bytes: %s", path, done,
                                byte_count, strerror(code));
        }
        done += (size_t)written;
    }
    if (close(file) != 0)
        return TP_FAIL_CODE(TPUCL_IO_ERROR, errno, "closing '%s' failed: %s", path,
                            strerror(errno));
    return TPUCL_OK;
}

tpucl_status tpucl_file_write(const char *path, const void *bytes, size_t byte_count)
{
    TP_API_NEED(path);
    TP_API_NEED(bytes);
    if (is_special(path))
        TP_TRY(write_special(path, bytes, byte_count));
    else
        TP_TRY(tp_file_write_atomic(path, bytes, byte_count));
    return TPUCL_OK;
}

tpucl_status tpucl_file_can_write(const char *path)
{
    TP_API_NEED(path);
    if (is_special(path)) {
        TP_TRY(write_special(path, "", 0));
        return TPUCL_OK;
    }
    tp_file_writer *writer = NULL;
    TP_TRY(tp_file_writer_open(path, &writer));
    tp_file_writer_abort(writer);
    return TPUCL_OK;
}
