/* coderig.h - a user's kernel, looked at as text by gp_compile(): nothing is compiled or run. */
#ifndef GP_TEST_CODERIG_H
#define GP_TEST_CODERIG_H

#include "pipe.h"

extern const char *code_dir;           /* of the test, where k.cu stands */
extern gp_errs code_errs;              /* of the last code_compile() */
extern char code_plan[4000];           /* ... its plan as text; empty: errors */

/* A checked fixture. */
void code_up(void);
void code_down(void);

/* Compiles a pipeline in whose second stage (test.yaml, line 4) k.cu, which is `source`, gets f32
 * frames of `shape`; `options` of the stage follow its source. `cuda`: for a machine with a GPU. */
void code_compile(const char *source, const char *shape, const char *options, bool cuda);

#endif
