/* SPDX-License-Identifier: Apache-2.0
 * Help texts and man pages from the tables. Shell completion is in opt_complete.c. */
#include "opt_text.h"

#include <ctype.h>
#include <string.h>
#include <tpucl/tools.h>
#include <tpucl/version.h>
#include "ui.h"

enum { TEXT_WIDTH = 92, OPTION_WIDTH = 28 };

/* Prints `text` broken at blanks; every line after the first begins with `indent` blanks. */
static void print_wrapped(FILE *out, const char *text, int indent, int column)
{
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (column > indent && column + 1 + (int)word > TEXT_WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            ++column;
        }
        fprintf(out, "%.*s", (int)word, text);
        column += (int)word;
        text += word;
        if (text[0] == '\n' && text[1] == '\n') { /* a new paragraph */
            fprintf(out, "\n\n%*s", indent, "");
            column = indent;
        }
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

static void option_text(const tp_opt_row *row, char *out_text, size_t size)
{
    char letter[8] = "    ";
    if (row->letter) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(out_text, size, "%s--%s%s%s", letter, row->name, row->value ? " " : "",
             row->value ? row->value : "");
}

static void print_options(FILE *out, const tp_opt_row *rows)
{
    char text[96];
    for (const tp_opt_row *row = rows; row && row->name; ++row) {
        option_text(row, text, sizeof text);
        fprintf(out, "  %-*s", OPTION_WIDTH, text);
        if (strlen(text) > OPTION_WIDTH - 2) fprintf(out, "\n  %*s", OPTION_WIDTH, "");
        print_wrapped(out, row->help, OPTION_WIDTH + 2, OPTION_WIDTH + 2);
    }
}

static void print_usage_line(FILE *out, const tp_cmd *cmd)
{
    fprintf(out, "usage: tpucl %s [OPTION]...%s%s\n", cmd->name, *cmd->operands ? " " : "",
            cmd->operands);
}

void tp_text_commands(FILE *out)
{
    fprintf(out, "usage: tpucl COMMAND [OPTION]... [ARGUMENT]...\n\n"
                 "Trains neural networks the way a Cloud TPU does, on any OpenCL device.\n\n");
    for (int i = 0; tp_cmd_table[i]; ++i)
        fprintf(out, "  %s%-10s%s  %s\n", tp_ui_bold(out), tp_cmd_table[i]->name, tp_ui_plain(out),
                tp_cmd_table[i]->summary);
    fprintf(out,
            "\n'tpucl help COMMAND' or 'tpucl COMMAND --help' explains one of them; 'tpucl help "
            "config'\nlists the keys of a run, 'tpucl help environment' the variables.\n\n"
            "Exit codes\n");
#define PRINT_EXIT(name, code, when) fprintf(out, "  %d  %s\n", code, when);
    TP_EXIT_LIST(PRINT_EXIT)
#undef PRINT_EXIT
}

void tp_text_command(FILE *out, const tp_cmd *cmd)
{
    print_usage_line(out, cmd);
    fputc('\n', out);
    print_wrapped(out, cmd->description, 0, 0);
    fputs("\nOptions\n", out);
    print_options(out, cmd->options);
    print_options(out, tp_cmd_common_options);
    fputs("\nExamples\n", out);
    const char *line = cmd->examples;
    for (int odd = 0; *line; odd = !odd) {
        size_t len = strcspn(line, "\n");
        fprintf(out, odd ? "      %.*s\n" : "  %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

/* ---- roff ---- */

/* Text for roff: hyphens as they are, a leading dot or quote defused. */
static void print_roff(FILE *out, const char *text, size_t len)
{
    bool at_start = true;
    for (size_t i = 0; i < len; ++i) {
        if (at_start && (text[i] == '.' || text[i] == '\'')) fputs("\\&", out);
        if (text[i] == '-') fputc('\\', out);
        if (text[i] == '\\')
            fputs("\\e", out);
        else
            fputc(text[i], out);
        at_start = text[i] == '\n';
    }
}

static void print_roff_text(FILE *out, const char *text)
{
    print_roff(out, text, strlen(text));
}

static void print_man_paragraphs(FILE *out, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        print_roff(out, text, end ? (size_t)(end - text) : strlen(text));
        fputc('\n', out);
        if (!end) return;
        fputs(".PP\n", out);
        text = end + 2;
    }
}

static void print_man_options(FILE *out, const tp_opt_row *rows)
{
    for (const tp_opt_row *row = rows; row && row->name; ++row) {
        fputs(".TP\n", out);
        if (row->letter) fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
        fputs("\\fB\\-\\-", out);
        print_roff_text(out, row->name);
        fputs("\\fR", out);
        if (row->value) fprintf(out, " \\fI%s\\fR", row->value);
        fputc('\n', out);
        print_roff_text(out, row->help);
        fputc('\n', out);
    }
}

static void print_man_head(FILE *out, const char *name, const char *summary)
{
    fputs(".TH \"", out);
    for (const char *c = name; *c; ++c)
        fputc(toupper((unsigned char)*c), out);
    fprintf(out, "\" 1 \"\" \"tpucl %s\" \"tpucl\"\n.SH NAME\n", tpucl_version_string());
    print_roff_text(out, name);
    fputs(" \\- ", out);
    print_roff_text(out, summary);
    fputc('\n', out);
}

static void print_man_exits(FILE *out)
{
    fputs(".SH EXIT STATUS\n", out);
#define PRINT_EXIT(name, code, when) fprintf(out, ".TP\n.B %d\n%s\n", code, when);
    TP_EXIT_LIST(PRINT_EXIT)
#undef PRINT_EXIT
}

void tp_text_man_command(FILE *out, const tp_cmd *cmd)
{
    char name[64];
    snprintf(name, sizeof name, "tpucl-%s", cmd->name);
    print_man_head(out, name, cmd->summary);
    fprintf(out, ".SH SYNOPSIS\n.B tpucl %s\n[\\fIOPTION\\fR]... \\fI%s\\fR\n.SH DESCRIPTION\n",
            cmd->name, cmd->operands);
    print_man_paragraphs(out, cmd->description);
    fputs(".SH OPTIONS\n", out);
    print_man_options(out, cmd->options);
    print_man_options(out, tp_cmd_common_options);
    print_man_exits(out);
    fputs(".SH EXAMPLES\n", out);
    const char *line = cmd->examples;
    for (int odd = 0; *line; odd = !odd) {
        size_t len = strcspn(line, "\n");
        fputs(odd ? "" : ".TP\n.B ", out);
        print_roff(out, line, len);
        fputc('\n', out);
        line += len + (line[len] == '\n');
    }
    fputs(".SH SEE ALSO\n.BR tpucl (1)\n", out);
}

void tp_text_man(FILE *out)
{
    print_man_head(out, "tpucl",
                   "train neural networks the way a Cloud TPU does, on any OpenCL device");
    fputs(".SH SYNOPSIS\n.B tpucl\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n"
          ".SH DESCRIPTION\nA topology says what the TPU looks like; tpucl maps its cores onto "
          "whatever OpenCL devices there are.\nWhat a run computes is fixed by the topology, how "
          "fast by the devices.\n.SH COMMANDS\n",
          out);
    for (int i = 0; tp_cmd_table[i]; ++i) {
        fprintf(out, ".TP\n.BR tpucl\\-%s (1)\n", tp_cmd_table[i]->name);
        print_roff_text(out, tp_cmd_table[i]->summary);
        fputc('\n', out);
    }
    print_man_exits(out);
    fputs(".SH ENVIRONMENT\n", out);
    for (int32_t i = 0; tpucl_environment_at(i).name; ++i) {
        tpucl_environment_variable variable = tpucl_environment_at(i);
        fprintf(out, ".TP\n.B %s\n", variable.name);
        print_roff_text(out, variable.meaning);
        fputs(" (", out);
        print_roff_text(out, variable.value);
        fputs(")\n", out);
    }
}
