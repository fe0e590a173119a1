/* SPDX-License-Identifier: Apache-2.0
 * The device here as a machine to plan for: its figures are measured, so that only the efficiency is left to project.
 */
#include "api/plan_internal.h"

#include "exec/placement.h"

tpucl_status tp_api_measure_here(const char *selector, int32_t split, tp_roofline *out_roofline,
                                 tp_device_caps *out_caps)
{
    const tp_placement_options options = {.selector = selector, .split = split};
    tp_topology *topology = NULL;
    tp_core_map *map = NULL;
    TP_TRY(tp_topology_load("cpu", &topology));
    tpucl_status status = tp_core_map_open(topology, &options, &map);
    if (status == TPUCL_OK) {
        *out_caps = *tp_device_get_caps(map->devices[0]);
        status = tp_roofline_measure(map->devices[0], true, out_roofline);
    }
    tp_core_map_close(map);
    tp_topology_destroy(topology);
    return status;
}

static void put_figure(tp_json_writer *writer, const char *key, double value, const char *unit)
{
    if (value <= 0) return;
    tp_json_key(writer, key);
    tp_json_begin_object(writer);
    tp_json_put_double(writer, "value", value);
    tp_json_put_string(writer, "unit", unit);
    tp_json_put_string(writer, "source", "measured on this device");
    tp_json_end_object(writer);
}

tpucl_status tp_api_topology_here(const tp_roofline *roofline, const tp_device_caps *caps,
                                  tp_topology **out_topology)
{
    tp_json_writer writer = {0};
    tp_json_document *document = NULL;
    char *text = NULL;
    const bool is_cpu = caps->type == TP_DEVICE_CPU;
    const double pairs =
        roofline->pair_flops > 0 ? roofline->pair_flops : roofline->multiply_add_flops;
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "name", "here");
    tp_json_put_string(&writer, "generation", is_cpu ? "this host CPU" : "this device");
    tp_json_put_int(&writer, "cores", 1);
    tp_json_key(&writer, "figures");
    tp_json_begin_object(&writer);
    put_figure(&writer, "peak_f32", roofline->multiply_add_flops, "FLOP/s");
    put_figure(&writer, "peak_bf16", pairs, "FLOP/s");
    put_figure(&writer, "hbm_bandwidth", roofline->copy_bytes, "B/s");
    put_figure(&writer, "hbm_bytes", (double)caps->memory_bytes, "B");
    tp_json_end_object(&writer);
    tp_json_end_object(&writer);
    TP_TRY(tp_json_writer_finish(&writer, &text));
    tpucl_status status = tp_json_parse(text, strlen(text), "this device", &document);
    if (status == TPUCL_OK) status = tp_topology_from_json(tp_json_root(document), out_topology);
    tp_json_destroy(document);
    tp_free(text);
    return status;
}
