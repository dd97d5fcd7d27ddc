/* SPDX-License-Identifier: MIT */
/*
 * A user thread with what POSIX says of it. The kernel and the C library stay
 * the truth: thread id, signal mask, pending signals, robust list, cancelation
 * state are those of the task's own kernel thread and its TCB. What depends on
 * them goes home, does it there by the C library's own function, and comes
 * back. Here is only what carriers need to know.
 *
 *	places:   lent (on a carrier) <----> home, passing <----> home, staying
 *
 * A thread at home in passing is lent again at its next blocking call; one
 * that stays is plain NPTL, and all functions of this layer say so by NULL
 * from fx_thread_lent(): the caller makes the C library's call.
 *
 * Key: T the thread itself; A anybody, atomically; L under the list's lock;
 * I constant after creation.
 */
#ifndef FX_THREADS_THREAD_H
#define FX_THREADS_THREAD_H

#include "arch/arch.h"
#include "sched/sched.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>

/* Why a thread went home, for counters; and why it stays. */
enum fx_home_reason {
	FX_HOME_NONE,
	FX_HOME_SIGNAL, /* a handler is to run */
	FX_HOME_CANCEL, /* it is to end */
	FX_HOME_EXIT, /* it ends */
	FX_HOME_MASK, /* signal mask, sigwait and its like */
	FX_HOME_LOCK, /* robust, priority or process-shared object */
	FX_HOME_PROCESS, /* fork, exec, spawn */
	FX_HOME_IDENTITY, /* credentials, scheduling, namespaces */
	FX_HOME_CALL, /* a call that only the own kernel thread can make */
	FX_HOME_MAIN, /* stays: the first thread */
	FX_HOME_STACK, /* sets an alternate stack; stays: a stack of its own */
	FX_HOME_FOREIGN, /* stays: not made by pthread_create() */
	FX_HOME_OFTEN, /* stays: went home too often */
	FX_NR_HOME_REASONS
};

struct fx_thread {
	struct fx_task task; /* first */

	pthread_t self; /* I */
	pid_t tid; /* I: of the own kernel thread */
	uint32_t inside; /* T: in code that no handler may interrupt */
	uint32_t at_work; /* T: handlers running; no lending meanwhile */
	uintptr_t handler_frame; /* T: of the outermost of them */
	stack_t alternate; /* T: signal stack; see threads/alternate.h */
	bool has_alternate; /* T: perhaps; `alternate` is true while away */
	bool first_alternate; /* T: it is the one that it began with */
	bool home_alternate; /* T: then, that of its home is the parking stack */
	uint8_t stays; /* T: enum fx_home_reason: never lent again */
	uint8_t cancel_disabled; /* T: as the C library has it */
	uint8_t cancel_async; /* T: the same */
	uint8_t exiting; /* T: unwinding or past its start routine */
	uint32_t in_setxid; /* own kernel thread: see threads/relay.c */
	uint32_t cancel_sent; /* A: the C library wants its handler to run */
	uint32_t handlers; /* T: handlers that have run */
	uint32_t no_restart; /* T: of them, without SA_RESTART */
	uint32_t held; /* T: locks that keep it at home */
	pthread_mutex_t *wants; /* R: woken, it goes on to lock this one */
	bool given; /* R: it has it already; see threads/cond.c */
	bool vforked; /* T: this is the child of a vfork() in its memory */
	uint64_t mask; /* T: signal mask, valid while lent */

	uint32_t often; /* T: goes home in the present period */
	uint32_t often_ms; /* T: when that began */

	/* What it runs; see threads/create.c. */
	void *(*start)(void *); /* T */
	void *arg; /* T */
	void *result; /* T, then the joiner */
	uint64_t first_mask; /* creator, then T */
	bool has_mask; /* creator: which was asked for */
	bool by_carrier; /* creator: what it inherited is a carrier's */
	uint32_t life; /* under the bucket's lock: enum fx_life */
	uint32_t published; /* futex: see threads/create.c */
	pthread_t *out; /* creator's: of pthread_create() */
	uint32_t holders; /* A: of the record: itself, its creator */
	bool needs; /* creator, then T: carriers; see fx_sched_need() */
	struct fx_stack *own; /* I: see threads/stacks.h; or NULL */
	size_t stack_size, guard_size; /* I: as asked for */
	bool counted; /* creator, then T: see threads/alive.h */
	bool late; /* T: known again past its end; see fx_thread_new() */
	bool worn; /* T: changed in a way that a new thread would see */
	uint32_t taken; /* A: while idle: enum fx_taken */

	uint32_t index; /* I: of this and its parking stack */
	struct fx_thread *next; /* L: free or idle */
	struct fx_thread *all; /* L: every one ever made */
};

/* What the process has counted, beside goings home. */
#define FX_THREAD_COUNTERS(x) x(created) x(recycled) x(ended)

struct fx_thread_counters {
	uint64_t homes[FX_NR_HOME_REASONS]; /* A */
	FX_THREAD_COUNTERS(FX_COUNTER_FIELD) /* A */
};

extern struct fx_thread_counters fx_thread_counters;
extern const char *const fx_home_reason_names[FX_NR_HOME_REASONS];

/* Can tasks be lent at all? Set by fx_threads_start(). */
extern uint32_t fx_threads_running;

/* The calling thread, or NULL: not known to this layer (yet). */
static inline struct fx_thread *fx_thread_self(void)
{
	return (struct fx_thread *)fx_task_self;
}

struct fx_thread *fx_thread_return(struct fx_thread *me);

/**
 * fx_thread_lent - the calling thread, on a carrier
 *
 * One that is at home in passing is lent first.
 *
 * Return: NULL if it is at home to stay: make the plain call.
 */
static inline struct fx_thread *fx_thread_lent(void)
{
	struct fx_thread *me = fx_thread_self();

	if (fx_unlikely(!me))
		return NULL;
	if (fx_likely(me->task.carrier))
		return me;
	return fx_thread_return(me);
}

/* On a carrier right now; nothing is changed. */
static inline struct fx_thread *fx_thread_away(void)
{
	struct fx_thread *me = fx_thread_self();

	return fx_unlikely(me && me->task.carrier) ? me : NULL;
}

/**
 * fx_thread_known - the calling thread, made known if it was not
 *
 * Threads that the C library made for itself (timers, asynchronous I/O), and
 * the first one, become tasks that stay at home.
 *
 * Return: NULL for want of memory.
 */
struct fx_thread *fx_thread_known_slow(void);

static inline struct fx_thread *fx_thread_known(void)
{
	struct fx_thread *me = fx_thread_self();

	return fx_likely(me) ? me : fx_thread_known_slow();
}

/*
 * Between these no handler of the application's runs in this thread, and it
 * is not taken home: for short sections, and from arming a ticket until its
 * parking is over. fx_thread_leave() is where what came meanwhile is done.
 */
static inline void fx_thread_enter(struct fx_thread *me)
{
	fx_store_relaxed(&me->inside, me->inside + 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/**
 * fx_thread_attend - do what was asked: run handlers, end if canceled
 * @me: outside, at a point where a handler may run
 *
 * Does not return if the thread was canceled and @cancel allows it. Home in
 * passing afterwards if there was anything.
 */
void fx_thread_attend(struct fx_thread *me, bool cancel);

static inline void fx_thread_leave(struct fx_thread *me)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	fx_store_relaxed(&me->inside, me->inside - 1);
	if (fx_unlikely(fx_load_relaxed(&me->task.pending)) && !me->inside)
		fx_thread_attend(me, me->cancel_async);
}

/* Is the thread to end at its next cancelation point? */
static inline bool fx_thread_canceled(const struct fx_thread *me)
{
	return fx_unlikely(fx_load_relaxed(&me->task.pending) &
			   FX_PENDING_CANCEL) &&
	       !me->cancel_disabled && !me->exiting;
}

/* A cancelation point. */
static inline void fx_thread_cancel_point(struct fx_thread *me)
{
	if (fx_thread_canceled(me))
		fx_thread_attend(me, true);
}

/* What a parking of this thread listens to. */
static inline uint32_t fx_thread_listens(const struct fx_thread *me,
					 bool cancel)
{
	return FX_PENDING_SIGNAL | FX_PENDING_HOME |
	       ((cancel || me->cancel_async) && !me->cancel_disabled &&
				!me->exiting ?
			FX_PENDING_CANCEL :
			0);
}

/**
 * fx_thread_home - go home, in passing
 *
 * Context: not inside. No-op at home.
 */
void fx_thread_home(struct fx_thread *me, enum fx_home_reason reason);

/* The same for good. */
void fx_thread_stay(struct fx_thread *me, enum fx_home_reason reason);

/* At home: do handlers run, above @sp? One left by a jump does not count. */
bool fx_thread_at_work(struct fx_thread *me, uintptr_t sp);

/* Of this process; by its number, which may be another's later. */
static inline bool fx_thread_number_gone(pid_t tid)
{
	return fx_arch_syscall(SYS_tgkill,
			       fx_arch_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0),
			       tid, 0, 0, 0, 0) == -ESRCH;
}

/*
 * threads/slab.c: memory that is never given back, only reused; also that of
 * threads which became known past their end, when nothing is left that would
 * say that they are gone (threads/alive.c).
 */
struct fx_thread *fx_thread_new(void);
void fx_thread_free(struct fx_thread *thread);
/* NULL if there is none for it: then it must stay at home. */
void *fx_thread_parking_top(const struct fx_thread *thread);
/* The same as the kernel is told of it. Of one that has one. */
stack_t fx_thread_parking_stack(const struct fx_thread *thread);
/* Is this address on a parking stack? Signal handlers. */
bool fx_thread_parking(const void *address);
void fx_threads_walk(void (*see)(struct fx_thread *t, void *arg), void *arg);
/* Where the first of them is, for observers of other processes. */
struct fx_thread *const *fx_threads_first(void);
void fx_slab_after_fork(void);

#endif /* FX_THREADS_THREAD_H */
