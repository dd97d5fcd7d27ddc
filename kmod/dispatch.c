// SPDX-License-Identifier: GPL-2.0-only
/* The less usual things around a call. */
#include "dispatch.h"

void fxk_do_work(struct fxk_runner *r)
{
	clear_notify_signal();
	static_call(fxk_task_work_run)();
}

#define LOUD (sigmask(SIGPIPE) | sigmask(SIGXFSZ))

void fxk_quiet_begin(struct fxk_runner *r)
{
	spin_lock_irq(&current->sighand->siglock);
	r->blocked = current->blocked;
	r->loud = current->pending.signal.sig[0] & LOUD;
	current->blocked.sig[0] |= LOUD;
	recalc_sigpending();
	spin_unlock_irq(&current->sighand->siglock);
	r->quiet = true;
}

/* Of the thread's own queue; the process's is left alone. */
static void take(int signal)
{
	kernel_siginfo_t info;
	sigset_t others;

	siginitsetinv(&others, sigmask(signal));
	if (sigismember(&current->pending.signal, signal))
		fxk_dequeue_signal(&others, &info);
}

void fxk_quiet_end(struct fxk_runner *r)
{
	unsigned long new;

	spin_lock_irq(&current->sighand->siglock);
	new = current->pending.signal.sig[0] & LOUD & ~r->loud;
	if (new &sigmask(SIGPIPE))
		take(SIGPIPE);
	if (new &sigmask(SIGXFSZ))
		take(SIGXFSZ);
	current->blocked = r->blocked;
	recalc_sigpending();
	spin_unlock_irq(&current->sighand->siglock);
	r->quiet = false;
}
