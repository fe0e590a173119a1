/* SPDX-License-Identifier: Apache-2.0
 * The digest of parameters.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "exec/params_hash.h"

static void digest_of(uint32_t bits, char out_hex[TP_SHA256_HEX_BYTES])
{
    const tp_shape shape = {.rank = 1, .dims = {1}};
    tp_sha256 hash;
    tp_sha256_init(&hash);
    tp_params_hash_add(&hash, "w", TP_F32, &shape, &bits);
    tp_sha256_finish_hex(&hash, out_hex);
}

/* docs/precision.md: which NaN a NaN is depends on the device. */
Test(params_hash, every_nan_is_the_same)
{
    char quiet[TP_SHA256_HEX_BYTES], other[TP_SHA256_HEX_BYTES], infinite[TP_SHA256_HEX_BYTES];
    digest_of(0x7fc00000u, quiet);
    digest_of(0xffc01234u, other);
    digest_of(0x7f800000u, infinite);
    cr_expect_str_eq(quiet, other);
    cr_expect_str_neq(quiet, infinite);
}

Test(params_hash, the_sign_of_zero_counts)
{
    char plus[TP_SHA256_HEX_BYTES], minus[TP_SHA256_HEX_BYTES];
    digest_of(0, plus);
    digest_of(0x80000000u, minus);
    cr_expect_str_neq(plus, minus);
}
