/* SPDX-License-Identifier: Apache-2.0
 * Written by golden_reduce.py; do not edit. Results as f32 bits. */
#include <stdint.h>

static const struct golden_sum {
    int64_t n;
    uint32_t add, multiply;
} golden_sums[] = {
    {1, 0x3e085168u, 0x3f800111u},     {2, 0x40daa5cbu, 0x3f8036acu},
    {3, 0xc13be38du, 0x3f7f4414u},     {127, 0x42dc794fu, 0x3f836350u},
    {128, 0x40b5d4a0u, 0x3f80134bu},   {129, 0xc2b121e5u, 0x3f7a5019u},
    {300, 0xc36f6352u, 0x3f7106fau},   {8191, 0xc4de1c87u, 0x3f1c41aeu},
    {8192, 0xc1c10868u, 0x3f70d2e0u},  {8193, 0xc51e81a0u, 0x3f02393bu},
    {24576, 0xc4aa3c24u, 0x3f1c09d4u}, {41037, 0xc53510c9u, 0x3ebf7510u},
};
static const struct golden_dot {
    int64_t k;
    uint32_t precision[4]; /* default, high, highest, f32 */
} golden_dots[] = {
    {1, {0x432ecc00u, 0x432e6efeu, 0x432e6ef9u, 0x432e6ef9u}},
    {2, {0x415e2b80u, 0x415e7f18u, 0x415e7ee4u, 0x415e7ee4u}},
    {127, {0xc476a706u, 0xc4779c43u, 0xc4779c51u, 0xc4779c51u}},
    {128, {0x45ab3ea0u, 0x45ab4030u, 0x45ab4024u, 0x45ab4025u}},
    {129, {0x459cb53eu, 0x459c5974u, 0x459c596cu, 0x459c596eu}},
    {257, {0x44be1bf6u, 0x44be1bd0u, 0x44be1b4au, 0x44be1b4fu}},
    {1000, {0xc5b9cde8u, 0xc5b9ea65u, 0xc5b9eacau, 0xc5b9eac8u}},
    {8192, {0xc68c2963u, 0xc68c3719u, 0xc68c3711u, 0xc68c3710u}},
    {8193, {0xc70778f9u, 0xc70785d1u, 0xc70785d0u, 0xc70785d0u}},
    {24706, {0x46d5237cu, 0x46d5662cu, 0x46d565feu, 0x46d565f9u}},
};
static const struct golden_dot golden_cancelling[] = {
    {2, {0x00000000u, 0x3b9e4300u, 0x3b9e785bu, 0x3b9e7868u}},
    {4, {0x3b850000u, 0x3bf4b640u, 0x3bf4af2cu, 0x3bf4afc7u}},
    {10, {0x3ab40000u, 0xba9a6d80u, 0xba96952cu, 0xba969649u}},
    {128, {0xbc818000u, 0xbc93e496u, 0xbc928761u, 0xbc9286e4u}},
    {400, {0xbd4c2000u, 0x3c7c8888u, 0x3c7b8f88u, 0x3c7b8f93u}},
};
