/* SPDX-License-Identifier: MIT */
/*
 * Names of signals. Handlers are wrapped (threads/relay.h); what reads or
 * changes the mask, or takes pending signals, happens at home.
 */
#include "preload/result.h"
#include "threads/alternate.h"
#include "threads/create.h"
#include "threads/relay.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

FX_NEXT(sigaction);
FX_NEXT(pthread_sigmask);
FX_NEXT(sigpending);
FX_NEXT(sigwait);
FX_NEXT(sigwaitinfo);
FX_NEXT(sigtimedwait);
FX_NEXT(sigsuspend);
FX_NEXT(pause);
FX_NEXT(raise);
FX_NEXT(kill);
FX_NEXT(tgkill);
FX_NEXT(killpg);
FX_NEXT(sigqueue);
FX_NEXT(pthread_kill);
FX_NEXT(pthread_sigqueue);
FX_NEXT(abort);

/* No header declares them for programs of today. */
sighandler_t bsd_signal(int number, sighandler_t handler);
int __xpg_sigpause(int signal);
/* The header gives this name to the one above. */
int bsd_sigpause(int mask) __asm__("sigpause");

/* For the kernel; and a flag that is the C library's own business. */
#define MASK_SIZE 8
#define SA_RESTORER 0x04000000u

static void go_home(enum fx_home_reason reason)
	{
		struct fx_thread *me = fx_thread_away();

		if (me)
			fx_thread_home(me, reason);
	}

/* Handlers ------------------------------------------------------------------ */

static int act(int signal, const struct sigaction *action,
	       struct sigaction *old)
{
	if (!fx_load_relaxed(&fx_threads_running))
		return NEXT(sigaction)(signal, action, old);
	return fx_relay_action(signal, action, old);
}

/* As the kernel has it, and observers. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

static struct kernel_action kernel_action(const struct sigaction *action)
{
	return (struct kernel_action){
		.handler = (uint64_t)(uintptr_t)action->sa_handler,
		.flags = (uint32_t)action->sa_flags & ~SA_RESTORER,
		.mask = *(const uint64_t *)&action->sa_mask,
	};
}

/* Not in the frame of who is not watched. */
static __attribute__((cold, noinline)) int
act_seen(int signal, const struct sigaction *action, struct sigaction *old)
{
	struct kernel_action to = { 0 }, before = { 0 };
	const long args[6] = { signal, action ? (long)&to : 0,
			       old ? (long)&before : 0, MASK_SIZE };
	uint64_t begun_ns;
	int ret;

	if (action)
		to = kernel_action(action);
	begun_ns = fx_seen_enter(SYS_rt_sigaction, args);
	ret = act(signal, action, old);
	if (ret == 0 && old)
		before = kernel_action(old);
	fx_seen_leave(SYS_rt_sigaction, args, begun_ns, ret);
	return ret;
}

FX_NAME int sigaction(int signal, const struct sigaction *action,
		      struct sigaction *old)
{
	return fx_watched() ? act_seen(signal, action, old) :
			      act(signal, action, old);
}

static sighandler_t set_handler(int signal, sighandler_t handler, int flags,
				bool block)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	struct sigaction old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (block)
		sigaddset(&action.sa_mask, signal);
	return sigaction(signal, &action, &old) ? SIG_ERR : old.sa_handler;
}

/* siginterrupt(3) makes signal(2) install handlers that interrupt. */
static uint64_t interrupting;

FX_NAME sighandler_t signal(int signal, sighandler_t handler)
{
	bool rigid = signal > 0 && signal < 65 &&
		     fx_load_relaxed(&interrupting) >> (signal - 1) & 1;

	return set_handler(signal, handler, rigid ? 0 : SA_RESTART, true);
}

FX_NAME sighandler_t ssignal(int number, sighandler_t handler)
{
	return signal(number, handler);
}

FX_NAME sighandler_t bsd_signal(int number, sighandler_t handler)
{
	return signal(number, handler);
}

FX_NAME sighandler_t __sysv_signal(int signal, sighandler_t handler)
{
	return set_handler(signal, handler, (int)SA_RESETHAND | SA_NODEFER,
			   false);
}

FX_NAME sighandler_t sysv_signal(int signal, sighandler_t handler)
	__attribute__((alias("__sysv_signal")));

FX_NAME int sigignore(int signal)
{
	struct sigaction action = { .sa_handler = SIG_IGN };

	return sigaction(signal, &action, NULL);
}

FX_NAME int siginterrupt(int signal, int yes)
{
	struct sigaction action;
	uint64_t bit, old = fx_load_relaxed(&interrupting);

	if (sigaction(signal, NULL, &action))
		return -1;
	bit = 1ull << (signal - 1);
	while (!fx_cas(&interrupting, &old, yes ? old | bit : old & ~bit))
		;
	if (yes)
		action.sa_flags &= ~SA_RESTART;
	else
		action.sa_flags |= SA_RESTART;
	return sigaction(signal, &action, NULL);
}

/* Masks -------------------------------------------------------------------- */

/* What @how and @set make of it. */
static uint64_t changed(uint64_t mask, int how, const sigset_t *set)
{
	uint64_t word = *(const uint64_t *)set;

	switch (how) {
	case SIG_BLOCK:
		return mask | word;
	case SIG_UNBLOCK:
		return mask & ~word;
	default:
		return word;
	}
}

static int change_mask(int how, const sigset_t *set, sigset_t *old)
{
	/* The C library's own and those that cannot be blocked. */
	const uint64_t never = 3ull << 31 | 1ull << (SIGKILL - 1) |
			       1ull << (SIGSTOP - 1);
	struct fx_thread *me = fx_thread_away();

	if (me &&
	    (!set ||
	     ((how == SIG_BLOCK || how == SIG_UNBLOCK || how == SIG_SETMASK) &&
	      ((changed(me->mask, how, set) ^ me->mask) & ~never) == 0))) {
		if (old) {
			memset(old, 0, sizeof(*old));
			*(uint64_t *)old = me->mask;
		}
		return 0;
	}
	if (me)
		fx_thread_home(me, FX_HOME_MASK);
	return NEXT(pthread_sigmask)(how, set, old);
}

FX_NAME int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return FX_SEEN_ERROR(change_mask(how, set, old), SYS_rt_sigprocmask,
			     how, (long)set, (long)old, MASK_SIZE);
}

FX_NAME int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int bad = pthread_sigmask(how, set, old);

	if (bad)
		errno = bad;
	return bad ? -1 : 0;
}

static int change_one(int how, int signal)
{
	sigset_t set;

	sigemptyset(&set);
	if (sigaddset(&set, signal))
		return -1;
	return sigprocmask(how, &set, NULL);
}

FX_NAME int sighold(int signal)
{
	return change_one(SIG_BLOCK, signal);
}

FX_NAME int sigrelse(int signal)
{
	return change_one(SIG_UNBLOCK, signal);
}

FX_NAME sighandler_t sigset(int signal, sighandler_t handler)
{
	struct sigaction old;
	sigset_t set, before;

	sigemptyset(&set);
	if (sigaddset(&set, signal))
		return SIG_ERR;
	if (handler == SIG_HOLD) {
		if (sigprocmask(SIG_BLOCK, &set, &before) ||
		    sigaction(signal, NULL, &old))
			return SIG_ERR;
		return sigismember(&before, signal) ? SIG_HOLD : old.sa_handler;
	}
	old.sa_handler = set_handler(signal, handler, 0, false);
	if (old.sa_handler == SIG_ERR ||
	    sigprocmask(SIG_UNBLOCK, &set, &before))
		return SIG_ERR;
	return sigismember(&before, signal) ? SIG_HOLD : old.sa_handler;
}

/* The first 32 signals, as 4.2BSD had them. */
static int bsd_mask(int how, int mask, bool set)
{
	sigset_t new, old;

	memset(&new, 0, sizeof(new));
	*(uint64_t *)&new = (uint32_t)mask;
	if (sigprocmask(how, set ? &new : NULL, &old))
		return -1;
	return (int)*(uint64_t *)&old;
}

FX_NAME int sigblock(int mask)
{
	return bsd_mask(SIG_BLOCK, mask, true);
}

FX_NAME int sigsetmask(int mask)
{
	return bsd_mask(SIG_SETMASK, mask, true);
}

FX_NAME int siggetmask(void)
{
	return bsd_mask(SIG_BLOCK, 0, false);
}

/* Taking signals ----------------------------------------------------------- */

FX_NAME int sigpending(sigset_t *set)
{
	go_home(FX_HOME_MASK);
	return FX_SEEN(NEXT(sigpending)(set), SYS_rt_sigpending, (long)set,
		       MASK_SIZE);
}

FX_NAME int sigwait(const sigset_t *set, int *signal)
{
	go_home(FX_HOME_MASK);
	return FX_SEEN_AS(NEXT(sigwait)(set, signal), fx_got ? -1 : *signal,
			  SYS_rt_sigtimedwait, (long)set, 0, 0, MASK_SIZE);
}

FX_NAME int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	go_home(FX_HOME_MASK);
	return FX_SEEN(NEXT(sigwaitinfo)(set, info), SYS_rt_sigtimedwait,
		       (long)set, (long)info, 0, MASK_SIZE);
}

FX_NAME int sigtimedwait(const sigset_t *set, siginfo_t *info,
			 const struct timespec *timeout)
{
	go_home(FX_HOME_MASK);
	return FX_SEEN(NEXT(sigtimedwait)(set, info, timeout),
		       SYS_rt_sigtimedwait, (long)set, (long)info,
		       (long)timeout, MASK_SIZE);
}

FX_NAME int sigsuspend(const sigset_t *set)
{
	go_home(FX_HOME_MASK);
	return FX_SEEN(NEXT(sigsuspend)(set), SYS_rt_sigsuspend, (long)set,
		       MASK_SIZE);
}

FX_NAME int __xpg_sigpause(int signal)
{
	sigset_t set;

	if (sigprocmask(SIG_BLOCK, NULL, &set) || sigdelset(&set, signal))
		return -1;
	return sigsuspend(&set);
}

/* The old one takes a mask. */
FX_NAME int bsd_sigpause(int mask)
{
	sigset_t set;

	memset(&set, 0, sizeof(set));
	*(uint64_t *)&set = (uint32_t)mask;
	return sigsuspend(&set);
}

FX_NAME int pause(void)
{
	go_home(FX_HOME_MASK);
	return FX_SEEN(NEXT(pause)(), SYS_pause, 0);
}

/* Sending: what the caller sends itself arrives before it goes on. ------------ */

FX_NAME int raise(int signal)
{
	go_home(FX_HOME_SIGNAL);
	return FX_SEEN(NEXT(raise)(signal), SYS_tgkill, getpid(), gettid(),
		       signal);
}

FX_NAME void abort(void)
{
	go_home(FX_HOME_SIGNAL);
	NEXT(abort)();
	__builtin_unreachable();
}

static int kill_thread(pid_t process, pid_t tid, int signal)
{
	struct fx_thread *me = fx_thread_away();

	if (fx_thread_is_gone(process, tid))
		return fx_result(-ESRCH);
	if (me && me->tid == tid)
		fx_thread_home(me, FX_HOME_SIGNAL);
	return NEXT(tgkill)(process, tid, signal);
}

FX_NAME int tgkill(pid_t process, pid_t tid, int signal)
{
	return FX_SEEN(kill_thread(process, tid, signal), SYS_tgkill, process,
		       tid, signal);
}

static int kill_process(pid_t pid, int signal)
{
	if (fx_thread_is_gone(-1, pid))
		return fx_result(-ESRCH);
	if (signal && (pid <= 0 || pid == getpid()))
		go_home(FX_HOME_SIGNAL);
	return NEXT(kill)(pid, signal);
}

FX_NAME int kill(pid_t pid, int signal)
{
	return FX_SEEN(kill_process(pid, signal), SYS_kill, pid, signal);
}

FX_NAME int killpg(pid_t group, int signal)
{
	go_home(FX_HOME_SIGNAL);
	return FX_SEEN(NEXT(killpg)(group, signal), SYS_kill, -group, signal);
}

FX_NAME int sigqueue(pid_t pid, int signal, const union sigval value)
{
	if (pid == getpid())
		go_home(FX_HOME_SIGNAL);
	return NEXT(sigqueue)(pid, signal, value);
}

/* What the kernel calls it; 0: it has ended. */
static long tid_of(pthread_t thread)
{
	const struct fx_thread *t = fx_thread_self();

	if (thread == pthread_self())
		return t ? t->tid : gettid();
	t = fx_load_relaxed(&fx_threads_running) ? fx_thread_of(thread) : NULL;
	return t ? fx_load_relaxed(&t->tid) : 0;
}

static int send_to(pthread_t thread, int signal)
{
	int bad;

	if (thread == pthread_self())
		go_home(FX_HOME_SIGNAL);
	else if (fx_thread_wear(thread))
		return 0;
	bad = NEXT(pthread_kill)(thread, signal);
	if (!bad && signal && thread != pthread_self())
		fx_thread_hurry(thread);
	return bad;
}

FX_NAME int pthread_kill(pthread_t thread, int signal)
{
	const long tid = fx_watched() ? tid_of(thread) : 0;

	return FX_SEEN_ERROR(send_to(thread, signal), SYS_tgkill, getpid(), tid,
			     signal);
}

FX_NAME int pthread_sigqueue(pthread_t thread, int signal,
			     const union sigval value)
{
	int bad;

	if (thread == pthread_self())
		go_home(FX_HOME_SIGNAL);
	else if (fx_thread_wear(thread))
		return ESRCH;
	bad = NEXT(pthread_sigqueue)(thread, signal, value);
	if (!bad && thread != pthread_self())
		fx_thread_hurry(thread);
	return bad;
}

FX_NAME int sigaltstack(const stack_t *stack, stack_t *old)
{
	return FX_SEEN(fx_alternate_change(stack, old), SYS_sigaltstack,
		       (long)stack, (long)old);
}
