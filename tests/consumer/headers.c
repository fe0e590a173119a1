/* SPDX-License-Identifier: Apache-2.0
 * Every public header, and a call from each. Compiled as C11 and as C++17 with strict warnings. */
#include <stdio.h>
#include <string.h>
#include <tpucl/ext/op.h>
#include <tpucl/records.h>
#include <tpucl/run.h>
#include <tpucl/tools.h>
#include <tpucl/tpucl.h>

int main(void)
{
    tpucl_graph *graph = NULL;
    tpucl_device_list *list = NULL;
    tpucl_run *run = NULL;
    tpucl_run_options options = tpucl_run_options_default();
    int32_t count = 0;
    if (strcmp(tpucl_version_string(), "")) count++;
    if (tpucl_dtype_bytes(TPUCL_BF16) == 2) count++;
    const tpucl_op op = tpucl_op_default(); /* no name: refused */
    if (tpucl_op_register(&op) == TPUCL_INVALID_ARGUMENT) count++;
    if (tpucl_graph_create(&graph) == TPUCL_OK) count++;
    tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(2, 3));
    if (tpucl_graph_shape(graph, tpucl_relu(graph, x)).dims[1] == 3) count++;
    if (tpucl_device_list_create(&list) == TPUCL_OK) count++;
    if (tpucl_run_create(&options, &run) == TPUCL_INVALID_ARGUMENT) count++;
    if (strstr(tpucl_last_error()->message, "config_file")) count++;
    tpucl_records_report *report = NULL;
    const tpucl_records_options records = tpucl_records_options_default(); /* no paths: refused */
    if (tpucl_records_read(&records, &report) == TPUCL_INVALID_ARGUMENT) count++;
    tpucl_device_list_destroy(list);
    tpucl_graph_destroy(graph);
    printf("%d of 9\n", (int)count);
    return count != 9;
}
