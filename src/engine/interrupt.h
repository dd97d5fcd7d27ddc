/* SPDX-License-Identifier: MIT */
/*
 * Interrupting a system call in one chosen thread: one real-time signal of
 * the process, the highest that nobody uses, and what its handler looks at.
 * Or a signal that somebody else has: then its handler asks here first, and
 * all that is told apart by what the signal carries.
 */
#ifndef FX_ENGINE_INTERRUPT_H
#define FX_ENGINE_INTERRUPT_H

#include "base/types.h"

#include <signal.h>
#include <sys/types.h>

/* One thread that can be interrupted. Key: atomics of any thread. */
struct fx_interrupt {
	uint32_t wanted; /* set before the signal is sent */
	uint32_t arrived; /* set by the handler */
};

/* The signal, claimed at first use; 0 if all are taken. */
int fx_interrupt_signal(void);

/**
 * fx_interrupt_adopt - use a signal whose handler is somebody else's
 * @signo: 32 and 33 too, which the C library keeps for itself
 *
 * The handler calls fx_interrupt_handle() first. Nobody may block the signal
 * where engines are used.
 *
 * Context: before the first call that an engine might have to interrupt.
 * Return: 0; -EBUSY if another one is in use already.
 */
int fx_interrupt_adopt(int signo);

/**
 * fx_interrupt_handle - the engines' share of an adopted signal's handler
 * @info, @ucontext: as the handler got them (SA_SIGINFO)
 *
 * Return: true if it was sent by fx_interrupt_send(): nothing else is to be
 * done with it.
 */
bool fx_interrupt_handle(const siginfo_t *info, void *ucontext);

/* From now on signals to this thread are for @interrupt; NULL: for nobody. */
void fx_interrupt_self(struct fx_interrupt *interrupt);

/**
 * fx_interrupt_send - let the call that @tid is in, or about to enter, end
 *
 * Whether it was entered is decided by the program counter, see
 * fx_arch_syscall_cancellable(), which must be given &interrupt->wanted.
 */
void fx_interrupt_send(struct fx_interrupt *interrupt, pid_t tid);

/**
 * fx_interrupt_settle - let a signal that was sent arrive
 *
 * Context: the interrupted thread, after fx_interrupt_send() has returned.
 * Afterwards it cannot reach a later call.
 */
void fx_interrupt_settle(struct fx_interrupt *interrupt);

#endif /* FX_ENGINE_INTERRUPT_H */
