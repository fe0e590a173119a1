/* SPDX-License-Identifier: Apache-2.0
 * Which lane holds which element of a matrix unit's operands. The emulation cannot tell: it lays out by the same
 * macros as the kernel loads, so any layout that is one-to-one would pass. Here the layouts are written down once
 * more, in the other direction, from an element to the lane and register that have it, so that no formula stands
 * twice. Whether hardware agrees only hardware can say: verification before use (src/tune/mxu_check.c).
 *
 * Sources: those named at the top of kernels/mxu/matrix_unit_*.clh.
 */
#include <criterion/criterion.h>

typedef struct place {
    int line; /* row of A, column of B, row of the sums */
    int at;   /* k, k, column of the sums */
} place;

enum { MAX_LANES = 64, MAX_WORDS = 8 };

typedef struct layout {
    int m, n, k, lanes, a_words, b_words, sums, a_is_half;
    place a[MAX_LANES][MAX_WORDS], b[MAX_LANES][MAX_WORDS], c[MAX_LANES][MAX_WORDS];
} layout;

#define MATRIX_UNIT 1
#define LAYOUT_FILE "mxu/matrix_unit_nvidia.clh"
#define LAYOUT_READ nvidia
#include "matrix_layout.h"
#define MATRIX_UNIT 2
#define LAYOUT_FILE "mxu/matrix_unit_intel.clh"
#define LAYOUT_READ intel_16
#include "matrix_layout.h"
#define MATRIX_UNIT 3
#define LAYOUT_FILE "mxu/matrix_unit_intel.clh"
#define LAYOUT_READ intel_8
#include "matrix_layout.h"
#define MATRIX_UNIT 4
#define LAYOUT_FILE "mxu/matrix_unit_mfma.clh"
#define LAYOUT_READ mfma
#include "matrix_layout.h"
#define MATRIX_UNIT 5
#define LAYOUT_FILE "mxu/matrix_unit_wmma.clh"
#define LAYOUT_READ wmma_gfx11
#include "matrix_layout.h"
#define MATRIX_UNIT 6
#define LAYOUT_FILE "mxu/matrix_unit_wmma.clh"
#define LAYOUT_READ wmma_gfx12
#include "matrix_layout.h"

/* The lane and the register that hold an element. */
typedef struct holder {
    int lane, word;
} holder;

static void expect(const place held[][MAX_WORDS], holder who, int line, int at, const char *what)
{
    const place *p = &held[who.lane][who.word];
    cr_expect(p->line == line && p->at == at, "%s[%d][%d]: lane %d, register %d has [%d][%d]", what,
              line, at, who.lane, who.word, p->line, p->at);
}

/* One block, and registers for each element of it, as often as there are `copies`. */
static void expect_block(const layout *l, int m, int n, int lanes, int copies)
{
    cr_expect(l->m == m && l->n == n && l->k == 16 && l->lanes == lanes);
    cr_expect(l->lanes * l->a_words * (l->a_is_half ? 1 : 2) == m * 16 * copies);
    cr_expect(l->lanes * l->b_words * 2 == n * 16 * copies);
    cr_expect(l->lanes * l->sums == m * n);
}

Test(matrix_layout, nvidia)
{
    const layout l = nvidia();
    expect_block(&l, 16, 8, 32, 1);
    for (int k = 0; k < 16; k += 2)
        for (int i = 0; i < 16; i++) {
            expect(l.a, (holder){i % 8 * 4 + k % 8 / 2, (i >= 8) + 2 * (k >= 8)}, i, k, "A");
            if (i < 8) expect(l.b, (holder){i * 4 + k % 8 / 2, k >= 8}, i, k, "B");
        }
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++)
            expect(l.c, (holder){m % 8 * 4 + n / 2, (m >= 8) * 2 + n % 2}, m, n, "C");
}

/* Of 16 lanes each has one k of A (the pair's lower k is what the macro names), of 8 a pair. */
static void expect_intel(const layout *l, int lanes)
{
    expect_block(l, 8, lanes, lanes, 1);
    cr_expect(l->a_is_half == (lanes == 16));
    for (int k = 0; k < 16; k++) {
        for (int m = 0; m < 8; m++)
            expect(l->a, (holder){lanes == 16 ? k : k / 2, m}, m, k & ~1, "A");
        for (int n = 0; n < lanes; n++)
            expect(l->b, (holder){n, k / 2}, n, k & ~1, "B");
    }
    for (int m = 0; m < 8; m++)
        for (int n = 0; n < lanes; n++)
            expect(l->c, (holder){n, m}, m, n, "C");
}

Test(matrix_layout, intel)
{
    const layout wide = intel_16(), narrow = intel_8();
    expect_intel(&wide, 16);
    expect_intel(&narrow, 8);
}

Test(matrix_layout, mfma)
{
    const layout l = mfma();
    expect_block(&l, 16, 16, 64, 1);
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < 16; k += 2) {
            expect(l.a, (holder){k / 4 * 16 + i, k % 4 / 2}, i, k, "A");
            expect(l.b, (holder){k / 4 * 16 + i, k % 4 / 2}, i, k, "B");
        }
        for (int n = 0; n < 16; n++)
            expect(l.c, (holder){i / 4 * 16 + n, i % 4}, i, n, "C");
    }
}

/* Both halves of the wavefront have all of A and B; even rows of the sums are in the lower half. */
Test(matrix_layout, wmma_gfx11)
{
    const layout l = wmma_gfx11();
    expect_block(&l, 16, 16, 32, 2);
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < 16; k += 2)
            for (int copy = 0; copy < 32; copy += 16) {
                expect(l.a, (holder){copy + i, k / 2}, i, k, "A");
                expect(l.b, (holder){copy + i, k / 2}, i, k, "B");
            }
        for (int n = 0; n < 16; n++)
            expect(l.c, (holder){i % 2 * 16 + n, i / 2}, i, n, "C");
    }
}

Test(matrix_layout, wmma_gfx12)
{
    const layout l = wmma_gfx12();
    expect_block(&l, 16, 16, 32, 1);
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < 16; k += 2) {
            expect(l.a, (holder){k / 8 * 16 + i, k % 8 / 2}, i, k, "A");
            expect(l.b, (holder){k / 8 * 16 + i, k % 8 / 2}, i, k, "B");
        }
        for (int n = 0; n < 16; n++)
            expect(l.c, (holder){i / 8 * 16 + n, i % 8}, i, n, "C");
    }
}
