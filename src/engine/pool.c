/* SPDX-License-Identifier: MIT */
/* Syscall threads that sleep until there is a blocking call to carry out. */
#include "engine/pool.h"

#include "arch/arch.h"
#include "base/clock.h"
#include "base/thread.h"
#include "engine/attempt.h"
#include "engine/interrupt.h"
#include "engine/run.h"
#include "engine/splice.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (128 * 1024)

struct fx_worker {
	struct fx_runner runner; /* first: the runner's functions cast back */
	struct fx_pool *pool;
	struct fx_worker *next; /* all workers */
	struct fx_worker *next_idle;
	pthread_t thread;
	pid_t tid;
	struct fx_worker_view view;
	uint32_t wake; /* futex: 1 when taken from the idle stack */
	uint32_t calling; /* under the lock: entry + 1 inside a call */
	struct fx_interrupt interrupt; /* sent under the lock */
};

/* Changed under the lock, looked at without it. */
static void count(uint32_t *n, int by)
{
	fx_store_relaxed(n, *n + (uint32_t)by);
}

/* Runner functions of a syscall thread ----------------------------------- */

static void worker_complete(struct fx_runner *runner, uint32_t index,
			    int64_t ret)
{
	struct fx_worker *w = (struct fx_worker *)runner;

	fx_set_complete(runner->set, &w->view, index, ret);
}

/*
 * A signal mask among the arguments would be this thread's: none of the
 * application's signals comes here, and the one that interrupts must.
 */
static void drop_mask(unsigned int nr, uint64_t *args)
{
	switch (nr) {
	case SYS_ppoll:
		args[3] = 0;
		break;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		args[4] = 0;
		break;
	case SYS_pselect6:
	case SYS_io_pgetevents:
		args[5] = 0;
		break;
	default:
		break;
	}
}

/*
 * EINTR without an interrupt is the C library's own signal (setuid in another
 * thread): the poster's thread would have gone on.
 */
static int64_t interruptible(void *arg, unsigned int nr, const uint64_t *args)
{
	struct fx_worker *w = arg;
	int64_t ret;

	do
		ret = fx_arch_syscall_cancellable(&w->interrupt.wanted, nr,
						  args);
	while (ret == -EINTR && !fx_load_relaxed(&w->interrupt.wanted));
	return ret;
}

static int64_t worker_block(struct fx_runner *runner, uint32_t index,
			    const struct flexsc_entry *call)
{
	struct fx_worker *w = (struct fx_worker *)runner;
	struct fx_pool *pool = w->pool;
	uint64_t args[6] = { 0 };
	bool interrupted;
	int64_t ret;

	for (unsigned i = 0; i < call->nr_args; i++)
		args[i] = call->args[i];
	drop_mask(call->nr, args);
	fx_lock(&pool->lock);
	w->calling = index + 1;
	interrupted = fx_set_cancel_wanted(runner->set, index);
	count(&pool->nr_blocked, 1);
	fx_unlock(&pool->lock);

	if (interrupted)
		ret = -ECANCELED;
	else if (call->nr == SYS_splice && fx_splice_locks(call))
		ret = fx_splice_calls(args, interruptible, w);
	else
		ret = interruptible(w, call->nr, args);

	fx_lock(&pool->lock);
	w->calling = 0;
	count(&pool->nr_blocked, -1);
	interrupted = fx_load_relaxed(&w->interrupt.wanted);
	fx_unlock(&pool->lock);
	fx_call_settle(call, ret);
	if (interrupted) {
		fx_interrupt_settle(&w->interrupt);
		if (ret == -EINTR)
			ret = -ECANCELED;
	}
	return ret;
}

/* Threads ---------------------------------------------------------------- */

static uint32_t next_entry(struct fx_pool *pool)
{
	uint32_t index = pool->first - 1;

	pool->first = pool->set->beside[index].next;
	if (!pool->first)
		pool->last = 0;
	count(&pool->nr_queued, -1);
	return index;
}

/* Under the lock: nobody wakes it any more, and it counts no more. */
static void leave(struct fx_worker *w)
{
	struct fx_pool *pool = w->pool;
	struct fx_worker **p;

	for (p = &pool->idle; *p != w; p = &(*p)->next_idle)
		;
	*p = w->next_idle;
	for (p = &pool->workers; *p != w; p = &(*p)->next)
		;
	*p = w->next;
	w->next = pool->ended;
	pool->ended = w;
	count(&pool->nr_threads, -1);
	fx_count_add(pool->counters, threads, -1);
}

/* Under the lock; comes back under it. Return: false if it is to end. */
static bool sleep_until_woken(struct fx_worker *w)
{
	struct fx_pool *pool = w->pool;
	uint64_t end = fx_now_ns() + FX_POOL_IDLE_MS * FX_NS_PER_MS, now;

	fx_store_relaxed(&w->wake, 0u);
	w->next_idle = pool->idle;
	pool->idle = w;
	for (;;) {
		fx_unlock(&pool->lock);
		while (!fx_load_acquire(&w->wake)) {
			now = end == FX_NEVER ? 0 : fx_now_ns();
			if (now >= end)
				break;
			fx_futex_wait(&w->wake, 0,
				      end == FX_NEVER ? FX_NEVER : end - now);
		}
		fx_lock(&pool->lock);
		if (fx_load_relaxed(&w->wake))
			return true;
		if (pool->nr_threads > 1) {
			leave(w);
			return false;
		}
		end = FX_NEVER; /* the last one stays */
	}
}

/* Their last step was, or is, to release the lock. */
static void join(struct fx_worker *list)
{
	struct fx_worker *w;

	while ((w = list)) {
		list = w->next;
		pthread_join(w->thread, NULL);
		free(w);
	}
}

static void *worker_main(void *arg)
{
	struct fx_worker *w = arg;
	struct fx_pool *pool = w->pool;

	fx_interrupt_self(&w->interrupt);
	fx_thread_spread();
	pthread_setname_np(pthread_self(), "flexsc-syscall");
	fx_lock(&pool->lock);
	w->tid = (pid_t)syscall(SYS_gettid);
	while (!pool->stop) {
		if (!pool->first) {
			if (sleep_until_woken(w))
				continue;
			break;
		}
		uint32_t index = next_entry(pool);

		fx_unlock(&pool->lock);
		fx_run(&w->runner, index);
		fx_lock(&pool->lock);
		count(&pool->nr_pending, -1);
	}
	fx_unlock(&pool->lock);
	return NULL;
}

/* Every signal but the C library's own and those that faults raise. */
static void thread_mask(int interrupt, sigset_t *mask)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
				      SIGSYS };

	sigfillset(mask); /* the C library leaves 32 and 33 out */
	for (unsigned i = 0; i < FX_ARRAY_SIZE(faults); i++)
		sigdelset(mask, faults[i]);
	if (interrupt)
		sigdelset(mask, interrupt);
}

void fx_pool_mask(sigset_t *before)
{
	sigset_t mask;

	thread_mask(fx_interrupt_signal(), &mask);
	pthread_sigmask(SIG_SETMASK, &mask, before);
}

/* Under the lock. What fails may set errno. */
static bool add_thread(struct fx_pool *pool)
{
	struct fx_worker *w = calloc(1, sizeof(*w));
	pthread_attr_t attr;
	sigset_t mask, before;
	int bad;

	if (!w)
		return false;
	w->runner = *pool->model;
	w->runner.owner = false;
	w->runner.guard = NULL;
	w->runner.complete = worker_complete;
	w->runner.block = worker_block;
	w->pool = pool;
	fx_worker_view_init(&w->view);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* From here on the owner is not alone. */
	if (!w->runner.park->shared)
		w->runner.park->shared = true;
	thread_mask(pool->signal, &mask);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	bad = pthread_create(&w->thread, &attr, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (bad) {
		free(w);
		return false;
	}
	w->next = pool->workers;
	pool->workers = w;
	count(&pool->nr_threads, 1);
	fx_count(pool->counters, threads);
	if (pool->nr_threads > pool->counters->threads_most)
		fx_count(pool->counters, threads_most);
	return true;
}

void fx_pool_init(struct fx_pool *pool, struct fx_set *set,
		  const struct fx_runner *model,
		  struct flexsc_counters *counters, uint32_t max_threads)
{
	*pool = (struct fx_pool){
		.set = set,
		.model = model,
		.counters = counters,
		.max_threads = max_threads ? max_threads : FX_POOL_THREADS,
	};
}

void fx_pool_fini(struct fx_pool *pool)
{
	struct fx_worker *w;

	fx_lock(&pool->lock);
	pool->stop = true;
	for (w = pool->idle; w; w = w->next_idle) {
		fx_store_release(&w->wake, 1u);
		fx_futex_wake(&w->wake, 1);
	}
	pool->idle = NULL;
	fx_unlock(&pool->lock);
	/* Nobody leaves any more. */
	join(pool->workers);
	join(pool->ended);
}

static bool unqueue(struct fx_pool *pool, uint32_t index)
{
	uint32_t before = 0;

	for (uint32_t i = pool->first; i; i = pool->set->beside[i - 1].next) {
		if (i - 1 != index) {
			before = i;
			continue;
		}
		if (before)
			pool->set->beside[before - 1].next =
				pool->set->beside[index].next;
		else
			pool->first = pool->set->beside[index].next;
		if (pool->last == i)
			pool->last = before;
		count(&pool->nr_queued, -1);
		count(&pool->nr_pending, -1);
		return true;
	}
	return false;
}

void fx_pool_push(struct fx_runner *runner, uint32_t index)
{
	struct fx_pool *pool = runner->pool;

	fx_park_hold(runner->park, index);
	if (!pool->instead || !pool->instead(pool, index))
		fx_pool_queue(runner, index);
}

/* Nobody is there who could make it, and nobody would ever look for it. */
static void give_up(struct fx_runner *runner, uint32_t index)
{
	const struct flexsc_entry *call = fx_set_entry(runner->set, index);
	bool begun = call->ret > 0 && call->nr != SYS_connect;

	fx_run_over(runner, index, begun ? call->ret : -ENOMEM);
}

void fx_pool_queue(struct fx_runner *runner, uint32_t index)
{
	struct fx_pool *pool = runner->pool;
	struct fx_worker *w = NULL, *ended;
	bool stranded = false;
	int saved = errno;

	fx_count(pool->counters, handed_over);
	fx_lock(&pool->lock);
	ended = pool->ended;
	pool->ended = NULL;
	if (!pool->signal)
		pool->signal = fx_interrupt_signal();
	pool->set->beside[index].next = 0;
	if (pool->last)
		pool->set->beside[pool->last - 1].next = index + 1;
	else
		pool->first = index + 1;
	pool->last = index + 1;
	count(&pool->nr_queued, 1);
	count(&pool->nr_pending, 1);
	if (pool->idle) {
		w = pool->idle;
		pool->idle = w->next_idle;
		fx_store_release(&w->wake, 1u);
	} else if (pool->nr_threads < pool->max_threads) {
		stranded = !add_thread(pool) && !pool->nr_threads &&
			   unqueue(pool, index);
		errno = saved;
	}
	fx_unlock(&pool->lock);
	if (fx_unlikely(stranded))
		give_up(runner, index);
	if (w)
		fx_futex_wake(&w->wake, 1);
	if (fx_unlikely(ended))
		join(ended);
}

bool fx_pool_cancel(struct fx_pool *pool, uint32_t index)
{
	bool queued;

	fx_lock(&pool->lock);
	queued = unqueue(pool, index);
	for (struct fx_worker *w = pool->workers; w && !queued; w = w->next) {
		if (w->calling != index + 1 || !pool->signal)
			continue;
		fx_interrupt_send(&w->interrupt, w->tid);
		break;
	}
	fx_unlock(&pool->lock);
	return queued;
}

void fx_pool_move(struct fx_pool *pool, int fd, int to)
{
	struct fx_park *park = pool->model->park;

	if (!fx_load_relaxed(&pool->nr_queued))
		return;
	fx_lock(&pool->lock);
	for (uint32_t i = pool->first; i; i = pool->set->beside[i - 1].next)
		if (pool->set->beside[i - 1].held == (uint32_t)fd + 1)
			fx_park_move_one(park, i - 1, to);
	fx_unlock(&pool->lock);
}

bool fx_pool_busy(struct fx_pool *pool)
{
	return __atomic_load_n(&pool->nr_pending, __ATOMIC_ACQUIRE) != 0;
}

bool fx_pool_stalled(struct fx_pool *pool)
{
	return __atomic_load_n(&pool->nr_queued, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&pool->nr_blocked, __ATOMIC_RELAXED) >=
		       pool->max_threads;
}

static void forget(struct fx_worker *list)
{
	struct fx_worker *w;

	while ((w = list)) {
		list = w->next;
		free(w);
	}
}

void fx_pool_abandon(struct fx_pool *pool)
{
	forget(pool->workers);
	forget(pool->ended);
}
