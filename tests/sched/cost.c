/* SPDX-License-Identifier: MIT */
/*
 * What switching and waking cost, beside the same with plain threads on one
 * processor, in turn. Not a test: prints medians in nanoseconds.
 *
 *	flock LOCK build/tests/sched/sched-cost [ROUNDS]
 */
#include "threads.h"

#include "arch/arch.h"

#include <sched.h>
#include <stdlib.h>

#define YIELDS 500000u
#define TURNS 200000u
#define NPTL_TURNS 10000u

static struct {
	unsigned turn;
	fx_ticket ticket[2];
	struct thread *side[2];
	unsigned ready;
} pair;

static double per_turn; /* of the measuring thread */

static void meet(struct thread *t)
{
	pair.side[t->number] = t;
	__atomic_add_fetch(&pair.ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&pair.ready, __ATOMIC_SEQ_CST) < 2)
		sleep_ns(t, 100000);
}

static void yielding(struct thread *t)
{
	uint64_t begin;

	meet(t);
	begin = fx_now_ns();
	for (unsigned i = 0; i < YIELDS; i++)
		fx_yield(&t->task);
	if (t->number == 0)
		per_turn = (double)(fx_now_ns() - begin) / (2 * YIELDS);
}

/* One carrier: the other one is never running meanwhile. */
static void taking_turns(struct thread *t)
{
	unsigned me = t->number;
	uint64_t begin;

	meet(t);
	begin = fx_now_ns();
	for (unsigned i = 0; i < TURNS; i++) {
		fx_ticket ticket;

		while (pair.turn != me) {
			pair.ticket[me] = fx_task_arm(&t->task);
			fx_park(&t->task, "turn", NULL, 0);
		}
		pair.turn = !me;
		ticket = pair.ticket[!me];
		pair.ticket[!me] = 0;
		if (ticket)
			fx_wake(&pair.side[!me]->task, ticket, FX_WOKEN_VALUE);
	}
	if (me == 0)
		per_turn = (double)(fx_now_ns() - begin) / (2 * TURNS);
}

static double tasks(void (*fn)(struct thread *t))
{
	pair = (typeof(pair)){ .turn = 0 };
	scheduler(1);
	threads_run(2, fn, NULL);
	return per_turn;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond[2] = { PTHREAD_COND_INITIALIZER,
				  PTHREAD_COND_INITIALIZER };
static unsigned turn;

static void *plain_yields(void *arg)
{
	for (unsigned i = 0; i < NPTL_TURNS * 10; i++)
		sched_yield();
	return arg;
}

static void *plain_turns(void *arg)
{
	unsigned me = arg != NULL;

	for (unsigned i = 0; i < NPTL_TURNS; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != me)
			pthread_cond_wait(&cond[me], &mutex);
		turn = !me;
		pthread_cond_signal(&cond[!me]);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static double plain(void *(*fn)(void *), unsigned nr)
{
	pthread_t threads[2];
	cpu_set_t before, one;
	uint64_t begin;

	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	turn = 0;
	begin = fx_now_ns();
	pthread_create(&threads[0], NULL, fn, NULL);
	pthread_create(&threads[1], NULL, fn, &turn);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	sched_setaffinity(0, sizeof(before), &before);
	return (double)(fx_now_ns() - begin) / (2.0 * nr);
}

static struct fx_arch_context home, guest;

static void come_back(void *arg)
{
	(void)arg;
	for (;;)
		fx_arch_switch_raw(&guest, &home);
}

/* Half of the way there and back. */
static double bare(void)
{
	static char stack[65536] __attribute__((aligned(64)));
	uint64_t begin;

	fx_arch_init();
	fx_arch_context_here(&home);
	fx_arch_context_init(&guest, stack, sizeof(stack), come_back, NULL,
			     home.tls);
	begin = fx_now_ns();
	for (unsigned i = 0; i < YIELDS; i++)
		fx_arch_switch_raw(&home, &guest);
	return (double)(fx_now_ns() - begin) / (2 * YIELDS);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 7;
	static double v[5][100];

	if (rounds < 1 || rounds > 100)
		return 2;
	for (unsigned i = 0; i < rounds; i++) {
		v[0][i] = bare();
		v[1][i] = tasks(yielding);
		v[2][i] = plain(plain_yields, NPTL_TURNS * 10);
		v[3][i] = tasks(taking_turns);
		v[4][i] = plain(plain_turns, NPTL_TURNS);
	}
	printf("bare switch, same thread pointer  %8.1f\n",
	       median(v[0], rounds));
	printf("yield, tasks                      %8.1f\n",
	       median(v[1], rounds));
	printf("yield, plain threads              %8.1f\n",
	       median(v[2], rounds));
	printf("park and wake, one way, tasks     %8.1f\n",
	       median(v[3], rounds));
	printf("condition variable, plain threads %8.1f\n",
	       median(v[4], rounds));
	return 0;
}
