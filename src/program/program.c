/* SPDX-License-Identifier: Apache-2.0
 * The end of a program's life: all of it lives in its arena, the program included.
 */
#include "program/program.h"

void tp_program_destroy(tp_program *program)
{
    if (program) tp_arena_destroy(program->arena);
}

int32_t tp_program_base(const tp_program *program, int32_t buffer)
{
    const tp_program_view *view = &program->buffers[buffer].view;
    return view->is_view ? view->of : buffer;
}

int64_t tp_program_view_shift(const tp_program_view *view, int64_t turn)
{
    const int64_t index = view->period > 0 ? (turn + view->phase) % view->period : turn;
    return index * view->stride_bytes;
}

const tp_program_loop *tp_program_loop_at(const tp_program *program, int32_t launch)
{
    for (int32_t i = 0; i < program->loop_count; i++) {
        const tp_program_loop *loop = &program->loops[i];
        if (launch >= loop->first_launch && launch < loop->first_launch + loop->launch_count)
            return loop;
    }
    return NULL;
}
