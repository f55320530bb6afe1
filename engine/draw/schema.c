/* schema.c - what a pipeline file may say, as a JSON Schema, from the tables that the passes read files by (keys.h) and
 * the descriptors of kinds.
 *
 * A file that `gpipe check` takes is valid. Not every mistake shows: a text where a number is expected is taken as an
 * expression, and which stages fit together no schema can say. */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "compile/keys.h"
#include "draw/dump.h"

/* What rows refer to. Keys that are not a single value have the form of their name. */
static const struct { const char *name, *schema; } forms[] = {
    { "text", "{\"type\": [\"string\", \"number\", \"boolean\"]}" },
    { "inserted", "{\"type\": \"string\", \"pattern\": \"[$][{]\"}" },
    { "expression", "{\"type\": \"string\", \"pattern\": \"^[-+*/%(),.<>= A-Za-z0-9_]+$\"}" },
    { "texts", "{\"type\": \"array\", \"items\": {\"$ref\": \"#/definitions/text\"}}" },
    { "device", "{\"anyOf\": [{\"$ref\": \"#/definitions/text\"}, {\"$ref\": \"#/definitions/texts\"}]}" },
    { "in", "{\"anyOf\": [{\"$ref\": \"#/definitions/text\"}, {\"$ref\": \"#/definitions/texts\"}, {\"type\": "
            "\"object\", \"additionalProperties\": {\"$ref\": \"#/definitions/text\"}}]}" },
    { "out", "{\"$ref\": \"#/definitions/in\"}" },
    { "max_dropped", "{\"anyOf\": [{\"type\": \"integer\", \"minimum\": 0}, {\"$ref\": "
                     "\"#/definitions/expression\"}]}" },
    { "window", "{\"type\": \"object\", \"additionalProperties\": {\"anyOf\": [{\"type\": \"integer\", \"minimum\": "
                "1}, {\"$ref\": \"#/definitions/expression\"}, {\"type\": \"object\", \"additionalProperties\": "
                "false, \"required\": [\"frames\"], \"properties\": {\"frames\": {\"anyOf\": [{\"type\": "
                "\"integer\", \"minimum\": 1}, {\"$ref\": \"#/definitions/expression\"}]}, \"partial\": {\"enum\": "
                "[\"keep\", \"drop\"]}}}]}}" },
    { "size", "{\"anyOf\": [{\"type\": \"integer\", \"minimum\": 1}, {\"type\": \"string\", \"minLength\": 1}]}" },
    { "shape", "{\"anyOf\": [{\"$ref\": \"#/definitions/size\"}, {\"type\": \"array\", \"minItems\": 1, "
               "\"maxItems\": 8, \"items\": {\"$ref\": \"#/definitions/size\"}}]}" },
    { "numbers", "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"anyOf\": [{\"type\": \"number\"}, {\"$ref\": "
                 "\"#/definitions/expression\"}, {\"$ref\": \"#/definitions/numbers\"}]}}" },
    { "const", "{\"anyOf\": [{\"$ref\": \"#/definitions/text\"}, {\"$ref\": \"#/definitions/numbers\"}]}" },
    { "metadata", "{\"$ref\": \"#/definitions/texts\"}" },
    { "vars", "{\"type\": [\"object\", \"null\"], \"additionalProperties\": {\"anyOf\": [{\"type\": [\"string\", "
              "\"number\", \"boolean\", \"null\"]}, {\"$ref\": \"#/definitions/var\"}]}}" },
    { "ports", "{\"anyOf\": [{\"$ref\": \"#/definitions/texts\"}, {\"type\": [\"object\", \"null\"], "
               "\"additionalProperties\": {\"anyOf\": [{\"type\": \"null\"}, {\"type\": \"object\", "
               "\"additionalProperties\": false, \"properties\": {\"dtype\": {\"$ref\": \"#/definitions/text\"}, "
               "\"shape\": {\"$ref\": \"#/definitions/shape\"}}}]}}]}" },
    { "inputs", "{\"$ref\": \"#/definitions/ports\"}" },
    { "outputs", "{\"$ref\": \"#/definitions/ports\"}" },
    { "values", "{\"anyOf\": [{\"type\": \"integer\", \"minimum\": 1}, {\"$ref\": \"#/definitions/expression\"}, "
                "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/definitions/text\"}}]}" },
    { "repeat", "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"over\"], \"properties\": "
                "{\"over\": {\"anyOf\": [{\"type\": \"object\", \"minProperties\": 1, \"additionalProperties\": "
                "{\"$ref\": \"#/definitions/values\"}}, {\"type\": \"array\", \"minItems\": 1, \"items\": "
                "{\"type\": \"object\", \"additionalProperties\": {\"$ref\": \"#/definitions/text\"}}}]}}}" },
    { "buffers", "{\"type\": [\"object\", \"null\"], \"additionalProperties\": {\"anyOf\": [{\"type\": \"null\"}, "
                 "{\"$ref\": \"#/definitions/buffer\"}]}}" },
    { "stages", "{\"type\": \"array\", \"items\": {\"if\": {\"required\": [\"include\"]}, \"then\": {\"$ref\": "
                "\"#/definitions/include\"}, \"else\": {\"if\": {\"required\": [\"stages\"], \"not\": {\"required\": "
                "[\"use\"]}}, \"then\": {\"$ref\": \"#/definitions/branch\"}, \"else\": {\"$ref\": "
                "\"#/definitions/stage\"}}}}" },
};
enum { NFORMS = sizeof forms / sizeof *forms };

static void put_ref(gp_json *j, const char *key, const char *name)
{
    char text[96];
    snprintf(text, sizeof text, "#/definitions/%s", name);
    gp_json_open(j, key, '{');
    gp_json_put(j, "$ref: %s}", text);
}

/* A number within the row's range; a time is a text with a unit, or 0. */
static void put_number(gp_json *j, const gp_opt *o)
{
    gp_json_open(j, NULL, '{');
    if (o->type == GP_OPT_TIME) {
        gp_json_int(j, "const", 0);
    } else {
        gp_json_str(j, "type", o->type == GP_OPT_INT || o->type == GP_OPT_INTS ? "integer" : "number");
        if (o->min < o->max)
            gp_json_put(j, "minimum: %g, maximum: %g", o->min, o->max);
    }
    gp_json_close(j, '}');
    put_ref(j, NULL, "expression");
}

/* Editors see a number where a choice is one. */
static void put_words(gp_json *j, const gp_opt *o)
{
    gp_json_put(j, "{enum: [");
    if (o->type == GP_OPT_DTYPE)
        for (int t = 1; t < GP_NDTYPES; t++)
            gp_json_str(j, NULL, gp_dtype_name((gp_dtype)t));
    for (const char *c = o->type == GP_OPT_ENUM ? o->choices : ""; *c;) {
        size_t n = strcspn(c, "|");
        gp_json_strn(j, NULL, c, n);
        if (strspn(c, "0123456789") == n)
            gp_json_int(j, NULL, atoi(c));
        c += n + (c[n] == '|');
    }
    gp_json_put(j, "]}");
    put_ref(j, NULL, "inserted");
}

static bool has_form(const char *name)
{
    for (int i = 0; i < NFORMS; i++)
        if (!strcmp(forms[i].name, name))
            return true;
    return false;
}

/* What may stand behind a key. A node that is an option of a kind has a form only if it is named as a key at the top: a
 * loop has stages and buffers, too. */
static void put_row(gp_json *j, const gp_opt *o, bool is_key)
{
    bool list = o->type == GP_OPT_INTS || o->type == GP_OPT_FLOATS;
    gp_json_open(j, o->name, '{');
    gp_json_str(j, "description", o->help);
    if (o->type == GP_OPT_NODE) {
        if (has_form(o->name) && (is_key || gp_key_find(gp_top_keys, o->name))) {
            gp_json_open(j, "allOf", '[');
            put_ref(j, NULL, o->name);
            gp_json_close(j, ']');
        }
        gp_json_close(j, '}');
        return;
    }
    gp_json_open(j, "anyOf", '[');
    if (o->type == GP_OPT_BOOL) {
        gp_json_raw(j, NULL, "{\"type\": \"boolean\"}");
        put_ref(j, NULL, "inserted");
    } else if (o->type == GP_OPT_ENUM || o->type == GP_OPT_DTYPE) {
        put_words(j, o);
    } else if (o->type == GP_OPT_TEXT || o->type == GP_OPT_PATH) {
        put_ref(j, NULL, "text");
    } else if (o->type == GP_OPT_TEXTS) {
        put_ref(j, NULL, has_form(o->name) ? o->name : "texts");
    } else {
        put_number(j, o);
    }
    if (list) {
        gp_json_put(j, "{type: %s, items: {anyOf: [", "array");
        put_number(j, o);
        gp_json_put(j, "]}}");
    }
    gp_json_put(j, "]}");
}

const char *gp_schema_instead(const gp_opt *o)
{
    return o->type == GP_OPT_ENUM || !o->required ? NULL : o->choices;
}

static void put_required(gp_json *j, const gp_opt *rows)
{
    gp_json_open(j, "required", '[');
    for (const gp_opt *o = rows; o && o->name; o++)
        if (o->required && !gp_schema_instead(o))
            gp_json_str(j, NULL, o->name);
    gp_json_close(j, ']');
    for (const gp_opt *o = rows; o && o->name; o++) {
        if (!o->required || !gp_schema_instead(o))
            continue;
        GP_JSON_EACH(j, "anyOf", i, 2) {
            char one[128];
            snprintf(one, sizeof one, "{\"required\": [\"%.64s\"]}", i ? gp_schema_instead(o) : o->name);
            gp_json_raw(j, NULL, one);
        }
    }
}

/* The members of a map with these keys, and no others. */
static void put_map(gp_json *j, const gp_opt *keys, const gp_opt *options)
{
    gp_json_put(j, "type: %s, additionalProperties: %d?", "object", false);
    put_required(j, options ? options : keys);
    gp_json_open(j, "properties", '{');
    for (const gp_opt *o = keys; o->name; o++)
        if (!options || !gp_key_find(options, o->name))
            put_row(j, o, true);
    for (const gp_opt *o = options; o && o->name; o++)
        put_row(j, o, false);
    gp_json_close(j, '}');
}

/* A stage has the keys of all, and the options of its kind. */
static void put_stage(gp_json *j, const gp_registry *registry)
{
    static const gp_opt none[] = { { 0 } };
    const gp_kind *k;
    gp_json_open(j, "stage", '{');
    gp_json_str(j, "type", "object");
    put_required(j, gp_stage_keys);
    gp_json_put(j, "properties: {use: {enum: [");
    for (int i = 0; (k = gp_kind_at(registry, i)); i++)
        gp_json_str(j, NULL, k->name);
    gp_json_put(j, "]}}, allOf: [");
    for (int i = 0; (k = gp_kind_at(registry, i)); i++) {
        gp_json_open(j, NULL, '{');
        char is[128];
        snprintf(is, sizeof is, "{\"properties\": {\"use\": {\"const\": \"%.64s\"}}}", k->name);
        gp_json_raw(j, "if", is);
        gp_json_put(j, "then: {description: %s", k->help);
        put_map(j, gp_stage_keys, k->opts ? k->opts : none);
        gp_json_put(j, "}}");
    }
    gp_json_put(j, "]}");
}

void gp_schema_write(FILE *f, const gp_registry *registry)
{
    gp_json j = { .f = f };
    gp_json_put(&j, "{$schema: %s, title: %s", "http://json-schema.org/draft-07/schema#",
                "a pipeline of gpipe " GP_VERSION);
    put_map(&j, gp_top_keys, NULL);
    gp_json_raw(&j, "patternProperties", "{\"^x-\": {}}");
    gp_json_open(&j, "definitions", '{');
    for (int i = 0; i < NFORMS; i++)
        gp_json_raw(&j, forms[i].name, forms[i].schema);
    const struct { const char *name; const gp_opt *keys; } maps[] = {
        { "buffer", gp_buffer_keys }, { "include", gp_include_keys }, { "branch", gp_branch_keys }, { "var", gp_var_keys } };
    for (int i = 0; i < 4; i++) {
        gp_json_open(&j, maps[i].name, '{');
        put_map(&j, maps[i].keys, NULL);
        gp_json_close(&j, '}');
    }
    put_stage(&j, registry);
    gp_json_put(&j, "}}");
}

const gp_opt *gp_schema_option(const gp_kind *k, int i)
{
    int n = 0;
    while (k->opts && k->opts[n].name)
        n++;
    return i < n ? &k->opts[i] : i == n && (!k->in || !k->in->name) ? gp_key_find(gp_stage_keys, "shard") : NULL;
}
