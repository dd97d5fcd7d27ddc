/* SPDX-License-Identifier: MIT */
/*
 * What POSIX objects wait on (threads/lot.h), with mutexes, condition variables
 * and semaphores on top of it: the library's code under every schedule, threads
 * at home. Nobody waits for ever for what is there, no wake is doubled, nor
 * lost to one who gave up. Prints TAP.
 */
#include "model/explore.h"

#include <stdio.h>
#include <string.h>

#include "threads/thread.h"

/* Handlers of signals are not in the model: fewer states. */
#define fx_thread_enter(me) ((void)(me))
#define fx_thread_leave(me) ((void)(me))
#include "threads/cond.c"
#include "threads/lot.c"
#undef SHARED
#include "threads/mutex.c"
#define wait_for wait_for_sem
#include "threads/sem.c"
#undef wait_for

enum {
	RIGHT,
	STORED_UNLOCK, /* an unlock does not look for waiters */
	GIVEN_TWICE, /* a mutex that was handed over is unlocked, too */
};
static unsigned int mistake;

#define NR_THREADS 2

static struct {
	struct fx_thread thread[NR_THREADS];
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	sem_t sem;
	uint32_t inside; /* threads that hold the mutex */
	uint32_t tokens, taken, gone, turn;
	uint32_t ready[NR_THREADS]; /* see fx_park_last() */
	uint32_t posts[NR_THREADS];
} mem;

/* What lies below ---------------------------------------------------------- */

__thread struct fx_task *fx_task_self;
uint32_t fx_threads_running = 1;

static void wait_woken(struct fx_task *me, const struct fx_deadline *deadline)
{
	uint64_t word;

	if (!fx_task_publish(me, FX_TASK_HOME))
		return;
	while (fx_task_state(word = fx_load_acquire(&me->state)) !=
	       FX_TASK_WOKEN)
		if (deadline && fx_model_choose(2))
			fx_task_wake(me, word & FX_TICKET_MASK,
				     FX_WOKEN_TIMEOUT);
		else
			fx_model_wait(&me->state, word, sizeof(word));
}

enum fx_reason fx_park(struct fx_task *me, const char *where,
		       const struct fx_deadline *deadline, uint32_t mask)
{
	(void)where;
	(void)mask;
	wait_woken(me, deadline);
	return fx_task_take(me);
}

enum {
	RUNS,
	READY, /* woken, and in a run queue */
	PICKED, /* it is the next one of who is parking */
	SWITCHED /* that has parked */
};

/* On a carrier: who is ready may be the next one to run. */
enum fx_reason fx_park_last(struct fx_task *me, const char *where,
			    const struct fx_deadline *deadline, uint32_t mask,
			    void (*last)(void *arg, struct fx_task *next),
			    void *arg)
{
	unsigned self = fx_model_self(), other = !self;
	uint32_t seen = READY;
	struct fx_task *next = NULL;

	(void)where;
	(void)mask;
	if (fx_cas(&mem.ready[other], &seen, (uint32_t)PICKED))
		next = &mem.thread[other].task;
	last(arg, next);
	if (mistake == GIVEN_TWICE && next && mem.thread[other].given)
		fx_mutex_unlock((struct fx_thread *)me, &mem.mutex);
	if (next) {
		fx_store_release(&mem.ready[other], (uint32_t)SWITCHED);
		fx_model_wake(&mem.ready[other], 1);
	}
	wait_woken(me, deadline);
	fx_store_release(&mem.ready[self], (uint32_t)READY);
	seen = READY;
	if (!fx_cas(&mem.ready[self], &seen, (uint32_t)RUNS)) {
		fx_model_wait(&mem.ready[self], PICKED, sizeof(uint32_t));
		fx_store_relaxed(&mem.ready[self], (uint32_t)RUNS);
	}
	return fx_task_take(me);
}

bool fx_wake(struct fx_task *task, fx_ticket ticket, enum fx_reason reason)
{
	enum fx_wake result = fx_task_wake(task, ticket, reason);

	if (result == FX_WAKE_HOME)
		fx_model_wake(&task->state, 1);
	return result != FX_WAKE_LOST;
}

int fx_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	(void)word;
	(void)expected;
	(void)timeout_ns;
	return 0;
}

int fx_futex_wake(uint32_t *word, int count)
{
	(void)word;
	return count;
}

struct fx_thread *fx_thread_return(struct fx_thread *me)
{
	return me;
}

struct fx_thread *fx_thread_known_slow(void)
{
	return &mem.thread[fx_model_self()];
}

void fx_thread_home(struct fx_thread *me, enum fx_home_reason reason)
{
	(void)me;
	(void)reason;
}

void fx_thread_attend(struct fx_thread *me, bool cancel)
{
	(void)me;
	(void)cancel;
}

bool fx_interrupted(const struct fx_thread *me, uint32_t handlers,
		    uint32_t no_restart, bool restarts)
{
	(void)me;
	(void)handlers;
	(void)no_restart;
	return !restarts;
}

/* The models --------------------------------------------------------------- */

static void setup(void)
{
	memset(&mem, 0, sizeof(mem));
	memset(table, 0, sizeof(table));
	flags_at = 9;
	fx_model_region(&mem, sizeof(mem));
	fx_model_region(&fx_threads_running, sizeof(fx_threads_running));
	fx_model_region(bucket_of(&mem.mutex), sizeof(struct bucket));
	fx_model_region(bucket_of(&mem.cond), sizeof(struct bucket));
	fx_model_region(bucket_of(&mem.sem), sizeof(struct bucket));
	fx_model_name("mutex", &mem.mutex, sizeof(mem.mutex));
	fx_model_name("cond", &mem.cond, sizeof(mem.cond));
	fx_model_name("sem", &mem.sem, sizeof(mem.sem));
	for (int i = 0; i < NR_THREADS; i++)
		mem.thread[i].tid = i + 1;
}

static struct fx_thread *self(void)
{
	return &mem.thread[fx_model_self()];
}

static void enter(void)
{
	fx_mutex_lock(self(), &mem.mutex, NULL);
	fx_model_assert(fx_fetch_add(&mem.inside, 1u) == 0);
}

static void leave(void)
{
	fx_fetch_add(&mem.inside, UINT32_MAX);
	if (mistake == STORED_UNLOCK)
		fx_store_release(fx_mutex_word(&mem.mutex), 0u);
	else
		fx_mutex_unlock(self(), &mem.mutex);
}

static void locks(void)
{
	enter();
	leave();
	fx_fetch_add(&mem.gone, 1u);
}

/* In the middle of a wait the mutex is not this thread's. */
static int wait_for_token(const struct fx_deadline *deadline)
{
	int bad = 0;

	enter();
	while (!fx_load_relaxed(&mem.tokens) && !bad) {
		fx_fetch_add(&mem.inside, UINT32_MAX);
		bad = fx_cond_wait(self(), &mem.cond, &mem.mutex, deadline);
		fx_model_assert(fx_fetch_add(&mem.inside, 1u) == 0);
	}
	if (fx_load_relaxed(&mem.tokens)) {
		fx_store_relaxed(&mem.tokens, fx_load_relaxed(&mem.tokens) - 1);
		fx_store_relaxed(&mem.taken, fx_load_relaxed(&mem.taken) + 1);
	}
	leave();
	fx_fetch_add(&mem.gone, 1u);
	return bad;
}

static void waits(void)
{
	wait_for_token(NULL);
}

static void may_time_out(void)
{
	struct fx_deadline deadline = { 0, FX_CLOCK_MONOTONIC };

	wait_for_token(&deadline);
}

/* With the mutex or without. */
static void signals_once(void)
{
	unsigned outside = fx_model_choose(2);

	enter();
	fx_store_relaxed(&mem.tokens, 1u);
	if (!outside)
		fx_cond_wake(self(), &mem.cond, 1);
	leave();
	if (outside)
		fx_cond_wake(self(), &mem.cond, 1);
	fx_fetch_add(&mem.gone, 1u);
}

static void broadcasts(void)
{
	enter();
	fx_store_relaxed(&mem.tokens, 1u);
	leave();
	fx_cond_wake(self(), &mem.cond, UINT32_MAX);
	fx_fetch_add(&mem.gone, 1u);
}

/* The second one wakes the first, who may be handed the mutex. */
static void takes_turns(void)
{
	uint32_t me = fx_model_self();

	enter();
	for (unsigned i = 0; i < 1 + me; i++) {
		while (fx_load_relaxed(&mem.turn) == me) {
			fx_fetch_add(&mem.inside, UINT32_MAX);
			fx_cond_wait(self(), &mem.cond, &mem.mutex, NULL);
			fx_model_assert(fx_fetch_add(&mem.inside, 1u) == 0);
		}
		fx_store_relaxed(&mem.turn, me);
		fx_cond_wake(self(), &mem.cond, 1);
	}
	leave();
	fx_fetch_add(&mem.gone, 1u);
}

static void sem_waits(void)
{
	if (fx_sem_wait(self(), &mem.sem, NULL) == 0)
		fx_fetch_add(&mem.taken, 1u);
	fx_fetch_add(&mem.gone, 1u);
}

static void sem_may_time_out(void)
{
	struct fx_deadline deadline = { 0, FX_CLOCK_MONOTONIC };

	if (fx_sem_wait(self(), &mem.sem, &deadline) == 0)
		fx_fetch_add(&mem.taken, 1u);
	fx_fetch_add(&mem.gone, 1u);
}

static void posts_once(void)
{
	mem.posts[fx_model_self()] = 1;
	fx_sem_post(&mem.sem);
	fx_fetch_add(&mem.gone, 1u);
}

static void check_gone(void)
{
	fx_model_assert(fx_load_relaxed(&mem.gone) == NR_THREADS);
	fx_model_assert(fx_load_relaxed(&mem.inside) == 0);
	fx_model_assert(*fx_mutex_word(&mem.mutex) == 0);
	fx_model_assert(mem.mutex.__data.__owner == 0);
	fx_model_assert(mem.mutex.__data.__nusers == 0 ||
			mistake == STORED_UNLOCK);
}

static void check_tokens(void)
{
	check_gone();
	fx_model_assert(fx_load_relaxed(&mem.tokens) +
				fx_load_relaxed(&mem.taken) ==
			1);
}

static void check_sem(void)
{
	uint32_t posted = 0;

	check_gone();
	for (unsigned i = 0; i < NR_THREADS; i++)
		posted += mem.posts[i];
	fx_model_assert((uint32_t)fx_load_relaxed(&of(&mem.sem)->data) +
				fx_load_relaxed(&mem.taken) ==
			posted);
	fx_model_assert(fx_load_relaxed(&of(&mem.sem)->data) >> 32 == 0);
}

static const struct fx_model_scenario scenarios[] = {
	{ { .name = "mutex",
	    .setup = setup,
	    .thread = { locks, locks },
	    .check = check_gone },
	  FX_MISTAKE(STORED_UNLOCK) },
	{ { .name = "signal",
	    .setup = setup,
	    .thread = { waits, signals_once },
	    .check = check_tokens },
	  0 },
	{ { .name = "signal, gives up",
	    .setup = setup,
	    .thread = { may_time_out, signals_once },
	    .check = check_tokens },
	  0 },
	{ { .name = "broadcast",
	    .setup = setup,
	    .thread = { waits, broadcasts },
	    .check = check_tokens },
	  0 },
	{ { .name = "turns",
	    .setup = setup,
	    .thread = { takes_turns, takes_turns },
	    .check = check_gone },
	  FX_MISTAKE(GIVEN_TWICE) },
	{ { .name = "semaphore",
	    .setup = setup,
	    .thread = { sem_waits, posts_once },
	    .check = check_sem },
	  0 },
	{ { .name = "semaphore, gives up",
	    .setup = setup,
	    .thread = { sem_may_time_out, posts_once },
	    .check = check_sem },
	  0 },
};

static const char *const mistake_names[] = {
	[STORED_UNLOCK] = "unlocked by a store",
	[GIVEN_TWICE] = "handed over and unlocked",
};

int main(int argc, char **argv)
{
	return fx_model_main(argc > 1 ? argv[1] : NULL, scenarios,
			     FX_ARRAY_SIZE(scenarios), mistake_names, &mistake);
}
