/* SPDX-License-Identifier: Apache-2.0
 * A disk that fails: for LD_PRELOAD. FAKE_DISK="fsync EIO step-000000000020" lets fsync fail with EIO for every file
 * or folder whose path holds the text, "write ENOSPC state.safetensors" write; other calls and paths go through. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int should_fail(const char *call, int descriptor)
{
    char wanted[16] = "", code[16] = "", part[256] = "", link[64], path[1024] = "";
    const char *plan = getenv("FAKE_DISK");
    if (!plan || sscanf(plan, "%15s %15s %255s", wanted, code, part) != 3) return 0;
    if (strcmp(wanted, call) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    if (!strstr(path, part)) return 0;
    errno = strcmp(code, "ENOSPC") == 0 ? ENOSPC : EIO;
    return 1;
}

/* POSIX makes a function of the object pointer that dlsym gives. */
static void *next_of(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int fsync(int descriptor)
{
    static int (*next)(int);
    if (!next) *(void **)(void *)&next = next_of("fsync");
    return should_fail("fsync", descriptor) ? -1 : next(descriptor);
}

ssize_t write(int descriptor, const void *bytes, size_t length)
{
    static ssize_t (*next)(int, const void *, size_t);
    if (!next) *(void **)(void *)&next = next_of("write");
    return should_fail("write", descriptor) ? -1 : next(descriptor, bytes, length);
}
