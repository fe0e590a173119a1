/* SPDX-License-Identifier: Apache-2.0
 * Every environment variable that tpucl reads, in one table. An option or configuration key always
 * wins over the variable. To add one, add a row: TP_ENV_LIST makes its id and its row in
 * docs/environment.md. getenv() is called nowhere else (tools/check_layers looks). */
#ifndef TP_CORE_ENV_H
#define TP_CORE_ENV_H

#include <stdint.h>
#include "core/status.h"

/* X(ID, "name", "value", "meaning") */
#define TP_ENV_LIST(X)                                                                             \
    X(CACHE_DIR, "TPUCL_CACHE_DIR", "folder",                                                      \
      "compiled kernels and verdicts; default `$XDG_CACHE_HOME/tpucl`, then `~/.cache/tpucl`")     \
    X(COMPILER, "TPUCL_COMPILER", "file or 0",                                                     \
      "program that compiles kernels in processes of its own; default `tpucl-compiler` beside "    \
      "the "                                                                                       \
      "library; 0: kernels are built in the process that uses them")                               \
    X(DATA_DIR, "TPUCL_DATA_DIR", "folder", "searched for data sets before the system's folders")  \
    X(DEVICE, "TPUCL_DEVICE", "selector", "the default device, as for `--device`")                 \
    X(DUMP, "TPUCL_DUMP", "folder",                                                                \
      "graphs after each pass, programs and generated kernels go there")                           \
    X(KERNEL_DIR, "TPUCL_KERNEL_DIR", "folder",                                                    \
      "kernel sources are read from there instead of the library's own copy")                      \
    X(LOG, "TPUCL_LOG", "off, error, warning, info, debug", "log level of the command line tool")  \
    X(OPENCL_LIBRARY, "TPUCL_OPENCL_LIBRARY", "file", "loaded instead of libOpenCL.so.1")          \
    X(SYNC, "TPUCL_SYNC", "0 or 1", "1: wait after every launch, to find the one that fails")      \
    X(THREADS, "TPUCL_THREADS", "1 to 1024",                                                       \
      "threads of host loops and of reading data; default one per processor")                      \
    X(TUNING, "TPUCL_TUNING", "0 or 1",                                                            \
      "0: tuning records are left out, heuristics alone choose how products are computed; same "   \
      "bits")                                                                                      \
    X(TUNING_DIR, "TPUCL_TUNING_DIR", "folder",                                                    \
      "your tuning records; default `$XDG_DATA_HOME/tpucl/tuning`, then "                          \
      "`~/.local/share/tpucl/tuning`")                                                             \
    X(VERIFY, "TPUCL_VERIFY", "0 or 1",                                                            \
      "0: kernels are used on a device without being checked there first; for simulators, which "  \
      "take hours for the check")                                                                  \
    X(XDG_CACHE_HOME, "XDG_CACHE_HOME", "folder", "where caches belong by the XDG rules")          \
    X(XDG_DATA_HOME, "XDG_DATA_HOME", "folder", "where a user's data belong by the XDG rules")     \
    X(OCL_ICD_VENDORS, "OCL_ICD_VENDORS", "folder",                                                \
      "read by the OpenCL loader: where it looks for drivers; named in our messages")              \
    X(STORE_RETRY, "TPUCL_STORE_RETRY", "0 to 86400",                                              \
      "seconds of tries in all for one request to a store; default 120")                           \
    X(AWS_ACCESS_KEY_ID, "AWS_ACCESS_KEY_ID", "key", "for s3://; wins over AWS's files")           \
    X(AWS_SECRET_ACCESS_KEY, "AWS_SECRET_ACCESS_KEY", "secret", "belongs to AWS_ACCESS_KEY_ID")    \
    X(AWS_SESSION_TOKEN, "AWS_SESSION_TOKEN", "secret", "of temporary keys")                       \
    X(AWS_PROFILE, "AWS_PROFILE", "name", "profile in AWS's files; default `default`")             \
    X(AWS_DEFAULT_PROFILE, "AWS_DEFAULT_PROFILE", "name", "used when AWS_PROFILE is not set")      \
    X(AWS_SHARED_CREDENTIALS_FILE, "AWS_SHARED_CREDENTIALS_FILE", "file",                          \
      "default `~/.aws/credentials`")                                                              \
    X(AWS_CONFIG_FILE, "AWS_CONFIG_FILE", "file", "default `~/.aws/config`")                       \
    X(AWS_REGION, "AWS_REGION", "name", "of the bucket; default `us-east-1`")                      \
    X(AWS_DEFAULT_REGION, "AWS_DEFAULT_REGION", "name", "used when AWS_REGION is not set")         \
    X(AWS_ENDPOINT_URL_S3, "AWS_ENDPOINT_URL_S3", "address", "server for s3:// instead of AWS")    \
    X(AWS_ENDPOINT_URL, "AWS_ENDPOINT_URL", "address", "used when AWS_ENDPOINT_URL_S3 is not set") \
    X(S3_ENDPOINT, "S3_ENDPOINT", "address", "used when neither of them is set")                   \
    X(GS_ACCESS_KEY_ID, "GS_ACCESS_KEY_ID", "key", "HMAC key for gs://")                           \
    X(GS_SECRET_ACCESS_KEY, "GS_SECRET_ACCESS_KEY", "secret", "belongs to GS_ACCESS_KEY_ID")       \
    X(GOOGLE_OAUTH_ACCESS_TOKEN, "GOOGLE_OAUTH_ACCESS_TOKEN", "secret",                            \
      "bearer token for gs://; wins over the HMAC key")                                            \
    X(GS_ENDPOINT, "GS_ENDPOINT", "address", "server for gs:// instead of Google's")               \
    X(HOME, "HOME", "folder", "used when XDG_CACHE_HOME or XDG_DATA_HOME is not set")

typedef enum tp_env_id {
#define TP_ENV_ENUM(id, name, value, meaning) TP_ENV_##id,
    TP_ENV_LIST(TP_ENV_ENUM)
#undef TP_ENV_ENUM
        TP_ENV_COUNT
} tp_env_id;

typedef struct tp_env_row {
    const char *name, *value, *meaning;
} tp_env_row;

const tp_env_row *tp_env_describe(tp_env_id id);

/* NULL when unset or empty. Borrowed, valid until the variable changes. */
const char *tp_env_text(tp_env_id id);
/* "1", "on", "true", "yes" (and their opposites; unset gives `fallback`). Anything else is
 * TPUCL_INVALID_CONFIG with the variable's name. */
tpucl_status tp_env_flag(tp_env_id id, bool fallback, bool *out_value) TPUCL_MUST_CHECK;
tpucl_status tp_env_int(tp_env_id id, int64_t min, int64_t max, int64_t fallback,
                        int64_t *out_value) TPUCL_MUST_CHECK;

#endif
