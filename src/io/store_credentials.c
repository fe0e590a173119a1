/* SPDX-License-Identifier: Apache-2.0
 * Keys, region and endpoint of buckets: from the environment, then from AWS's two files (profiles in brackets,
 * "profile NAME" in the config file). Without any, requests are not signed: public buckets can be read. */
#include <string.h>
#include "core/alloc.h"
#include "core/env.h"
#include "core/file.h"
#include "io/remote.h"

enum { FILE_BYTES = 1 << 20 };

/* The value of `key` in `section`, for tp_free; NULL when it is not there. */
static tpucl_status find(tp_view text, tp_view section, const char *key, char **out_value)
{
    tp_view line;
    bool inside = false;
    while (tp_view_next(&text, '\n', &line)) {
        line = tp_view_trim(line);
        if (line.length == 0 || line.data[0] == '#' || line.data[0] == ';') continue;
        if (line.data[0] == '[') {
            tp_view name = tp_view_trim((tp_view){line.data + 1, line.length - 1});
            if (name.length && name.data[name.length - 1] == ']') name.length--;
            if (name.length > 8 && memcmp(name.data, "profile ", 8) == 0)
                name = (tp_view){name.data + 8, name.length - 8};
            inside = tp_view_equal(tp_view_trim(name), section);
            continue;
        }
        tp_view name;
        if (!inside || !tp_view_next(&line, '=', &name)) continue;
        if (!tp_view_equal_text(tp_view_trim(name), key)) continue;
        const tp_view value = tp_view_trim(line);
        char *copy = tp_alloc_zero(value.length + 1);
        if (!copy) return TPUCL_OUT_OF_MEMORY;
        if (value.length) memcpy(copy, value.data, value.length);
        tp_free(*out_value);
        *out_value = copy;
    }
    return TPUCL_OK;
}

static tpucl_status copy_env(tp_env_id id, char **inout_value)
{
    if (*inout_value || !tp_env_text(id)) return TPUCL_OK;
    *inout_value = tp_alloc_strdup(tp_env_text(id));
    return *inout_value ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status read_file(tp_env_id where, const char *below_home, tp_remote *remote,
                              bool want_keys, char **inout_endpoint)
{
    const char *path = tp_env_text(where), *home = tp_env_text(TP_ENV_HOME);
    const char *profile = tp_env_text(TP_ENV_AWS_PROFILE);
    if (!profile) profile = tp_env_text(TP_ENV_AWS_DEFAULT_PROFILE);
    if (!path && !home) return TPUCL_OK;
    tp_str_builder name = {0};
    if (path)
        tp_str_append(&name, path);
    else
        tp_str_builder_printf(&name, "%s/.aws/%s", home, below_home);
    char *text = NULL;
    size_t length = 0;
    tpucl_status status = name.status;
    if (status == TPUCL_OK && tp_file_exists(name.data))
        status = tp_file_read(name.data, FILE_BYTES, &text, &length);
    tp_str_builder_deinit(&name);
    if (!text) return status;
    const tp_view all = {text, length}, section = tp_view_of(profile ? profile : "default");
    if (want_keys && !remote->secret) {
        TP_TRY_GOTO(status, find(all, section, "aws_access_key_id", &remote->id), done);
        TP_TRY_GOTO(status, find(all, section, "aws_secret_access_key", &remote->secret), done);
        TP_TRY_GOTO(status, find(all, section, "aws_session_token", &remote->token), done);
    }
    if (!remote->region) TP_TRY_GOTO(status, find(all, section, "region", &remote->region), done);
    if (!*inout_endpoint)
        TP_TRY_GOTO(status, find(all, section, "endpoint_url", inout_endpoint), done);
done:
    explicit_bzero(text, length);
    tp_free(text);
    return status;
}

static tpucl_status read_aws(tp_remote *remote, char **inout_endpoint)
{
    TP_TRY(copy_env(TP_ENV_AWS_ACCESS_KEY_ID, &remote->id));
    TP_TRY(copy_env(TP_ENV_AWS_SECRET_ACCESS_KEY, &remote->secret));
    if (remote->id) TP_TRY(copy_env(TP_ENV_AWS_SESSION_TOKEN, &remote->token));
    TP_TRY(copy_env(TP_ENV_AWS_REGION, &remote->region));
    TP_TRY(copy_env(TP_ENV_AWS_DEFAULT_REGION, &remote->region));
    TP_TRY(copy_env(TP_ENV_AWS_ENDPOINT_URL_S3, inout_endpoint));
    TP_TRY(copy_env(TP_ENV_AWS_ENDPOINT_URL, inout_endpoint));
    TP_TRY(copy_env(TP_ENV_S3_ENDPOINT, inout_endpoint));
    const bool want_keys = !remote->id;
    TP_TRY(read_file(TP_ENV_AWS_SHARED_CREDENTIALS_FILE, "credentials", remote, want_keys,
                     inout_endpoint));
    return read_file(TP_ENV_AWS_CONFIG_FILE, "config", remote, want_keys, inout_endpoint);
}

static tpucl_status default_to(const char *text, char **inout_value)
{
    if (!*inout_value) *inout_value = tp_alloc_strdup(text);
    return *inout_value ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

/* What goes into headers may not end them. */
static bool is_clean(const char *text)
{
    for (; text && *text; text++)
        if ((unsigned char)*text < 32 || *text == 127) return false;
    return true;
}

static tpucl_status check(const tp_remote *remote, const char *endpoint)
{
    if (!is_clean(remote->id) || !is_clean(remote->secret) || !is_clean(remote->token) ||
        !is_clean(remote->bearer) || !is_clean(remote->region))
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "a store's credentials hold a control character, as a line's end");
    if (!remote->id != !remote->secret)
        return TP_FAIL(
            TPUCL_INVALID_CONFIG,
            "a store's credentials need both an access key and its secret; only one was found");
    if (remote->region && strlen(remote->region) > 60)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "a region's name has at most 60 characters");
    if (strchr(endpoint, '@'))
        return TP_FAIL(TPUCL_INVALID_CONFIG, "an endpoint's address may hold no user or password");
    if (remote->bearer && !tp_str_starts_with(endpoint, "https://"))
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "a bearer token is sent over https only, and the endpoint is '%s'",
                       endpoint);
    return TPUCL_OK;
}

tpucl_status tp_store_credentials(const char *scheme, tp_remote *remote, char **out_endpoint)
{
    char *endpoint = NULL;
    tpucl_status status;
    const bool google = tp_str_equal(scheme, "gs://");
    if (google) {
        TP_TRY_GOTO(status, copy_env(TP_ENV_GS_ENDPOINT, &endpoint), done);
        TP_TRY_GOTO(status, copy_env(TP_ENV_GOOGLE_OAUTH_ACCESS_TOKEN, &remote->bearer), done);
        TP_TRY_GOTO(status, copy_env(TP_ENV_GS_ACCESS_KEY_ID, &remote->id), done);
        TP_TRY_GOTO(status, copy_env(TP_ENV_GS_SECRET_ACCESS_KEY, &remote->secret), done);
        TP_TRY_GOTO(status, default_to("auto", &remote->region), done);
        TP_TRY_GOTO(status, default_to("https://storage.googleapis.com", &endpoint), done);
    } else {
        TP_TRY_GOTO(status, read_aws(remote, &endpoint), done);
        TP_TRY_GOTO(status, default_to("us-east-1", &remote->region), done);
    }
    tp_str_builder url = {0};
    if (!endpoint)
        tp_str_builder_printf(&url, "https://s3.%s.amazonaws.com", remote->region);
    else
        tp_str_builder_printf(&url, "%s%s", strstr(endpoint, "://") ? "" : "https://", endpoint);
    while (url.length && url.data[url.length - 1] == '/')
        url.data[--url.length] = 0;
    TP_TRY_GOTO(status, tp_str_builder_finish(&url, out_endpoint, NULL), done);
    status = check(remote, *out_endpoint);
    if (status != TPUCL_OK) {
        tp_free(*out_endpoint);
        *out_endpoint = NULL;
    }
done:
    tp_free(endpoint);
    return status;
}
