/* SPDX-License-Identifier: MIT */
/* The wrappers of signal handlers; see threads/relay.h. */
#include "threads/relay.h"

#include "arch/arch.h"
#include "base/futex.h"
#include "call/seen.h"
#include "engine/interrupt.h"
#include "threads/alternate.h"
#include "threads/fault.h"
#include "threads/mask.h"
#include "threads/thread.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define NR_SIGNALS 65

/* As the kernel has it. */
struct kernel_action {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* Key: A anybody, atomically; L written under the lock. */
static struct {
	struct fx_lock lock;
	uint32_t on; /* A */
	struct {
		void *handler; /* L; A to read */
		int flags; /* L; A to read */
	} user[NR_SIGNALS];
	struct kernel_action libc_cancel, libc_setxid;
} relay;

static uint64_t *mask_of(ucontext_t *context)
{
	return (uint64_t *)&context->uc_sigmask;
}

static pid_t own_pid(void)
{
	return (pid_t)fx_arch_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static void on_signal(int signal, siginfo_t *info, void *context);

/* The kernel has set it to default already; this delivery was not the one. */
static void install_once_more(int signal)
{
	struct sigaction action;
	int flags = fx_load_relaxed(&relay.user[signal].flags);

	if (!(flags & (int)SA_RESETHAND) || sigaction(signal, NULL, &action) ||
	    action.sa_handler != SIG_DFL)
		return;
	action.sa_sigaction = on_signal;
	action.sa_flags = flags | SA_SIGINFO;
	sigaction(signal, &action, NULL);
}

/* To the thread's own kernel thread, where the kernel has its mask. */
static void send_home(const struct fx_thread *me, int signal, siginfo_t *info)
{
	install_once_more(signal);
	if (fx_arch_syscall(SYS_rt_tgsigqueueinfo, own_pid(), me->tid, signal,
			    (long)info, 0, 0))
		fx_arch_syscall(SYS_tgkill, own_pid(), me->tid, signal, 0, 0,
				0);
}

/*
 * Keep it pending on this kernel thread until the thread can take it; all
 * signals are blocked. On a kernel thread whose thread is away: no thread-local
 * memory of C is touched.
 */
static void keep(struct fx_thread *me, int signal, siginfo_t *info,
		 ucontext_t *context)
{
	send_home(me, signal, info);
	*mask_of(context) = FX_MASK_ALL;
}

static void note_handler(struct fx_thread *me, const ucontext_t *context,
			 uintptr_t frame)
{
	/* Not that of a carrier, nor one that disarmed itself. */
	if (me->has_alternate && !me->task.carrier &&
	    !(context->uc_stack.ss_flags & SS_DISABLE))
		me->alternate = context->uc_stack;
	if (me->at_work)
		fx_thread_at_work(me, fx_arch_interrupted_sp(context));
	if (!me->at_work++)
		me->handler_frame = frame;
}

static void call_handler(struct fx_thread *me, int signal, siginfo_t *info,
			 void *context)
{
	void *handler = fx_load_acquire(&relay.user[signal].handler);
	int flags = fx_load_relaxed(&relay.user[signal].flags);

	if (fx_watched() && me)
		fx_seen_signal(signal, me->tid, info);
	if (me) {
		note_handler(me, context,
			     (uintptr_t)__builtin_frame_address(0));
		me->handlers++;
		me->no_restart += !(flags & SA_RESTART);
	}
	if (flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))handler)(signal, info,
							      context);
	else
		((void (*)(int))handler)(signal);
	if (me && me->at_work)
		me->at_work--;
}

/*
 * The C library's handler of 33 aborts the process if credentials would differ
 * between threads; nothing can be kept for later there.
 */
static bool aborts(const struct fx_thread *me, int signal)
{
	return signal == SIGABRT && fx_unlikely(me->in_setxid);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	struct fx_thread *me = fx_thread_self();
	bool away = fx_thread_parking(&me);

	if (me && aborts(me, signal)) {
		call_handler(NULL, signal, info, context);
		return;
	}
	if (away && me) {
		fx_mask_set(FX_MASK_ALL);
		keep(me, signal, info, context);
		fx_interrupt_outside(&me->task, FX_PENDING_SIGNAL,
				     FX_SIGNAL_CANCEL);
		return;
	}
	/* Carriers block all but faults, which anybody can send. */
	if (me && me->task.carrier && !fx_fault_is(signal, info)) {
		send_home(me, signal, info);
		return;
	}
	if (me && me->inside && !fx_fault_is(signal, info)) {
		/* Before the mask is noted: a second signal would note its own
		 * over this one's, and this one would stay blocked. */
		fx_mask_set(FX_MASK_ALL);
		me->mask = *mask_of(context);
		keep(me, signal, info, context);
		fx_interrupt_outside(&me->task, FX_PENDING_SIGNAL, 0);
		return;
	}
	if (me && me->task.carrier && !me->inside && !fx_task_busy(&me->task)) {
		install_once_more(signal);
		fx_fault_go_home(me, signal, info, context);
		return;
	}
	call_handler(me, signal, info, context);
}

/* The thread's own code on a carrier was interrupted by fx_interrupt_outside(). */
static void interrupted(struct fx_thread *me, ucontext_t *context)
{
	const uint64_t own = 1ull << (FX_SIGNAL_CANCEL - 1);
	uint32_t pending = fx_load_relaxed(&me->task.pending);
	bool cancel = fx_thread_canceled(me) &&
		      (me->cancel_async || fx_load_relaxed(&me->cancel_sent));

	if (me->inside || fx_task_busy(&me->task) ||
	    !(pending & (FX_PENDING_SIGNAL | FX_PENDING_HOME) || cancel))
		return;
	/*
	 * This frame is returned from at home, with the thread's own mask; then
	 * the kernel delivers what was kept, and nothing lies on a small stack
	 * below the handlers. The carrier goes on with others meanwhile, and is
	 * to be interrupted again; whatever comes in between returns at once.
	 */
	*mask_of(context) = me->mask;
	context->uc_stack = fx_alternate_of(me);
	fx_thread_enter(me);
	fx_arch_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&own, 0,
			sizeof(own), 0, 0);
	fx_thread_home(me, FX_HOME_SIGNAL);
	fx_task_asked(&me->task, FX_PENDING_SIGNAL | FX_PENDING_HOME);
	fx_store_relaxed(&me->inside, me->inside - 1);
	/* To its handler, which knows whether this is the place. */
	if (fx_exchange(&me->cancel_sent, 0u))
		fx_arch_syscall(SYS_tgkill, own_pid(), me->tid,
				FX_SIGNAL_CANCEL, 0, 0, 0);
	if (me->cancel_async)
		fx_thread_cancel_point(me);
}

/*
 * On the kernel thread of one that is away. The C library sends this signal
 * only to a thread that may be canceled anywhere: because it asked for that,
 * or since it is in a blocking call of the C library's own (stdio's write),
 * which it will not leave before the handler has run.
 */
static void called_home(struct fx_thread *me, const siginfo_t *info)
{
	uint32_t what = FX_PENDING_HOME;

	if (info->si_code == SI_TKILL) {
		fx_store_relaxed(&me->cancel_sent, 1u);
		what = FX_PENDING_CANCEL;
	}
	fx_interrupt_outside(&me->task, what, FX_SIGNAL_CANCEL);
}

void fx_relay_call_home(const struct fx_thread *t)
{
	siginfo_t info = { .si_signo = FX_SIGNAL_CANCEL, .si_code = SI_QUEUE };

	fx_arch_syscall(SYS_rt_tgsigqueueinfo, own_pid(), t->tid,
			FX_SIGNAL_CANCEL, (long)&info, 0, 0);
}

static void on_cancel(int signal, siginfo_t *info, void *context)
{
	struct fx_thread *me = fx_thread_self();

	if (fx_thread_parking(&me)) {
		if (me)
			called_home(me, info);
		return;
	}
	if (fx_interrupt_handle(info, context))
		return;
	if (me && me->task.carrier) {
		interrupted(me, context);
		return;
	}
	/* Not one of ours that came late. */
	if (info->si_code != SI_TKILL)
		return;
	if (me && me->inside)
		fx_interrupt_outside(&me->task, FX_PENDING_CANCEL, 0);
	else
		relay.libc_cancel.handler(signal, info, context);
}

/*
 * If the handler aborts, SIGABRT is for the application's own, which finds it
 * as it is in threads of its own: abort(3) of glibc 2.41 unblocks nothing.
 */
static void let_it_abort(void)
{
	const uint64_t aborts = 1ull << (SIGABRT - 1);

	fx_arch_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&aborts, 0,
			sizeof(aborts), 0, 0);
}

static void on_setxid(int signal, siginfo_t *info, void *context)
{
	struct fx_thread *me = fx_thread_self();
	uint64_t own = me && !fx_thread_parking(&me) ?
			       fx_carrier_thread_pointer(&me->task) :
			       0;

	if (!own) {
		if (me)
			me->in_setxid++;
		else
			let_it_abort();
		relay.libc_setxid.handler(signal, info, context);
		if (me)
			me->in_setxid--;
		return;
	}
	fx_arch_set_thread_pointer(own);
	let_it_abort();
	relay.libc_setxid.handler(signal, info, context);
	fx_arch_set_thread_pointer(me->task.context.tls);
}

static int raw_action(int signal, const struct kernel_action *action,
		      struct kernel_action *old)
{
	return (int)fx_arch_syscall(SYS_rt_sigaction, signal, (long)action,
				    (long)old, sizeof(uint64_t), 0, 0);
}

static int wrap_raw(int signal, struct kernel_action *libc,
		    void (*handler)(int, siginfo_t *, void *))
{
	struct kernel_action action;
	int bad = raw_action(signal, NULL, &action);

	if (bad || action.handler == handler)
		return bad;
	*libc = action;
	action.handler = handler;
	action.flags |= SA_SIGINFO;
	return raw_action(signal, &action, NULL);
}

static void *wait_for_cancel(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

/* The C library installs its handler when it first needs it. */
static int make_libc_install(void)
{
	pthread_t thread;
	int bad = pthread_create(&thread, NULL, wait_for_cancel, NULL);

	if (bad)
		return -bad;
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	return 0;
}

int fx_relay_start(void)
{
	struct sigaction action;
	int bad = make_libc_install();

	if (!bad)
		bad = wrap_raw(FX_SIGNAL_CANCEL, &relay.libc_cancel, on_cancel);
	if (!bad)
		bad = wrap_raw(FX_SIGNAL_SETXID, &relay.libc_setxid, on_setxid);
	if (bad)
		return bad;
	fx_store_release(&relay.on, 1u);
	for (int s = 1; s < NR_SIGNALS; s++)
		if (s != FX_SIGNAL_CANCEL && s != FX_SIGNAL_SETXID &&
		    sigaction(s, NULL, &action) == 0 &&
		    action.sa_handler != SIG_DFL &&
		    action.sa_handler != SIG_IGN)
			fx_relay_action(s, &action, NULL);
	return 0;
}

static bool wrapped(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO &&
	       action->sa_sigaction == on_signal;
}

/* Under the lock. */
static int change(int signal, const struct sigaction *action,
		  struct sigaction *old)
{
	struct sigaction mine = *action;
	void *handler = relay.user[signal].handler;
	int flags = relay.user[signal].flags;

	if (mine.sa_handler != SIG_DFL && mine.sa_handler != SIG_IGN) {
		fx_store_release(&relay.user[signal].handler,
				 (void *)mine.sa_sigaction);
		fx_store_relaxed(&relay.user[signal].flags, mine.sa_flags);
		mine.sa_sigaction = on_signal;
		mine.sa_flags |= SA_SIGINFO;
	}
	if (sigaction(signal, &mine, old)) {
		relay.user[signal].handler = handler;
		relay.user[signal].flags = flags;
		return -1;
	}
	if (old && wrapped(old)) {
		old->sa_sigaction = handler;
		old->sa_flags = flags;
	}
	return 0;
}

int fx_relay_action(int signal, const struct sigaction *action,
		    struct sigaction *old)
{
	struct fx_thread *me = fx_thread_known();
	int ret;

	if (!fx_load_acquire(&relay.on) || signal <= 0 ||
	    signal >= NR_SIGNALS || !me)
		return sigaction(signal, action, old);
	fx_thread_enter(me);
	fx_lock(&relay.lock);
	if (action) {
		ret = change(signal, action, old);
	} else {
		ret = sigaction(signal, NULL, old);
		if (ret == 0 && old && wrapped(old)) {
			old->sa_sigaction = relay.user[signal].handler;
			old->sa_flags = relay.user[signal].flags;
		}
	}
	fx_unlock(&relay.lock);
	fx_thread_leave(me);
	return ret;
}

void fx_relay_after_fork(void)
{
	relay.lock.word = 0;
}
