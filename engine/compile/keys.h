/* keys.h - the keys of a pipeline file, as options are described: what may stand where. `def` "auto": so may the word
 * auto. Of a GP_OPT_NODE, who reads the key says what it may be. */
#pragma once

#include "gpipe/stage.h"

enum { GP_DEPTH_MAX = 65536 };

/* At the top; of a stage of any kind; of a buffer; of what stands among the stages and includes a file, or has stages;
 * of a var with a type. Each ends with {0}. */
extern const gp_opt gp_top_keys[], gp_stage_keys[], gp_buffer_keys[], gp_include_keys[], gp_branch_keys[], gp_var_keys[];
/* The types of vars, as their `type` says them: words of gp_var_types, each that option type. */
extern const char gp_var_types[];
gp_opt_type gp_var_type(int word);

/* The row of that name, or NULL. */
const gp_opt *gp_key_find(const gp_opt *keys, const char *name);
/* The nearest of all of them. */
gp_near gp_key_near(const gp_opt *keys, const char *word);
