/* SPDX-License-Identifier: MIT */
/* Which processes of a tree are on FlexSC, which are not, and why. */
#ifndef CLI_ACTIVATION_H
#define CLI_ACTIVATION_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * activation_print() - a line for a process and each of its descendants
 *
 * Return: an exit status: 1 if there is no such process, which has been said.
 */
int activation_print(pid_t pid, bool json);

#endif /* CLI_ACTIVATION_H */
