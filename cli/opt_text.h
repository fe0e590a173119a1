/* SPDX-License-Identifier: Apache-2.0
 * What is generated from the tables of commands and options: help for a terminal, man pages (roff),
 * completion for bash and zsh. */
#ifndef TP_CLI_OPT_TEXT_H
#define TP_CLI_OPT_TEXT_H

#include <stdio.h>
#include "cmd.h"

void tp_text_commands(FILE *out);                       /* tpucl help */
void tp_text_command(FILE *out, const tp_cmd *cmd);     /* tpucl help COMMAND */
void tp_text_man(FILE *out);                            /* tpucl(1) */
void tp_text_man_command(FILE *out, const tp_cmd *cmd); /* tpucl-COMMAND(1) */
void tp_text_bash(FILE *out);
void tp_text_zsh(FILE *out);

#endif
