/* node.c - what is asked of a node, see node.h. */
#include <stdlib.h>
#include <string.h>
#include "base/table.h"
#include "base/yaml.h"

const gp_node *gp_node_get(const gp_node *map, const char *key)
{
    int i = 0;
    if (!map || map->kind != GP_MAP)
        return NULL;
    if (map->index)
        return (i = gp_table_index(map->index, key)) < 0 ? NULL : map->item[i];
    while (i < map->n && strcmp(map->key[i]->text, key))
        i++;
    return i < map->n ? map->item[i] : NULL;
}

const char *gp_node_text(const gp_node *map, const char *key)
{
    const gp_node *n = gp_node_get(map, key);
    return n ? n->text : "";
}

double gp_node_number(const gp_node *map, const char *key)
{
    const char *text = gp_node_text(map, key);
    char *end;
    double x = strtod(text, &end);
    return *text && !*end && x >= 0 && x < 1e18 ? x : -1;
}

const gp_node *gp_node_list(const gp_node *map, const char *key)
{
    const gp_node *n = gp_node_get(map, key);
    return n && n->kind == GP_LIST ? n : NULL;
}

gp_loc gp_node_at(const gp_node *map, const char *key, gp_loc otherwise)
{
    const gp_node *n = gp_node_get(map, key);
    return n ? n->at : otherwise;
}

int gp_bool_parse(const char *text)
{
    static const char *const words[] = { "false", "true", "False", "True", "FALSE", "TRUE" };
    for (int i = 0; i < 6; i++)
        if (!strcmp(text, words[i]))
            return i % 2;
    return -1;
}

gp_loc gp_node_part(const gp_node *n, size_t offset, size_t len)
{
    gp_loc at = n->at;
    bool plain = !n->quoted && at.len == (int)n->len;
    bool in_quotes = n->quoted && at.len == (int)n->len + 2;
    if (n->line) {                     /* a block scalar, at whose end there may be newlines */
        const char *line = n->text, *end = n->text + (offset < n->len ? offset : n->len), *nl;
        while (!*end && end > line && end[-1] == '\n')
            end--;
        at.line = n->line;
        for (; (nl = memchr(line, '\n', (size_t)(end - line))); line = nl + 1)
            at.line++;
        at.col = n->col + (int)(end - line), at.len = len ? (int)len : 1;
        return at;
    }
    if (at.line && (plain || in_quotes)) {
        at.col += (int)offset + in_quotes;
        at.len = len ? (int)len : 1;
    }
    return at;
}
