/* SPDX-License-Identifier: Apache-2.0
 * Runs programs on the devices of a core map: waves, infeed, cross-core reduction, results.
 *
 *   tp_executor_create(map, options, &executor);
 *   tp_executor_load(executor, programs, &loaded);              kernels built, memory allocated
 *   for each step:
 *       tp_loaded_acquire(loaded, &feed);                       waits until an infeed slot is free
 *       ... fill tp_feed_record(feed, core) for every core ...
 *       tp_loaded_submit(loaded, feed, step, &ticket);          enqueues, does not wait
 *   tp_loaded_result(loaded, ticket, group, &record);           waits for that step
 *
 * What comes out is fixed by the programs, the seed, the steps and the records, whatever the map, the waves
 * and `synchronous` are.
 *
 * Replica groups: cores of a group share variables and sums; groups do not see each other. Without groups
 * all cores are one.
 *
 * Threads: an executor and what is loaded into it belong to one thread at a time.
 */
#ifndef TP_EXEC_EXECUTOR_H
#define TP_EXEC_EXECUTOR_H

#include "device/program_build.h"
#include "exec/placement.h"
#include "exec/variables.h"
#include "prof/breakdown.h"
#include "program/program.h"

typedef struct tp_executor tp_executor;
typedef struct tp_loaded tp_loaded; /* a program, ready to run */

typedef struct tp_executor_options {
    uint64_t seed;
    /* group after group, each core once; NULL: one group of all cores */
    const int32_t *group_cores;
    int32_t group_count;
    int32_t wave_cores; /* most cores in a wave; 0: as many as memory allows */
    /* of a core: so many of the map's cores stand for one of the topology. 0: 1; a wave then has no more cores than
     * the topology, and what a core holds includes its partial sums */
    int32_t micro_batches;
    int32_t infeed_depth;    /* slots; 0: 3 */
    int32_t results_depth;   /* steps whose results are kept until asked for; 0: 64 */
    uint64_t core_hbm_bytes; /* HBM of a core in the topology; 0: no limit */
} tp_executor_options;

/* Borrows `map`, which must outlive the executor. */
tpucl_status tp_executor_create(const tp_core_map *map, const tp_executor_options *options,
                                tp_executor **out_executor);
/* Waits for all work. What was loaded must be unloaded before. NULL is fine. */
void tp_executor_destroy(tp_executor *executor);

/* The variables of all programs loaded so far; shared by name. Borrowed. */
tp_variables *tp_executor_variables(tp_executor *executor);

/* programs[d] is compiled for device d of the map; all come from one graph. They must outlive what is
 * loaded. Builds kernels (callback may be NULL), allocates slabs, creates and initialises variables that
 * the executor does not have yet. TPUCL_OUT_OF_DEVICE_MEMORY says whether a core's HBM or the device is
 * too small, with the numbers. */
tpucl_status tp_executor_load(tp_executor *executor, const tp_program *const *programs,
                              tp_build_callback callback, void *user, tp_loaded **out_loaded);
void tp_executor_unload(tp_loaded *loaded);

/* Bytes that one core holds while this program runs (program/footprint.h), as counted against core_hbm_bytes.
 * Variables are the program's own. */
uint64_t tp_executor_core_bytes(const tp_executor *executor, const tp_program *program);

/* What loading programs would take on a device of the map. */
typedef struct tp_forecast {
    int32_t wave_cores;  /* 0: not even one fits */
    uint64_t bytes;      /* of buffers, once the first step has run */
    uint64_t core_bytes; /* the smallest that would do: with one core in a wave */
    uint64_t free_bytes; /* before */
    uint64_t host_bytes; /* for records and sums that cross devices; of all devices together */
} tp_forecast;

/* `used_bytes`: what is to be there by then, besides what is there now; `has_variables`: so are the variables.
 * Allocates nothing on devices. */
tpucl_status tp_executor_forecast(const tp_executor *executor, const tp_program *const *programs,
                                  int32_t device, uint64_t used_bytes, bool has_variables,
                                  tp_forecast *out_forecast);

/* How it was laid out, for reports: largest wave on each device, bytes. */
typedef struct tp_loaded_info {
    /* What one core of device 0 holds, read off the buffers that were made: the share of its wave in the slab, its
     * records, and whole what stands once per device. */
    uint64_t held_core_bytes;
    int32_t wave_cores; /* on device 0 */
    uint64_t core_bytes, replicated_bytes, variable_bytes,
        input_bytes;       /* of one core / device / record */
    double memory_seconds; /* loading took for slabs, variables and their first values */
} tp_loaded_info;
void tp_loaded_get_info(const tp_loaded *loaded, tp_loaded_info *out_info);

/* An infeed slot: host memory for one record per core. Valid until submitted. */
typedef struct tp_feed tp_feed;
tpucl_status tp_loaded_acquire(tp_loaded *loaded, tp_feed **out_feed);
/* program->input_bytes bytes; ports lie at their buffers' offset_bytes. */
void *tp_feed_record(const tp_feed *feed, int32_t core);

/* Enqueues one step. `step` keys random numbers and is what the step op returns. */
tpucl_status tp_loaded_submit(tp_loaded *loaded, tp_feed *feed, uint32_t step,
                              uint64_t *out_ticket);

/* Waits for the step and gives its RESULT record for a group: program->result_bytes bytes, borrowed until
 * `results_depth` further steps are submitted. TPUCL_INVALID_ARGUMENT for a ticket that is too old. */
tpucl_status tp_loaded_result(tp_loaded *loaded, uint64_t ticket, int32_t group,
                              const void **out_record);

/* Waits for the step and copies the OUTPUT record of a core. Only the newest `infeed_depth` tickets. */
tpucl_status tp_loaded_output(tp_loaded *loaded, uint64_t ticket, int32_t core, void *out_record);

/* Waits for everything submitted. */
tpucl_status tp_executor_finish(tp_executor *executor);

/* Between the two every launch is waited for and timed; what was measured before is forgotten. Slower: the host
 * waits some microseconds for each launch, and nothing overlaps. Same bits. */
void tp_loaded_measure_begin(tp_loaded *loaded);
void tp_loaded_measure_end(tp_loaded *loaded);

/* One launch of the program, over all devices and waves that were measured. */
typedef struct tp_launch_time {
    const char *label, *entry; /* borrowed from the program */
    uint64_t runs, total_ns;
    double flops, bytes; /* of all runs; estimates of the plan: every operand is read once */
} tp_launch_time;
int32_t tp_loaded_launch_count(const tp_loaded *loaded);
void tp_loaded_launch_time(const tp_loaded *loaded, int32_t index, tp_launch_time *out_time);

/* Host time spent so far. */
typedef struct tp_loaded_times {
    uint64_t wait_ns;    /* for a free infeed slot: the devices are busy */
    uint64_t enqueue_ns; /* in tp_loaded_submit */
    uint64_t reduce_ns;  /* of that, in combining sums that cross devices */
} tp_loaded_times;
void tp_loaded_get_times(const tp_loaded *loaded, tp_loaded_times *out_times);

#endif
