/* expr_scope.h - names that expressions of tests may use: variables, and a port `in` of shape [768, 1025, 3]. */
#pragma once

#include <string.h>
#include "compile/expr.h"

static bool var(const gp_scope *s, const char *name, gp_num *out)
{
    static const struct { const char *name; gp_num value; } vars[] = {
        { "gain", { false, 0, 1.5 } }, { "width", { true, 1024, 1024 } }, { "k_2", { true, 7, 7 } },
        { "least", { true, INT64_MIN, (double)INT64_MIN } },
        { "most", { true, INT64_MAX, (double)INT64_MAX } }, { "tiny", { false, 0, 5e-324 } },
    };
    for (size_t i = 0; i < sizeof vars / sizeof *vars; i++)
        if (!strcmp(vars[i].name, name))
            return *out = vars[i].value, true;
    return false;
}

static bool port(const gp_scope *s, const char *name, int k, gp_num *out)
{
    static const int dim[] = { 768, 1025, 3 };
    if (strcmp(name, "in") || k > 2)
        return false;
    int v = k < 0 ? 768 * 1025 * 3 : dim[k];
    return *out = (gp_num){ true, v, v }, true;
}

static void each(const gp_scope *s, gp_near *near)
{
    gp_near_try(near, "gain"), gp_near_try(near, "width"), gp_near_try(near, "k_2"), gp_near_try(near, "in");
}

static const gp_scope scope = { var, port, each, NULL };
