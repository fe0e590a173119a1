/* SPDX-License-Identifier: Apache-2.0
 * Stands for http_curl.c in a build without libcurl. */
#include "io/http.h"

void tp_http_answer_deinit(tp_http_answer *answer)
{
    tp_str_builder_deinit(&answer->text);
}

tpucl_status tp_http_client_create(tp_http_client **out_client)
{
    (void)out_client;
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "this build of tpucl has no libcurl, so it reads and writes local files only; "
                   "install libcurl's development files and build again");
}

void tp_http_client_destroy(tp_http_client *client)
{
    (void)client;
}

tpucl_status tp_http_perform(tp_http_client *client, const tp_http_request *request,
                             tp_http_answer *answer)
{
    (void)client, (void)answer;
    return TP_FAIL(TPUCL_UNSUPPORTED, "this build of tpucl has no libcurl for '%s'", request->url);
}
