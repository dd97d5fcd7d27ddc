/* SPDX-License-Identifier: MIT */
/*
 * engine/guard.c under every schedule: a thread makes guarded calls of which
 * some block until they are interrupted, and the watcher ticks, interrupts
 * and sleeps. No signal reaches another call than the one it was for, none is
 * missing, and the watcher is awake while a call is guarded. Prints TAP.
 *
 * Time is left out: a tick can come at any moment. Threads, signals and the
 * call itself are stand-ins at the end of this file.
 */
#define _GNU_SOURCE
#include "model/explore.h"

#include <string.h>

enum mistake {
	RIGHT,
	NO_BARRIER, /* the watcher goes to sleep without */
	TWICE, /* it interrupts what it has interrupted */
	NO_CLAIM, /* it sends without having claimed the call */
	NO_SETTLE, /* the caller does not wait for a signal on its way */
};
static enum mistake mistake;

static void barrier_heavy(void);

#include "base/barrier.h"
#undef fx_barrier_heavy
#define fx_barrier_heavy() barrier_heavy()
#include "engine/guard.c"

#define NR_CALLS 2

static struct {
	struct fx_guard guard;
	uint32_t on_its_way; /* a signal was sent and is not settled */
	uint32_t nr_calls; /* entered */
} s;
static struct fx_model_sem signal_sem;
static unsigned int blocking; /* bit i: call i blocks until interrupted */

static void barrier_heavy(void)
{
	if (mistake != NO_BARRIER)
		fx_model_membarrier();
}

static void setup(void)
{
	memset(&s, 0, sizeof(s));
	fx_guard_init(&s.guard, NULL);
	s.guard.started = 1;
	fx_model_region(&s, sizeof(s));
	fx_model_name("inside", &s.guard.inside, 4);
	fx_model_name("asleep", &s.guard.asleep, 4);
	fx_model_name("stop", &s.guard.stop, 4);
	fx_model_name("on_its_way", &s.on_its_way, 4);
	fx_model_sem_init(&signal_sem);
}

static void caller(void)
{
	static const struct flexsc_entry call = { .nr = SYS_open };

	for (unsigned i = 0; i < NR_CALLS; i++) {
		int64_t ret = fx_guard_call(&s.guard, &call);

		if (blocking & 1u << i)
			fx_model_assert(ret == FX_GUARD_BLOCKED);
		else
			fx_model_assert(ret == 0 || ret == FX_GUARD_BLOCKED);
	}
	/* fx_guard_fini() but for the join. */
	fx_store_release(&s.guard.stop, 1u);
	fx_store_release(&s.guard.asleep, 0u);
	fx_futex_wake(&s.guard.asleep, 1);
}

static void watcher(void)
{
	watch(&s.guard);
}

static void careless_watcher(void)
{
	if (fx_load_acquire(&s.guard.inside))
		fx_interrupt_send(&s.guard.interrupt, 0);
}

/* What the library's did once, when its caller lost its processor. */
static void insistent_watcher(void)
{
	struct fx_guard *g = &s.guard;
	uint32_t number = fx_load_acquire(&g->inside);

	interrupt(g, number);
	number = fx_load_acquire(&g->inside);
	if (number != SENT || !fx_cas(&g->inside, &number, CLAIMED))
		return;
	fx_interrupt_send(&g->interrupt, g->tid);
	fx_store_release(&g->inside, SENT);
}

static void check(void)
{
	fx_model_assert(fx_load_relaxed(&s.guard.inside) == 0);
	fx_model_assert(fx_load_relaxed(&s.on_its_way) == 0);
}

static void run(const char *name, enum mistake wrong, unsigned int blocks)
{
	struct fx_model model = {
		.name = name,
		.setup = setup,
		.thread = { caller, wrong == NO_CLAIM ? careless_watcher :
				    wrong == TWICE    ? insistent_watcher :
							watcher },
		.check = check,
		.by_stack = true, /* the watcher's loop has no end */
		.quiet = wrong != RIGHT,
	};

	mistake = wrong;
	blocking = blocks;
	fx_model_tap(&model, wrong != RIGHT);
}

int main(void)
{
	run("guard, calls that do not block", RIGHT, 0);
	run("guard, the first call blocks", RIGHT, 1);
	run("guard, the second call blocks", RIGHT, 2);
	run("guard, both calls block", RIGHT, 3);
	run("guard, asleep without a barrier", NO_BARRIER, 2);
	run("guard, interrupted twice", TWICE, 0);
	run("guard, signal without a claim", NO_CLAIM, 0);
	run("guard, signal not settled", NO_SETTLE, 1);
	return fx_model_tap_done();
}

/* Stand-ins ---------------------------------------------------------------- */

/* The call: was it interrupted before, or is it while it blocks? */
long fx_arch_syscall_cancellable(const uint32_t *cancel, long nr,
				 const uint64_t *args)
{
	uint32_t call = s.nr_calls++; /* nobody else's */

	(void)nr;
	(void)args;
	/* A signal on its way is for this call: the watcher has claimed it. */
	if (fx_load_relaxed(&s.on_its_way))
		fx_model_assert(fx_load_relaxed(&s.guard.inside) !=
				s.guard.number);
	if (fx_load_relaxed(cancel))
		return -ECANCELED;
	if (!(blocking & 1u << call))
		return 0;
	fx_model_sem_wait(&signal_sem);
	fx_model_sem_post(&signal_sem); /* for fx_interrupt_settle() */
	return -EINTR;
}

void fx_interrupt_send(struct fx_interrupt *interrupt, pid_t tid)
{
	(void)tid;
	fx_store_relaxed(&s.on_its_way, 1u);
	fx_store_relaxed(&interrupt->wanted, 1u);
	fx_model_sem_post(&signal_sem);
}

void fx_interrupt_settle(struct fx_interrupt *interrupt)
{
	if (mistake == NO_SETTLE)
		return;
	fx_model_sem_wait(&signal_sem);
	fx_store_relaxed(&s.on_its_way, 0u);
	fx_store_relaxed(&interrupt->wanted, 0u);
}

void fx_interrupt_self(struct fx_interrupt *interrupt)
{
	(void)interrupt;
}

int fx_interrupt_signal(void)
{
	return 1;
}

void fx_pool_mask(sigset_t *before)
{
	(void)before;
}

int fx_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	if (timeout_ns == FX_NEVER)
		return fx_model_wait(word, expected, sizeof(*word));
	fx_model_yield(); /* the tick can be over at once */
	return 0;
}

int fx_futex_wake(uint32_t *word, int count)
{
	return fx_model_wake(word, (unsigned int)count);
}
