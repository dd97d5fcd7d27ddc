/* SPDX-License-Identifier: MIT */
/*
 * How processes ended, as far as anybody was told: themselves, before they did,
 * and their parents, by wait(2) and SIGCHLD.
 */
#ifndef CLI_TRACE_ENDED_H
#define CLI_TRACE_ENDED_H

#include <stdbool.h>
#include <sys/types.h>

#include <flexsc/trace.h>

struct endings;

struct endings *endings_new(void);
void endings_free(struct endings *endings);

/* @status: as wait(2) has it. The latest word counts. */
void endings_note(struct endings *endings, pid_t pid, int status);

/* What was said of it, which is forgotten. Return: whether anything was. */
bool endings_take(struct endings *endings, pid_t pid, int *status);

/* Does a record say how a child of who made it has ended, and which? */
bool trace_child_ended(const struct flexsc_trace_record *record, pid_t *pid,
		       int *status);

#endif /* CLI_TRACE_ENDED_H */
