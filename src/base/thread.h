/* SPDX-License-Identifier: MIT */
/* What the kernel knows of another thread of the process. */
#ifndef FX_BASE_THREAD_H
#define FX_BASE_THREAD_H

#include "base/types.h"

#include <stddef.h>
#include <sys/types.h>

/* CPU time that it has used; 0 if there is no such thread. */
uint64_t fx_thread_cpu_ns(pid_t tid);

/* Time that it was kept waiting for a processor; 0 if nobody counts it. */
uint64_t fx_thread_delay_ns(pid_t tid);

/**
 * fx_thread_runnable - does it run, or wait for its processor?
 *
 * Opens a file for a moment: see fx_thread_unshare_files().
 * Return: false if it waits for something else, or if /proc does not say.
 */
bool fx_thread_runnable(pid_t tid);

/**
 * fx_thread_unshare_files - no descriptors in common with the process
 *
 * For a thread that opens files while the application runs: a number that is
 * taken for a moment is one that dup2() may be about to replace, or that
 * should have been the lowest. Threads that it makes get its (empty) table,
 * so it should not make any.
 *
 * Return: false if it cannot be done; all is as it was.
 */
bool fx_thread_unshare_files(void);

/*
 * Processors for threads that serve others, whoever makes them: a carrier is
 * bound to one, and its syscall threads would only wait behind it. Set once,
 * stays valid; NULL: those of who makes the thread. A cpu_set_t, so to speak.
 */
extern const void *fx_thread_cpus;
extern size_t fx_thread_cpus_size;
/* The calling thread is one. */
void fx_thread_spread(void);

#endif /* FX_BASE_THREAD_H */
