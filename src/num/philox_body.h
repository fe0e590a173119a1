/* SPDX-License-Identifier: Apache-2.0
 * Body of philox.h for one EM_WIDTH. Element e of a stream is asked for as block = e / 4, lane = e
 * % 4: two 32-bit numbers hold the 34 bits.
 */

/* Key increments: golden ratio, sqrt(3) - 1. */
#undef TP_PHILOX_ROUND
#undef TP_PHILOX_10_ROUNDS
#define TP_PHILOX_ROUND                                                                            \
    {                                                                                              \
        const EM_UINT high0 = EM_MUL_HI(EM_U(0xd2511f53u), c0), low0 = c0 * 0xd2511f53u;           \
        const EM_UINT high2 = EM_MUL_HI(EM_U(0xcd9e8d57u), c2), low2 = c2 * 0xcd9e8d57u;           \
        c0 = high2 ^ c1 ^ k0;                                                                      \
        c1 = low2;                                                                                 \
        c2 = high0 ^ c3 ^ k1;                                                                      \
        c3 = low0;                                                                                 \
        k0 += 0x9e3779b9u;                                                                         \
        k1 += 0xbb67ae85u;                                                                         \
    }

/* Written out: a loop would keep compilers from vectorising the loop over elements around it. */
#define TP_PHILOX_10_ROUNDS                                                                        \
    TP_PHILOX_ROUND TP_PHILOX_ROUND TP_PHILOX_ROUND TP_PHILOX_ROUND TP_PHILOX_ROUND                \
        TP_PHILOX_ROUND TP_PHILOX_ROUND TP_PHILOX_ROUND TP_PHILOX_ROUND TP_PHILOX_ROUND

/* One of the four words of Philox4x32-10 for the counter (c0, c1, c2, c3) and key (k0, k1). */
static inline EM_UINT EM(philox_word)(EM_UINT c0, EM_UINT c1, EM_UINT c2, EM_UINT c3, tp_word k0,
                                      tp_word k1, EM_UINT lane)
{
    TP_PHILOX_10_ROUNDS
    const EM_UINT even = (lane & 2u) != 0u ? c2 : c0;
    const EM_UINT odd = (lane & 2u) != 0u ? c3 : c1;
    return (lane & 1u) != 0u ? odd : even;
}

/* All four words of one block in each lane, as random_bits would give them one by one. */
static inline void EM(random_words)(tp_random_stream stream, EM_UINT block, EM_UINT *out_words)
{
    EM_UINT c0 = block, c1 = EM_U(stream.step), c2 = EM_U(stream.core), c3 = EM_U(stream.op);
    tp_word k0 = stream.seed_low, k1 = stream.seed_high;
    TP_PHILOX_10_ROUNDS
    out_words[0] = c0;
    out_words[1] = c1;
    out_words[2] = c2;
    out_words[3] = c3;
}

/* 32 random bits for each element. */
static inline EM_UINT EM(random_bits)(tp_random_stream stream, EM_UINT block, EM_UINT lane)
{
    return EM(philox_word)(block, EM_U(stream.step), EM_U(stream.core), EM_U(stream.op),
                           stream.seed_low, stream.seed_high, lane);
}

/* A multiple of 2^-24 in [0, 1). */
static inline EM_FLOAT EM(random_uniform_from_bits)(EM_UINT word)
{
    return EM_UINT_TO_FLOAT(word >> 8) * 0x1p-24f;
}

static inline EM_FLOAT EM(random_uniform)(tp_random_stream stream, EM_UINT block, EM_UINT lane)
{
    return EM(random_uniform_from_bits)(EM(random_bits)(stream, block, lane));
}

/* A mask, true with probability threshold / 2^24; see tp_bernoulli_threshold. */
static inline EM_INT EM(random_bernoulli)(tp_random_stream stream, EM_UINT block, EM_UINT lane,
                                          tp_word threshold)
{
    return (EM(random_bits)(stream, block, lane) >> 8) < EM_U(threshold);
}

/* Box-Muller; lane 0 or 2 gives the cosine (first) value of the pair, lane 1 or 3 the sine. */
static inline EM_FLOAT EM(random_normal_from_bits)(EM_UINT first, EM_UINT second, EM_UINT lane)
{
    const EM_FLOAT u = EM_UINT_TO_FLOAT((first >> 8) + 1u) * 0x1p-24f;
    const EM_FLOAT r = EM(math_sqrt)(-2.0f * EM(math_log)(u));
    const EM_UINT quarters = (lane & 1u) ^ 1u; /* cos is sin a quarter turn on */
    return EM(flush)(r * EM(math_sin_turn)(second >> 8, quarters));
}

static inline EM_FLOAT EM(random_normal)(tp_random_stream stream, EM_UINT block, EM_UINT lane)
{
    const EM_UINT first = EM(random_bits)(stream, block, lane & 2u);
    const EM_UINT second = EM(random_bits)(stream, block, lane | 1u);
    return EM(random_normal_from_bits)(first, second, lane);
}
