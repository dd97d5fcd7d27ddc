/* SPDX-License-Identifier: MIT */
/* What /proc says of a process and its kernel threads. */
#ifndef CLI_PROC_H
#define CLI_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* When it started, in clock ticks since the machine did; 0: no such process. */
uint64_t proc_start(pid_t pid);

/* The pid as the process itself sees it, in a container perhaps. */
pid_t proc_own_pid(pid_t pid);

/* The name of a thread, of the process where @tid is 0; empty if unknown. */
void proc_name(pid_t pid, pid_t tid, char *name, size_t size);

/* State as in proc(5), '?' if unknown, and processor time of a thread. */
void proc_thread(pid_t pid, pid_t tid, char *state, uint64_t *cpu_ns);

pid_t proc_parent(pid_t pid); /* 0: unknown */

/* Has it ended, and waits to be asked how? *status: as wait(2) has it. */
bool proc_ended(pid_t pid, int *status);

/* May its memory be read, by who traces it or looks at it? */
bool proc_may_read(pid_t pid);

/* Does a variable of the environment that it began with hold @part? */
bool proc_has_variable(pid_t pid, const char *name, const char *part);

/* Is there a filter of its system calls? */
bool proc_filtered(pid_t pid);

/* Is a library of this name mapped? */
bool proc_maps_library(pid_t pid, const char *name);

/*
 * Thread ids inside of the process's pid namespace, as they are here. Where
 * both are the same nothing is looked up.
 */
struct tids;
struct tids *tids_new(pid_t pid);
void tids_free(struct tids *tids);
void tids_renew(struct tids *tids); /* threads may have come and gone */
pid_t tids_here(struct tids *tids, pid_t there); /* 0: not known */

#endif /* CLI_PROC_H */
