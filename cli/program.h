/* SPDX-License-Identifier: MIT */
/* What kind of program a name stands for, before it is started. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stddef.h>

/**
 * program_obstacle() - why a preloaded library cannot work in a program
 * @name: as it would be given to execvp(3)
 * @why: takes "PROGRAM is ...", a sentence without its full stop
 *
 * Looks at the file, and of a script at its interpreter. What it cannot find
 * or read is no obstacle: starting it will tell.
 *
 * Return: 1 if there is an obstacle, else 0.
 */
int program_obstacle(const char *name, char *why, size_t size);

#endif /* CLI_PROGRAM_H */
