/* SPDX-License-Identifier: MIT */
/* Starting a program on FlexSC-Threads, for other commands than flexsc run. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <stdbool.h>

/* Set the environment for it, or say why it cannot work, unless @quiet. */
void run_prepare(char **program, bool quiet);

#endif /* CLI_RUN_H */
