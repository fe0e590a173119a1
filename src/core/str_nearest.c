/* SPDX-License-Identifier: Apache-2.0
 * "Did you mean": optimal string alignment distance (Damerau 1964, restricted), three rows of the
 * table. */
#include <ctype.h>
#include <string.h>
#include "core/str.h"

enum { LONGEST = 64 }; /* names of keys, layers, devices; longer ones get no suggestion */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = above[j - 1] + !same(a[i - 1], b[j - 1]);
            best = smaller(best, above[j] + 1);
            best = smaller(best, row[j - 1] + 1);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                best = smaller(best, two_above[j - 2] + 1);
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *tp_str_nearest(const char *text, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    size_t text_length = strlen(text), least = SIZE_MAX;
    if (text_length > LONGEST) return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (length > LONGEST) continue;
        size_t distance = edit_distance(text, text_length, names[i], length);
        size_t longest = length > text_length ? length : text_length, limit = longest / 3;
        /* Below `longest`, or nothing of the one would be left in the other. */
        if (distance <= (limit ? limit : 1) && distance < longest && distance < least) {
            nearest = names[i];
            least = distance;
        }
    }
    return nearest;
}
