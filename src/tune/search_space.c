/* SPDX-License-Identifier: Apache-2.0
 * See search_space.h. Values that a problem or a device rules out are passed over by
 * tp_mxu_choice_check and by the variants themselves, so the table says nothing of them.
 */
#include "tune/search_space.h"

#include <string.h>

#define VALUES(...)                                                                                \
    {__VA_ARGS__}, (int32_t)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static const tp_search_row rows[] = {
    {"mxu_pairs", TP_MXU_TILE_M, VALUES(4, 6, 7, 8, 9, 10, 11, 12, 13, 14)},
    {"mxu_pairs", TP_MXU_TILE_VECTORS, VALUES(1, 2)},
    {"mxu_pairs", TP_MXU_GROUPS_PER_UNIT, VALUES(1, 2, 4, 8, 16)},
    {"mxu_pairs", TP_MXU_PANEL_BY_ROW, VALUES(0, 1)},
    {"mxu_outer", TP_MXU_GROUP_PANELS, VALUES(1, 2, 3, 4, 6, 8)},
    {"mxu_outer", TP_MXU_GROUP_TILES, VALUES(1, 2, 3, 4, 6, 8)},
    {"mxu_outer", TP_MXU_TILE_VECTORS, VALUES(1, 2)},
    {"mxu_register", TP_MXU_TILE_M, VALUES(3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14)},
    {"mxu_register", TP_MXU_TILE_VECTORS, VALUES(1, 2, 4)},
    {"mxu_register", TP_MXU_VECTOR_WIDTH, VALUES(8, 16)},
    {"mxu_register", TP_MXU_GROUPS_PER_UNIT, VALUES(1, 2, 4, 8, 16)},
    {"mxu_register", TP_MXU_B_IS_PACKED, VALUES(0, 1)},
    {"mxu_register", TP_MXU_PANEL_BY_ROW, VALUES(0, 1)},
    {"mxu_direct", TP_MXU_TILE_M, VALUES(1, 2, 4, 6, 8, 12, 16)},
    {"mxu_subgroup", TP_MXU_TILE_M, VALUES(4, 8, 16)},
    {"mxu_subgroup", TP_MXU_THREAD_N, VALUES(1, 2, 4)},
    {"mxu_local", TP_MXU_THREAD_M, VALUES(1, 2, 4, 8)},
    {"mxu_local", TP_MXU_THREAD_N, VALUES(1, 2, 4, 8)},
    {"mxu_local", TP_MXU_TILE_K, VALUES(8, 16, 32)},
    {"mxu_local", TP_MXU_THREADS_M, VALUES(8, 16, 32)},
    {"mxu_local", TP_MXU_THREADS_N, VALUES(8, 16, 32)},
    {"mxu_grouped", TP_MXU_TILE_M, VALUES(1, 2, 3, 4, 6, 9, 12)},
};

const tp_search_row *tp_search_space(size_t *out_count)
{
    *out_count = sizeof rows / sizeof rows[0];
    return rows;
}

const char *tp_search_variant(size_t index)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool is_first = i == 0 || strcmp(rows[i].variant, rows[i - 1].variant) != 0;
        if (is_first && index-- == 0) return rows[i].variant;
    }
    return NULL;
}
