/* SPDX-License-Identifier: MIT */
/*
 * What observers are told of a call: numbers, arguments, what these point at,
 * the result, how long it took. Only with fx_watched(), page/trace.h.
 */
#ifndef FX_CALL_SEEN_H
#define FX_CALL_SEEN_H

#include "page/trace.h"

#include <signal.h>

/**
 * fx_seen_begin - a call is about to be made
 * @tid: of the thread that makes it, as the program knows it
 * @id: of a posted call, until its end; 0: the thread waits for it
 * @results: bit i: argument i will be the result of an earlier call
 *
 * Context: here and below, any thread; errno is left alone.
 * Return: for fx_seen_end().
 */
uint64_t fx_seen_begin(unsigned nr, int tid, uint64_t id,
		       const uint64_t args[6], unsigned results);

/* It is over. @begun_ns: 0: it is not known when it began. */
void fx_seen_end(unsigned nr, int tid, uint64_t id, const uint64_t args[6],
		 uint64_t begun_ns, int64_t ret);

/* A posted call is asked to end. */
void fx_seen_cancel(unsigned nr, int tid, uint64_t id);

/* A handler of the program's is about to be called. */
void fx_seen_signal(int signal, int tid, const siginfo_t *info);

/* A thread ends, or its process. @nr: exit or exit_group. */
void fx_seen_exit(unsigned nr, int tid, int status);

#endif /* FX_CALL_SEEN_H */
