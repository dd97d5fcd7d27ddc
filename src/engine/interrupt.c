/* SPDX-License-Identifier: MIT */
/* The signal that interrupts a system call, and its handler. */
#include "engine/interrupt.h"

#include "arch/arch.h"
#include "base/atomic.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread struct fx_interrupt *self
	__attribute__((tls_model("initial-exec")));

static int claimed;

static void on_signal(int signal, siginfo_t *info, void *ucontext)
{
	(void)signal;
	(void)info;
	if (!self)
		return;
	if (fx_load_relaxed(&self->wanted))
		fx_arch_cancel_entry(ucontext);
	fx_store_relaxed(&self->arrived, 1u);
}

int fx_interrupt_signal(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	struct sigaction action = { .sa_flags = SA_SIGINFO }, old;

	pthread_mutex_lock(&once);
	action.sa_sigaction = on_signal;
	sigfillset(&action.sa_mask);
	for (int s = SIGRTMAX; s > SIGRTMIN && !claimed; s--) {
		if (sigaction(s, NULL, &old) == 0 &&
		    !(old.sa_flags & SA_SIGINFO) &&
		    old.sa_handler == SIG_DFL &&
		    sigaction(s, &action, NULL) == 0)
			claimed = s;
	}
	pthread_mutex_unlock(&once);
	return claimed;
}

void fx_interrupt_self(struct fx_interrupt *interrupt)
{
	self = interrupt;
}

void fx_interrupt_send(struct fx_interrupt *interrupt, pid_t tid)
{
	fx_store_relaxed(&interrupt->wanted, 1u);
	/* The queue of signals can be full: then nothing will arrive. */
	if (fx_arch_syscall(SYS_tgkill, getpid(), tid, claimed, 0, 0, 0))
		fx_store_relaxed(&interrupt->arrived, 1u);
}

void fx_interrupt_settle(struct fx_interrupt *interrupt)
{
	struct timespec now = { 0, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, claimed);
	/* The application may have blocked it: then it is pending. */
	while (!fx_load_relaxed(&interrupt->arrived) &&
	       fx_arch_syscall(SYS_rt_sigtimedwait, (long)&set, 0, (long)&now,
			       _NSIG / 8, 0, 0) != claimed)
		;
	fx_store_relaxed(&interrupt->arrived, 0u);
	fx_store_relaxed(&interrupt->wanted, 0u);
}
