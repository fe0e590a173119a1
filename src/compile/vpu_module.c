/* SPDX-License-Identifier: Apache-2.0
 * Puts generated kernels together into few sources.
 */
#include <inttypes.h>
#include <string.h>
#include "compile/vpu_kernel.h"

typedef struct module {
    const char *texts[TP_VPU_MODULE_KERNELS]; /* distinct */
    int32_t count;
    const char *source;
} module;

static bool find_text(const module *m, const char *text, int32_t *out_id)
{
    for (int32_t i = 0; i < m->count; i++)
        if (strcmp(m->texts[i], text) == 0) {
            *out_id = i;
            return true;
        }
    return false;
}

static bool any_has(const module *m, const char *word)
{
    for (int32_t i = 0; i < m->count; i++)
        if (strstr(m->texts[i], word)) return true;
    return false;
}

static tpucl_status write_source(tp_arena *arena, module *m)
{
    tp_str_builder out = {0};
    if (any_has(m, "VPU_RANDOM_")) tp_str_append(&out, "#define VPU_RANDOM\n");
    tp_str_append(&out, "#include \"lib/vpu.clh\"\n");
    if (any_has(m, "#define VPU_WIDTH 16"))
        tp_str_append(&out, "#define VPU_WIDTH 16\n#include \"lib/vpu.clh\"\n");
    for (int32_t i = 0; i < m->count; i++)
        tp_str_builder_printf(&out, "\n#undef VPU_ID\n#define VPU_ID %" PRId32 "\n%s", i,
                              m->texts[i]);
    return tp_vpu_finish_text(&out, arena, &m->source);
}

static tpucl_status rewrite(tp_arena *arena, const module *m, tp_launch *launch)
{
    int32_t id;
    if (!find_text(m, launch->source, &id)) return TPUCL_OK;
    launch->source = m->source;
    launch->entry = tp_arena_printf(arena, "%s_%" PRId32, launch->entry, id);
    return launch->entry ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

tpucl_status tp_vpu_module_build(tp_arena *arena, tp_launch *const *launches, int32_t count)
{
    int32_t start = 0;
    while (start < count) {
        /* The launches start .. end-1 have up to TP_VPU_MODULE_KERNELS texts. */
        module m = {0};
        int32_t end = start, id;
        for (; end < count; end++) {
            if (find_text(&m, launches[end]->source, &id)) continue;
            if (m.count == TP_VPU_MODULE_KERNELS) break;
            m.texts[m.count++] = launches[end]->source;
        }
        TP_TRY(write_source(arena, &m));
        for (int32_t i = start; i < end; i++)
            TP_TRY(rewrite(arena, &m, launches[i]));
        start = end;
    }
    return TPUCL_OK;
}
