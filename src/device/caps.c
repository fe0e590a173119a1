/* SPDX-License-Identifier: Apache-2.0
 * Device queries. Drivers lie, leave answers out and answer in unexpected units: every query may
 * fail, texts are cut to fit, and the alignment, which OpenCL gives in bits, is turned into bytes
 * here and nowhere else. */
#include "device/caps.h"

#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "device/cl_error.h"

/* OpenCL 2.1 and 3.0; the headers hide it at target version 1.2. */
#define DEVICE_MAX_NUM_SUB_GROUPS 0x105C
/* cl_nv_device_attribute_query */
#define DEVICE_COMPUTE_CAPABILITY_MAJOR_NV 0x4000
#define DEVICE_SUB_GROUP_SIZES_INTEL 0x4108

typedef struct query {
    const tp_cl_api *cl;
    cl_device_id id;
} query;

static bool ask(query q, cl_device_info what, void *out_value, size_t bytes)
{
    size_t got = 0;
    return q.cl->GetDeviceInfo(q.id, what, bytes, out_value, &got) == CL_SUCCESS && got == bytes;
}

static uint32_t ask_u32(query q, cl_device_info what)
{
    cl_uint value = 0;
    return ask(q, what, &value, sizeof value) ? value : 0;
}

static uint64_t ask_u64(query q, cl_device_info what)
{
    cl_ulong value = 0;
    return ask(q, what, &value, sizeof value) ? value : 0;
}

static size_t ask_size(query q, cl_device_info what)
{
    size_t value = 0;
    return ask(q, what, &value, sizeof value) ? value : 0;
}

static bool ask_bool(query q, cl_device_info what)
{
    cl_bool value = CL_FALSE;
    return ask(q, what, &value, sizeof value) && value == CL_TRUE;
}

/* Text of any length, freed with tp_free; NULL when the driver does not answer. */
static char *ask_long_text(query q, cl_device_info what)
{
    size_t bytes = 0;
    if (q.cl->GetDeviceInfo(q.id, what, 0, NULL, &bytes) != CL_SUCCESS || bytes > (1u << 20))
        return NULL;
    char *text = tp_alloc_zero(bytes + 1);
    if (!text) return NULL;
    if (bytes && q.cl->GetDeviceInfo(q.id, what, bytes, text, NULL) != CL_SUCCESS) {
        tp_free(text);
        return NULL;
    }
    return text;
}

/* Cuts to fit and takes white space off both ends: some drivers pad names. */
static void ask_text(query q, cl_device_info what, char *out_text, size_t room)
{
    out_text[0] = '\0';
    char *text = ask_long_text(q, what);
    if (!text) return;
    const char *start = text + strspn(text, " \t\r\n");
    snprintf(out_text, room, "%s", start);
    for (size_t used = strlen(out_text); used && strchr(" \t\r\n", out_text[used - 1]);)
        out_text[--used] = '\0';
    tp_free(text);
}

bool tp_caps_has_word(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
        const bool starts = at == list || at[-1] == ' ';
        if (starts && (at[length] == ' ' || at[length] == '\0')) return true;
    }
    return false;
}

bool tp_caps_parse_version(const char *text, int *out_major, int *out_minor)
{
    if (sscanf(text, "OpenCL %d.%d", out_major, out_minor) == 2) return true;
    return sscanf(text, "OpenCL C %d.%d", out_major, out_minor) == 2;
}

static tp_device_type read_type(query q)
{
    const cl_device_type type = ask_u64(q, CL_DEVICE_TYPE);
    if (type & CL_DEVICE_TYPE_GPU) return TP_DEVICE_GPU;
    return type & CL_DEVICE_TYPE_CPU ? TP_DEVICE_CPU : TP_DEVICE_ACCELERATOR;
}

static void read_work_sizes(query q, tp_device_caps *caps)
{
    caps->max_work_group_size = ask_size(q, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    /* The number of dimensions may be larger than three; only three are used. */
    size_t sizes[16] = {0}, got = 0;
    const cl_int code =
        q.cl->GetDeviceInfo(q.id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, &got);
    for (int i = 0; i < 3; i++)
        caps->max_work_item_sizes[i] =
            code == CL_SUCCESS && got >= 3 * sizeof(size_t) ? sizes[i] : caps->max_work_group_size;
}

static void read_memory(query q, tp_device_caps *caps)
{
    caps->memory_bytes = ask_u64(q, CL_DEVICE_GLOBAL_MEM_SIZE);
    caps->max_allocation_bytes = ask_u64(q, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    if (caps->max_allocation_bytes > caps->memory_bytes)
        caps->max_allocation_bytes = caps->memory_bytes;
    caps->local_memory_bytes = ask_u64(q, CL_DEVICE_LOCAL_MEM_SIZE);
    caps->local_memory_is_ordinary = ask_u32(q, CL_DEVICE_LOCAL_MEM_TYPE) == CL_GLOBAL;
    caps->cache_bytes = ask_u64(q, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    caps->cache_line_bytes = ask_u32(q, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
    caps->base_address_align_bytes = ask_u32(q, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    if (!caps->base_address_align_bytes)
        caps->base_address_align_bytes = 128; /* sizeof(long16), the minimum */
}

static void read_partition(query q, tp_device_caps *caps)
{
    cl_device_partition_property kinds[16] = {0};
    size_t got = 0;
    if (q.cl->GetDeviceInfo(q.id, CL_DEVICE_PARTITION_PROPERTIES, sizeof kinds, kinds, &got) !=
        CL_SUCCESS)
        return;
    for (size_t i = 0; i < got / sizeof kinds[0]; i++)
        if (kinds[i] == CL_DEVICE_PARTITION_EQUALLY)
            caps->max_sub_devices = ask_u32(q, CL_DEVICE_PARTITION_MAX_SUB_DEVICES);
}

/* PoCL's CPU drivers run kernels on the host and let clang assemble what stands in them. Its other
 * drivers, and other platforms, may run elsewhere or not know the instruction. */
static bool has_bf16_pairs(const tp_device_caps *caps)
{
#if defined(__x86_64__) && defined(__GNUC__)
    const char *const drivers[] = {"pthread", "basic", "cpu"};
    if (caps->type != TP_DEVICE_CPU || !strstr(caps->platform, "Portable Computing Language") ||
        caps->preferred_float_vector != 16 || !__builtin_cpu_supports("avx512bf16"))
        return false;
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (!strncmp(caps->name, drivers[i], strlen(drivers[i]))) return true;
#else
    (void)caps;
#endif
    return false;
}

const char *tp_matrix_unit_name(tp_matrix_unit unit)
{
    static const char *const names[] = {
        "",         "nvidia-mma",     "intel-dpas-16", "intel-dpas-8",
        "amd-mfma", "amd-wmma-gfx11", "amd-wmma-gfx12"};
    return names[unit];
}

static bool begins_with_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strncmp(text, *words, strlen(*words)) == 0) return true;
    return false;
}

tp_matrix_unit tp_caps_matrix_unit(const tp_unit_signs *signs)
{
    /* AMD's drivers call a device by its instruction set. */
    static const char *const mfma[] = {"gfx90a", "gfx94", "gfx95", NULL};
    static const char *const gfx11[] = {"gfx11", NULL}, *const gfx12[] = {"gfx12", NULL};
    const char *vendor = signs->vendor, *extensions = signs->extensions;
    /* bf16 came with 8.0 ("PTX ISA", mma: target requirements) */
    if (strncmp(vendor, "NVIDIA", 6) == 0 && signs->compute_capability >= 8 &&
        tp_caps_has_word(extensions, "cl_nv_device_attribute_query"))
        return TP_MATRIX_UNIT_NVIDIA;
    if (strncmp(vendor, "Intel", 5) == 0 &&
        tp_caps_has_word(extensions, "cl_intel_subgroup_matrix_multiply_accumulate"))
        /* The least size is the unit's number of columns (the extension, "Modifications"). */
        return signs->subgroup_sizes & 8    ? TP_MATRIX_UNIT_INTEL_8
               : signs->subgroup_sizes & 16 ? TP_MATRIX_UNIT_INTEL_16
                                            : TP_MATRIX_UNIT_NONE;
    if (strncmp(vendor, "Advanced Micro Devices", 22) != 0) return TP_MATRIX_UNIT_NONE;
    if (begins_with_one_of(signs->name, mfma)) return TP_MATRIX_UNIT_MFMA;
    if (begins_with_one_of(signs->name, gfx11)) return TP_MATRIX_UNIT_WMMA_GFX11;
    return begins_with_one_of(signs->name, gfx12) ? TP_MATRIX_UNIT_WMMA_GFX12 : TP_MATRIX_UNIT_NONE;
}

/* The sizes that Intel's drivers let a kernel ask for. */
static uint32_t read_subgroup_sizes(query q, const char *extensions)
{
    size_t sizes[16] = {0}, bytes = 0;
    uint32_t sum = 0;
    if (!tp_caps_has_word(extensions, "cl_intel_required_subgroup_size") ||
        q.cl->GetDeviceInfo(q.id, DEVICE_SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes, &bytes) !=
            CL_SUCCESS)
        return 0;
    for (size_t i = 0; i < bytes / sizeof sizes[0] && i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i] && sizes[i] <= 64 && !(sizes[i] & (sizes[i] - 1))) sum |= (uint32_t)sizes[i];
    return sum;
}

tpucl_status tp_caps_read(const tp_cl_api *cl, cl_device_id id, const char *platform_name,
                          tp_device_caps *out_caps)
{
    const query q = {cl, id};
    tp_device_caps caps = {0};
    ask_text(q, CL_DEVICE_NAME, caps.name, sizeof caps.name);
    ask_text(q, CL_DEVICE_VENDOR, caps.vendor, sizeof caps.vendor);
    ask_text(q, CL_DRIVER_VERSION, caps.driver, sizeof caps.driver);
    ask_text(q, CL_DEVICE_VERSION, caps.version, sizeof caps.version);
    snprintf(caps.platform, sizeof caps.platform, "%s", platform_name);
    caps.type = read_type(q);
    caps.compute_units = ask_u32(q, CL_DEVICE_MAX_COMPUTE_UNITS);
    read_work_sizes(q, &caps);
    read_memory(q, &caps);
    read_partition(q, &caps);
    caps.preferred_float_vector = ask_u32(q, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    caps.has_bf16_pairs = has_bf16_pairs(&caps);
    const cl_device_fp_config single = ask_u64(q, CL_DEVICE_SINGLE_FP_CONFIG);
    caps.fma_is_fast = single & CL_FP_FMA;
    caps.has_denormals = single & CL_FP_DENORM;
    caps.has_correct_divide_sqrt = single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    caps.profiling_resolution_ns = (double)ask_size(q, CL_DEVICE_PROFILING_TIMER_RESOLUTION);
    char *extensions = ask_long_text(q, CL_DEVICE_EXTENSIONS);
    if (extensions) {
        caps.has_fp16 = tp_caps_has_word(extensions, "cl_khr_fp16");
        caps.has_fp64 = tp_caps_has_word(extensions, "cl_khr_fp64");
        /* Since OpenCL 2.1 no extension is needed, and a device without sub-groups says 0. */
        caps.has_subgroups = tp_caps_has_word(extensions, "cl_khr_subgroups") ||
                             tp_caps_has_word(extensions, "cl_intel_subgroups") ||
                             ask_u32(q, DEVICE_MAX_NUM_SUB_GROUPS) > 0;
        caps.subgroup_sizes = read_subgroup_sizes(q, extensions);
        caps.matrix_unit = tp_caps_matrix_unit(
            &(tp_unit_signs){.vendor = caps.vendor,
                             .name = caps.name,
                             .extensions = extensions,
                             .compute_capability = ask_u32(q, DEVICE_COMPUTE_CAPABILITY_MAJOR_NV),
                             .subgroup_sizes = caps.subgroup_sizes});
        tp_free(extensions);
    }
    if (!caps.name[0])
        return TP_FAIL(TPUCL_DEVICE_ERROR,
                       "a device of platform '%s' does not answer when asked for its name",
                       platform_name);
    if (!caps.compute_units || !caps.max_work_group_size || !caps.max_allocation_bytes)
        return TP_FAIL(
            TPUCL_DEVICE_ERROR,
            "device '%s' reports %u compute units, work-groups of %llu, allocations of %llu bytes",
            caps.name, caps.compute_units, (unsigned long long)caps.max_work_group_size,
            (unsigned long long)caps.max_allocation_bytes);
    *out_caps = caps;
    return TPUCL_OK;
}

const char *tp_caps_unusable(const tp_cl_api *cl, cl_device_id id, const tp_device_caps *caps,
                             char *buffer, size_t buffer_bytes)
{
    const query q = {cl, id};
    int major = 0, minor = 0;
    if (!tp_caps_parse_version(caps->version, &major, &minor)) {
        snprintf(buffer, buffer_bytes,
                 "its version reads '%.100s', expected 'OpenCL <major>.<minor> ...'",
                 caps->version);
        return buffer;
    }
    if (major < 1 || (major == 1 && minor < 2)) {
        snprintf(buffer, buffer_bytes, "it has OpenCL %d.%d, tpucl needs 1.2", major, minor);
        return buffer;
    }
    if (!ask_bool(q, CL_DEVICE_AVAILABLE)) return "the driver says that it is not available";
    if (!ask_bool(q, CL_DEVICE_COMPILER_AVAILABLE)) return "the driver has no compiler";
    if (!ask_bool(q, CL_DEVICE_ENDIAN_LITTLE))
        return "it is big-endian, tpucl's formats are little-endian";
    const cl_device_fp_config single = ask_u64(q, CL_DEVICE_SINGLE_FP_CONFIG);
    if (!(single & CL_FP_ROUND_TO_NEAREST) || !(single & CL_FP_INF_NAN))
        return "its 32-bit floats lack rounding to nearest or infinities (embedded profile)";
    return NULL;
}
