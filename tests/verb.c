/* verb.c - a verb more: tests/cli.sh asks a command for it in which nothing else was changed. */
#include "cli/verb.h"

static int greet(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    printf("hello, %s\n", args->from ? args->from : args->operand[0]);
    return 0;
}

const gp_verb gp_verb_greet = {
    .name = "greet", .operand = "NAME", .min = 1, .max = 1, .place = 20, .help = "say hello",
    .run = greet,
    .options = (const gp_option[]){
        { "as", 0, "NAME", GP_TO_TEXT(from), "another name" },
        { 0 } },
};
