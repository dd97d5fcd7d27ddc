/* SPDX-License-Identifier: MIT */
/*
 * Exhaustive interleaving checker for lock-free protocols in C.
 *
 * Runs the real code of up to eight threads as fibers, under every schedule
 * and every delay of the x86-TSO store buffers, and reports the schedule of
 * the first failed assertion, deadlock or lost wake-up.  Build with -DFX_MODEL
 * and link explore.c machine.c memory.c checkpoint.c ops.c fiber.c report.c.
 *
 * Rules for a model
 * - Everything mutable that threads share lies in registered regions,
 *   everything else in local variables: the search returns to earlier points
 *   by copying back both.  setup() runs once.  Threads are deterministic: no
 *   time, no heap, no static variables outside regions.
 * - Payload goes through fx_load_relaxed/fx_store_relaxed too.  A plain
 *   access is not a scheduling point and races are not detected: it happens
 *   together with the thread's preceding operation and is visible at once.
 *   Use plain writes only for the model's own bookkeeping, and never let a
 *   thread read by a plain access what another thread writes.
 * - A thread in a loop that ends by another thread's store calls
 *   fx_cpu_relax(): it runs on only when something it has read since its
 *   previous relax now has another value.  A bounded spin must therefore
 *   end by fx_model_choose(), not by a counter.
 * - Atomic operations in setup() and check() act at once.
 */
#ifndef FX_MODEL_EXPLORE_H
#define FX_MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

#define FX_MODEL_MAX_THREADS 8
#define FX_MODEL_MAX_STATES (16u << 20) /* default limit: 0.5 GiB */

enum {
	FX_MODEL_OK = 0, /* every schedule explored, none fails */
	FX_MODEL_FAILED = 1, /* a failing schedule was found */
	FX_MODEL_PARTIAL = 2, /* none fails, but NOT exhaustive */
};

/**
 * struct fx_model - one protocol under test
 * @setup: registers the regions and writes the initial state
 * @thread: thread bodies, up to the first NULL
 * @check: assertions on the final state, all buffers drained; may be NULL
 * @daemons: bit mask of threads that may still be blocked at the end
 * @max_preemptions: bound on forced thread switches; 0 means no bound
 * @max_states: limit of distinct states; 0 means FX_MODEL_MAX_STATES
 * @by_stack: tell states apart by the threads' live stacks instead of by all
 *            they have read: several times fewer states, and loops without
 *            end are closed; states merge wrongly if a thread keeps anything
 *            outside locals and regions
 * @no_reduction: also schedule steps that concern one thread only (slow; to
 *                test the checker itself)
 * @quiet: do not print the failing schedule
 */
struct fx_model {
	const char *name;
	void (*setup)(void);
	void (*thread[FX_MODEL_MAX_THREADS])(void);
	void (*check)(void);
	unsigned int daemons;
	unsigned int max_preemptions;
	uint64_t max_states;
	bool by_stack;
	bool no_reduction;
	bool quiet;
};

struct fx_model_stats {
	uint64_t states; /* distinct states */
	uint64_t transitions; /* edges between them */
	uint64_t executions; /* paths followed to an end or known state */
	uint64_t endings; /* distinct complete final states */
	unsigned int nr_restarts;
	unsigned int max_depth; /* scheduling decisions on one path */
	double seconds;
	bool exhaustive;
	char failure[200]; /* empty when none was found */
};

/* Context: one model at a time, one kernel thread.  @out may be NULL. */
int fx_model_run(const struct fx_model *m, struct fx_model_stats *out);

/* TAP: run @m, print "ok N - name" when it fails exactly as expected. */
void fx_model_tap(const struct fx_model *m, bool expect_failure);
/* The same with states told apart by history, then by stack. */
void fx_model_tap_both(const struct fx_model *m, bool expect_failure);
/* Return: the exit status after printing the plan. */
int fx_model_tap_done(void);

/* What must hold, but with each of these mistakes (bits by number) must not. */
struct fx_model_scenario {
	struct fx_model model; /* always told apart by stack */
	unsigned int mistakes;
};
#define FX_MISTAKE(number) (1u << (number))

/**
 * fx_model_main - main() of a protocol's models
 * @name: of the only scenario to run, or NULL for all of them
 * @mistakes: names by number; 0 is none
 * @mistake: which one the protocol is to make, set before each run
 *
 * Return: the exit status.
 */
int fx_model_main(const char *name, const struct fx_model_scenario *scenarios,
		  size_t nr, const char *const *mistakes,
		  unsigned int *mistake);

/* In setup(): shared memory, and optional names of parts for the trace. */
void fx_model_region_named(const char *name, void *p, size_t size);
#define fx_model_region(p, size) fx_model_region_named(#p, (p), (size))
void fx_model_name(const char *name, const volatile void *p, size_t size);

/* In threads and check(). */
#define fx_model_assert(cond) \
	((cond) ? (void)0 : fx_model_fail(__FILE__, __LINE__, #cond))
void fx_model_fail(const char *file, int line, const char *what);

/* Return: index of the calling thread, -1 in setup() and check(). */
int fx_model_self(void);
/* A scheduling point without any effect. */
void fx_model_yield(void);
/* Return: every value below @n, each on some schedule. */
unsigned int fx_model_choose(unsigned int n);
/*
 * Promise: position and local variables depend on @key alone from here on.
 * Merges states in loops that would otherwise differ by what was read.
 */
void fx_model_forget(uint64_t key);

/*
 * membarrier(2), private expedited: on return every store that any thread
 * had issued before the call is visible.
 */
void fx_model_membarrier(void);
/*
 * futex(2); both are full barriers.  Return of wait: 0 after a wake, -EAGAIN
 * when *@p was not @value.  A wake picks any waiters, not the oldest; it
 * returns their number.
 */
int fx_model_wait(const volatile void *p, uint64_t value, size_t size);
int fx_model_wake(const volatile void *p, unsigned int n);

/* eventfd(2): wait blocks until the count is not 0, returns and clears it. */
struct fx_model_sem {
	uint64_t count;
};
void fx_model_sem_init(struct fx_model_sem *sem); /* in setup() */
void fx_model_sem_post(struct fx_model_sem *sem);
uint64_t fx_model_sem_wait(struct fx_model_sem *sem);

#endif /* FX_MODEL_EXPLORE_H */
