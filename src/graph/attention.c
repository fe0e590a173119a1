/* SPDX-License-Identifier: Apache-2.0
 * Attributes and shapes of attention: see attention.h.
 */
#include "graph/attention.h"

#include <inttypes.h>

#include "graph/attrs.h"
#include "num/philox.h"

static tpucl_status check_shapes(const tp_node *node, const tp_shape *query, const tp_shape *key,
                                 const tp_shape *value)
{
    char q[TP_SHAPE_TEXT_MAX], k[TP_SHAPE_TEXT_MAX], v[TP_SHAPE_TEXT_MAX];
    tp_shape_format(query, q, sizeof q);
    tp_shape_format(key, k, sizeof k);
    tp_shape_format(value, v, sizeof v);
    const bool has_rank = query->rank == 4 && key->rank == 4 && value->rank == 4;
    if (!has_rank || query->dims[0] != key->dims[0] || key->dims[0] != value->dims[0] ||
        key->dims[1] != value->dims[1] || key->dims[2] != value->dims[2] ||
        query->dims[3] != key->dims[3])
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%s of query %s, key %s, value %s: expected [batch,queries,heads,depth], "
                       "[batch,keys,heads,depth], [batch,keys,heads,width]",
                       node->def->name, q, k, v);
    if (key->dims[2] == 0 || query->dims[2] % key->dims[2] != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%s: %" PRId64 " heads of queries do not share %" PRId64 " of keys",
                       node->def->name, query->dims[2], key->dims[2]);
    if (query->dims[3] > TP_MXU_BLOCK || value->dims[3] > TP_MXU_BLOCK)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%s of query %s and value %s: depth and width of a head are at most %d",
                       node->def->name, q, v, TP_MXU_BLOCK);
    return TPUCL_OK;
}

static tpucl_status read_mask(const tp_node *node, const tp_shape *mask, tp_attention_geometry *g)
{
    const int64_t whole[] = {g->batch, g->heads, g->queries, g->keys};
    bool is_right = mask->rank == 4 && mask->dims[3] == g->keys;
    int64_t stride = g->keys;
    for (int32_t d = 2; d >= 0 && is_right; d--) {
        is_right = mask->dims[d] == whole[d] || mask->dims[d] == 1;
        g->mask_strides[d] = mask->dims[d] == 1 ? 0 : stride;
        stride *= mask->dims[d];
    }
    if (is_right) return TPUCL_OK;
    char text[TP_SHAPE_TEXT_MAX];
    tp_shape_format(mask, text, sizeof text);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "%s: the mask is %s, expected [%" PRId64 " or 1,%" PRId64 " or 1,%" PRId64
                   " or 1,%" PRId64 "]",
                   node->def->name, text, g->batch, g->heads, g->queries, g->keys);
}

static tpucl_status read_attributes(const tp_node *node, tp_attention_geometry *g)
{
    const int64_t stream = tp_node_attr_int(node, "stream", 0);
    g->scale = (float)tp_node_attr_float(node, "scale", 1);
    g->is_causal = tp_node_attr_int(node, "causal", 0) != 0;
    g->window = tp_node_attr_int(node, "window", 0);
    g->dropout = tp_node_attr_float(node, "dropout", 0);
    g->stream = (uint32_t)stream;
    if (g->window < 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: a window of %" PRId64 " keys", node->def->name,
                       g->window);
    if (!(g->dropout >= 0 && g->dropout <= 1))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: dropout %.9g, expected 0 to 1", node->def->name,
                       g->dropout);
    if (stream < 0 || stream > INT32_MAX)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "stream %" PRId64 ", expected 0 to %d", stream,
                       INT32_MAX);
    return tp_precision_parse(tp_node_attr_text(node, "precision", "default"), &g->precision);
}

tpucl_status tp_attention_geometry_read(const tp_node *node, const tp_shape *query,
                                        const tp_shape *key, const tp_shape *value,
                                        const tp_shape *mask, tp_attention_geometry *out_geometry)
{
    TP_TRY(check_shapes(node, query, key, value));
    tp_attention_geometry g = {.batch = query->dims[0],
                               .queries = query->dims[1],
                               .keys = key->dims[1],
                               .heads = query->dims[2],
                               .shared = key->dims[2],
                               .depth = query->dims[3],
                               .width = value->dims[3],
                               .has_mask = mask != NULL};
    TP_TRY(read_attributes(node, &g));
    if (mask) TP_TRY(read_mask(node, mask, &g));
    const int64_t row = (g.keys + TP_ATTENTION_BLOCK - 1) / TP_ATTENTION_BLOCK * TP_ATTENTION_BLOCK;
    if (g.dropout > 0 && row > 0 && g.batch * g.heads * g.queries > ((int64_t)1 << 34) / row)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "dropout of %" PRId64 " rows of %" PRId64
                       " probabilities, expected at most 2^34 of them",
                       g.batch * g.heads * g.queries, row);
    *out_geometry = g;
    return TPUCL_OK;
}

tp_attention_places tp_attention_places_of(const tp_attention_geometry *g)
{
    tp_attention_places places = {.query = 0};
    places.key = g->batch * g->queries * g->heads * g->depth;
    places.value = places.key + g->batch * g->keys * g->shared * g->depth;
    places.end = places.value + g->batch * g->keys * g->shared * g->width;
    return places;
}

uint32_t tp_attention_threshold(const tp_attention_geometry *g)
{
    return tp_bernoulli_threshold((float)(1 - g->dropout));
}

float tp_attention_raise(const tp_attention_geometry *g)
{
    return g->dropout < 1 ? (float)(1 / (1 - g->dropout)) : 0.0f;
}

bool tp_attention_sees(const tp_attention_geometry *g, int64_t first_query, int64_t queries,
                       int64_t first_key, int64_t keys)
{
    const int64_t last_query = first_query + queries - 1, last_key = first_key + keys - 1;
    if (queries <= 0 || keys <= 0 || (g->is_causal && first_key > last_query)) return false;
    if (g->window == 0) return true;
    /* The closest pair of the two ranges. */
    return first_key - last_query < g->window && first_query - last_key < g->window;
}
