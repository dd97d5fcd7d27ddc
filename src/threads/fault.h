/* SPDX-License-Identifier: MIT */
/*
 * Faults of threads on carriers. The handler is to run at home, and nobody
 * can build a signal frame as well as the kernel: so the thread goes home as
 * it was, and makes the same fault again there. Then alternate stack, mask and
 * everything that the handler sees and may change are the kernel's own.
 */
#ifndef FX_THREADS_FAULT_H
#define FX_THREADS_FAULT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

struct fx_thread;

/* Was it the thread itself, by an instruction, that raised it? */
bool fx_fault_is(int signal, const siginfo_t *info);

/**
 * fx_fault_go_home - return from this signal's frame, but at home
 * @me: on a carrier, in code of the application's
 *
 * Context: the handler of a fault. Return from it next, if this returns.
 */
void fx_fault_go_home(struct fx_thread *me, int signal, siginfo_t *info,
		      ucontext_t *context);

/* How much of a stack a frame that goes home needs. */
size_t fx_fault_room(void);

#endif /* FX_THREADS_FAULT_H */
