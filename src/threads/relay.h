/* SPDX-License-Identifier: MIT */
/*
 * Signals of threads that are away. Carriers have every signal blocked that
 * can be; each thread's own kernel thread has the thread's mask, so the kernel
 * goes on choosing who gets a signal. Handlers of the application are wrapped:
 *
 *  - on a kernel thread whose thread is away (the stack pointer tells), the
 *    wrapper blocks everything there, queues the signal again to this same
 *    kernel thread, with what came with it, and asks the thread to come home;
 *    the carrier that runs it is interrupted if need be. At home the mask is
 *    set back, and the kernel delivers, with all that it knows of sigaction;
 *  - in a thread that is inside of this library, the same, without the way;
 *  - else the handler is called.
 *
 * Signals 32 (cancelation) and 33 (credentials) of the C library are wrapped
 * too: 32 asks the thread to end if it is away (or only to come home, if it
 * is queued by us), and on a carrier it is the interruption above, and the
 * engines' (engine/interrupt.h); 33 needs the thread pointer of the kernel
 * thread that it reaches.
 */
#ifndef FX_THREADS_RELAY_H
#define FX_THREADS_RELAY_H

#include <signal.h>

struct fx_thread;

/* What the C library calls SIGCANCEL and SIGSETXID. */
#define FX_SIGNAL_CANCEL 32
#define FX_SIGNAL_SETXID 33

/**
 * fx_relay_start - wrap the handlers that there are
 *
 * Context: after the first carrier was made, before the first thread is lent.
 * Return: 0 or -errno.
 */
int fx_relay_start(void);

/* sigaction(2) while handlers are wrapped. Return: 0 or -1 with errno. */
int fx_relay_action(int signal, const struct sigaction *action,
		    struct sigaction *old);

/**
 * fx_relay_call_home - let a thread come home, even from code without calls
 *
 * In passing, unless `stays` was set before. Any thread.
 */
void fx_relay_call_home(const struct fx_thread *t);

/* In the child of a fork. */
void fx_relay_after_fork(void);

#endif /* FX_THREADS_RELAY_H */
