/* SPDX-License-Identifier: Apache-2.0
 * The end of a program's life: all of it lives in its arena, the program included.
 */
#include "program/program.h"

void tp_program_destroy(tp_program *program)
{
    if (program) tp_arena_destroy(program->arena);
}
