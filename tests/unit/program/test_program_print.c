/* SPDX-License-Identifier: Apache-2.0
 * The listing names what there is.
 */
#include "toy_program.h"

Test(program_print, lists_sizes_ports_buffers_launches_and_reductions)
{
    static const char *const parts[] = {
        "program toy: core 256 B in 1 slab segments",
        "input 'x' b0",
        "b1   f32[16]  core 0+128  64 B  launches 0..1  h",
        "b4   f32[16]  variable 'w'  64 B",
        "segment per core, 2 launches",
        "0   first [k] 16x1x1",
        "( b0 >b1 16 )",
        "reduce over cores: 32 f32, core 0+0 to replicated 0+0",
        "segment replicated, 1 launches",
    };
    tp_program *program = toy_program();
    const char *text = NULL;
    EXPECT_OK(tp_program_print(program, program->arena, &text));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_assert(strstr(text, parts[i]), "'%s' is not in:\n%s", parts[i], text);
    tp_program_destroy(program);
}
