/* SPDX-License-Identifier: Apache-2.0
 * What the files of exec/ share: the executor, and a program bound to devices and groups.
 *
 * A program is bound once per *site* (a device with cores of one replica group): own kernel objects with
 * their arguments preset, own REPLICATED slab. A site's cores stand in group order; "local" indexes count
 * them. Records of the infeed and outfeed lie in device order: site after site.
 */
#ifndef TP_EXEC_EXECUTOR_INTERNAL_H
#define TP_EXEC_EXECUTOR_INTERNAL_H

#include "comm/tree_plan.h"
#include "device/launch.h"
#include "device/slab.h"
#include "exec/executor.h"
#include "exec/launch_args.h"

/* Cores of one replica group on one device. */
typedef struct tp_site {
    int32_t device, group;
    int32_t *positions; /* [core_count] rising positions in the group */
    int32_t core_count;
    int32_t first_record; /* of the device's infeed records */
} tp_site;

struct tp_executor {
    const tp_core_map *map;
    tp_executor_options options;
    tp_arena *arena;
    int32_t group_count, group_size;
    int32_t *group_cores; /* [group_count * group_size] */
    bool *uses;           /* [device_count * group_count] */
    tp_site *sites;       /* device-major */
    int32_t site_count;
    int32_t *record_of_core; /* [core_count]: index among the records of the core's device */
    int32_t *records_on;     /* [device_count] */
    tp_variables *variables;
};

/* A tensor argument whose offset depends on the step, wave or turn of a loop. */
typedef struct tp_moving_arg {
    uint32_t cl_index;     /* of the offset argument; library products: of the place */
    tp_space space;        /* INPUT, OUTPUT, RESULT, CORE of a resident program, or a loop's view */
    uint64_t base_elems;   /* offset inside the record or slab */
    uint64_t stride_elems; /* record or slab size; 0: it moves with the turns of a loop only */
    const tp_program_view *view; /* NULL: none that moves */
    uint64_t elem_bytes;
    uint64_t last; /* value set last */
    bool is_set;
} tp_moving_arg;

typedef struct tp_bound_launch {
    const tp_launch *launch;
    tp_device_kernel *kernel; /* NULL for library products */
    tp_moving_arg *moving;
    int32_t moving_count;
    tp_launch_indexes indexes;
    tp_tensor_place places[3];          /* library products: A, B, C */
    uint64_t sum_offset_elems;          /* TP_ARG_SUM: of the result, in REPLICATED */
    uint64_t runs, core_runs, total_ns; /* while tp_loaded.is_measured */
} tp_bound_launch;

/* A program on one site. */
typedef struct tp_bound_site {
    const tp_site *site;
    const tp_program *program;
    tp_bound_launch *launches;
    tp_slab *replicated;
    tp_buffer **partials; /* [partial_count] partial sums of the tree, f32 */
    int32_t partial_count;
} tp_bound_site;

/* What a program needs once per device. */
typedef struct tp_bound_device {
    tp_slab *core; /* CORE for wave_cores cores */
    tp_buffer *input, *output, *result, *constants;
    tp_staging **staging; /* [infeed_depth] host side of the infeed */
    tp_event **slot_done; /* [infeed_depth] step that used the slot has finished on the device */
    tp_device_kernel **sum_partial,
        **sum_final; /* [wave_cores + 1]: cross_core_sum by wave size; made when needed */
    tp_device_kernel *add, *flush;
    int32_t wave_cores;
} tp_bound_device;

struct tp_feed {
    struct tp_loaded *loaded;
    int32_t slot;
    bool is_acquired;
};

struct tp_loaded {
    tp_executor *executor;
    const tp_program *const *programs; /* [device_count], in arena */
    tp_arena *arena;
    tp_bound_device *devices;
    tp_bound_site *sites;
    const tp_tree_plan **plans; /* [group_count] */
    int32_t *variable_index;    /* [program variables]: index in the store */
    tp_feed *feeds;             /* [infeed_depth] */
    int32_t infeed_depth, results_depth;
    unsigned char *result_records; /* [results_depth][group_count][result_bytes], host */
    tp_event **result_done;        /* [results_depth * group_count] */
    uint64_t *result_tickets;      /* [results_depth] */
    uint64_t *slot_tickets;        /* [infeed_depth]: step that used the slot last, from 1 */
    uint64_t submitted;
    float **exchange;           /* [leaf] host copies of partial sums that cross devices */
    tp_event **exchange_events; /* [leaf] their downloads */
    int32_t exchange_count;
    uint64_t most_sum_elems; /* of the largest cross-core sum */
    tp_loaded_times times;
    double memory_seconds;
    bool is_measured;
};

static inline tp_device *tp_site_device(const tp_executor *executor, const tp_site *site)
{
    return executor->map->devices[site->device];
}

/* bind.c: kernels and arguments of every site; needs the memory. */
tpucl_status tp_bind(tp_loaded *loaded, tp_build_callback callback, void *user);
void tp_bind_release(tp_loaded *loaded);

/* Elements of its largest sum over cores. */
uint64_t tp_program_largest_reduce(const tp_program *program);
int32_t tp_executor_infeed_depth(const tp_executor *executor);
int32_t tp_executor_results_depth(const tp_executor *executor);

/* memory.c: that a core's HBM is large enough; then wave sizes from limits, slabs and records. */
tpucl_status tp_memory_check(const tp_loaded *loaded);
tpucl_status tp_memory_allocate(tp_loaded *loaded);
/* Cores in a wave on a device with so many bytes left; 0: not even one, or fewer than must be resident.
 * *out_wanted: with all the memory one could wish for. */
int32_t tp_memory_wave(const tp_executor *executor, const tp_program *program, int32_t device,
                       uint64_t free_bytes, int32_t *out_wanted);

/* run.c: enqueues launches of a segment. `local_begin` and `count` pick a wave of the site's cores;
 * replicated segments pass 0 and 1. */
typedef struct tp_wave {
    int32_t local_begin, count;    /* among the site's cores */
    uint32_t core_base, core_step; /* global ids */
    uint32_t position;             /* of the first core in the replica group */
    uint32_t step;
    int32_t infeed_slot, result_slot;
    int64_t turn; /* of the loop that is running */
    /* Where the segment's sums over these cores go; NULL: it has none. An element of REPLICATED is in `sum` at its
     * own place plus `sum_shift_elems` (modulo 2^64). */
    tp_buffer *sum;
    uint64_t sum_shift_elems;
    bool sum_is_result;
} tp_wave;
tpucl_status tp_run_segment(tp_loaded *loaded, tp_bound_site *bound,
                            const tp_program_segment *segment, const tp_wave *wave);

/* reduce.c: cross-core sums. Fills in where a wave's go. */
tpucl_status tp_reduce_place(tp_loaded *loaded, tp_bound_site *bound,
                             const tp_program_segment *segment, const tp_tree_op *op,
                             tp_wave *wave);
/* Sum of a wave's cores into a partial slot, or flushed into REPLICATED when it is
 * the whole group. */
tpucl_status tp_reduce_wave(tp_loaded *loaded, tp_bound_site *bound,
                            const tp_program_segment *segment, const tp_tree_op *op,
                            const tp_wave *wave);
tpucl_status tp_reduce_add(tp_loaded *loaded, tp_bound_site *bound,
                           const tp_program_segment *segment, const tp_tree_op *op);
/* Combines leaves that several devices hold and puts the sum into every site of the group. */
tpucl_status tp_reduce_exchange(tp_loaded *loaded, int32_t group,
                                const tp_program_segment *segment);

#endif
