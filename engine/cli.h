/* cli.h - what the files of the command share: main.c and cli_*.c. */
#ifndef GP_CLI_H
#define GP_CLI_H

#include "gpipe.h"

extern const char gp_commit[];         /* version.c; "" when not known */

#endif
