/* cgroup.c - see cgroup.h. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/cgroup.h"

/* Is `name` one of "cpu,cpuacct"? */
static bool has(const char *names, size_t n, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = names; at < names + n; at += strcspn(at, ",:") + 1)
        if (strcspn(at, ",:") == len && !strncmp(at, name, len))
            return true;
    return false;
}

void gp_cgroup_each(const char *cgroup, const char *root, const char *controller,
                    void (*f)(const char *folder, void *arg), void *arg)
{
    char line[1024], folder[1300];
    FILE *groups = fopen(cgroup, "re");
    while (groups && fgets(line, sizeof line, groups)) {
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL, *cut;
        if (!group)
            continue;
        size_t n = (size_t)(group - ++names);
        if (n && !has(names, n, controller))
            continue;
        group[strcspn(group, "\n")] = '\0';
        do {                           /* v2 has no names, v1 a folder that is called as they are */
            snprintf(folder, sizeof folder, "%s%s%.*s%s", root, n ? "/" : "", (int)n, names, group + 1);
            f(folder, arg);
            if ((cut = strrchr(group + 1, '/')))
                *cut = '\0';
        } while (cut);
    }
    if (groups)
        fclose(groups);
}
