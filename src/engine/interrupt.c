/* SPDX-License-Identifier: MIT */
/*
 * The signal that interrupts a system call, and its handler. It carries whose
 * it is: of SIGCANCEL, the C library's own are told apart by si_code.
 */
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

static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
static int claimed;
static bool adopted;

static void arrive(void *ucontext)
{
	if (!self)
		return;
	if (fx_load_relaxed(&self->wanted))
		fx_arch_cancel_entry(ucontext);
	fx_store_relaxed(&self->arrived, 1u);
}

static void on_signal(int signal, siginfo_t *info, void *ucontext)
{
	(void)signal;
	(void)info;
	arrive(ucontext);
}

bool fx_interrupt_handle(const siginfo_t *info, void *ucontext)
{
	if (info->si_code != SI_QUEUE || info->si_pid != getpid() ||
	    info->si_value.sival_ptr != (void *)&claimed)
		return false;
	arrive(ucontext);
	return true;
}

int fx_interrupt_adopt(int signo)
{
	bool other;

	pthread_mutex_lock(&once);
	other = claimed && claimed != signo;
	if (!other) {
		claimed = signo;
		adopted = true;
	}
	pthread_mutex_unlock(&once);
	return other ? -EBUSY : 0;
}

int fx_interrupt_signal(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, old;

	pthread_mutex_lock(&once);
	action.sa_sigaction = on_signal;
	sigfillset(&action.sa_mask);
	for (int s = SIGRTMAX; s > SIGRTMIN && !claimed; s--) {
		if (sigaction(s, NULL, &old) == 0 &&
		    !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL &&
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

static long send_marked(pid_t tid)
{
	siginfo_t info = { .si_signo = claimed, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = &claimed;
	return fx_arch_syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, claimed,
			       (long)&info, 0, 0);
}

void fx_interrupt_send(struct fx_interrupt *interrupt, pid_t tid)
{
	fx_store_relaxed(&interrupt->wanted, 1u);
	/* The queue of signals can be full: then nothing will arrive. */
	if (adopted ? send_marked(tid) :
		      fx_arch_syscall(SYS_tgkill, getpid(), tid, claimed, 0, 0,
				      0))
		fx_store_relaxed(&interrupt->arrived, 1u);
}

void fx_interrupt_settle(struct fx_interrupt *interrupt)
{
	/* The kernel's set: the C library's functions refuse 32 and 33. */
	uint64_t set = UINT64_C(1) << (claimed - 1), before;
	bool asked = false;

	/*
	 * The application may have blocked it: then it is pending. Not fetched
	 * with sigtimedwait: that could be one of somebody else's.
	 */
	while (!fx_load_relaxed(&interrupt->arrived)) {
		fx_arch_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&set,
				asked ? 0 : (long)&before, sizeof(set), 0, 0);
		asked = true;
	}
	if (asked && before & set)
		fx_arch_syscall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&set, 0,
				sizeof(set), 0, 0);
	fx_store_relaxed(&interrupt->arrived, 0u);
	fx_store_relaxed(&interrupt->wanted, 0u);
}
