/* SPDX-License-Identifier: MIT */
/*
 * Workload `sync`: what waiting, waking and locking cost two threads on one
 * processor; and `idle`: what a thread that only waits costs in memory. Plain
 * pthread programs that know nothing of FlexSC.
 */
#include "bench/child.h"

#include "bench/machine.h"
#include "bench/series.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum {
	BLOCK = 2000, /* rounds between two looks at the clock */
	MAX_BLOCKS = 2000,
	NR_IDLE = 4000,
	NR_IDLE_QUICK = 100,
	IDLE_STACK = 65536
};

/**
 * struct pair - two threads that take turns
 * @step: one round of either; @side is 0 or 1
 */
struct pair {
	const char *name;
	void (*step)(struct pair *p, int side);
	int per_round; /* of what is counted */
	pthread_mutex_t lock;
	pthread_cond_t conds[2];
	sem_t sems[2];
	int turn;
	bool over;
	uint64_t limit_ns;
};

static void step_cond(struct pair *p, int side)
{
	pthread_mutex_lock(&p->lock);
	while (p->turn != side && !p->over)
		pthread_cond_wait(&p->conds[side], &p->lock);
	p->turn = !side;
	pthread_cond_signal(&p->conds[!side]);
	pthread_mutex_unlock(&p->lock);
}

static void step_sem(struct pair *p, int side)
{
	sem_wait(&p->sems[side]);
	sem_post(&p->sems[!side]);
}

static void step_yield(struct pair *p, int side)
{
	sched_yield();
}

static bool is_over(struct pair *p)
{
	return __atomic_load_n(&p->over, __ATOMIC_RELAXED);
}

static void *second(void *arg)
{
	struct pair *p = arg;

	while (!is_over(p))
		p->step(p, 1);
	return NULL;
}

/* Wakes the other one up for the last time. */
static void end(struct pair *p)
{
	pthread_mutex_lock(&p->lock);
	__atomic_store_n(&p->over, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&p->conds[1]);
	pthread_mutex_unlock(&p->lock);
	sem_post(&p->sems[1]);
}

static void *first(void *arg)
{
	static double blocks[MAX_BLOCKS];
	struct pair *p = arg;
	uint64_t begin = now_ns(), last = begin;
	unsigned int nr = 0;

	do {
		uint64_t now;

		for (int i = 0; i < BLOCK; i++)
			p->step(p, 0);
		now = now_ns();
		blocks[nr++] = (double)(now - last) / BLOCK / p->per_round;
		last = now;
	} while (nr < MAX_BLOCKS && last - begin < p->limit_ns);
	end(p);
	workload_say(p->name, median(blocks, nr));
	return NULL;
}

static void run_pair(struct pair *p)
{
	pthread_t threads[2];

	pthread_mutex_init(&p->lock, NULL);
	for (int i = 0; i < 2; i++) {
		pthread_cond_init(&p->conds[i], NULL);
		sem_init(&p->sems[i], 0, i == 0);
	}
	pthread_create(&threads[1], NULL, second, p);
	pthread_create(&threads[0], NULL, first, p);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* Not in the first thread: a program that has but one needs no package. */
static void *lock_alone(void *arg)
{
	static double blocks[MAX_BLOCKS];
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const uint64_t *limit_ns = arg;
	uint64_t begin = now_ns(), last = begin;
	unsigned int nr = 0;

	do {
		uint64_t now;

		for (int i = 0; i < BLOCK * 10; i++) {
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
		now = now_ns();
		blocks[nr++] = (double)(now - last) / BLOCK / 10;
		last = now;
	} while (nr < MAX_BLOCKS && last - begin < *limit_ns);
	workload_say("mutex", median(blocks, nr));
	return NULL;
}

static int run_sync(bool quick)
{
	uint64_t limit_ns = quick ? 5000000 : 150000000;
	struct pair pairs[] = {
		{ .name = "cond", .step = step_cond, .per_round = 2 },
		{ .name = "sem", .step = step_sem, .per_round = 2 },
		{ .name = "yield", .step = step_yield, .per_round = 2 },
	};
	pthread_t thread;

	for (int i = 0; i < 3; i++) {
		pairs[i].limit_ns = limit_ns;
		run_pair(&pairs[i]);
	}
	pthread_create(&thread, NULL, lock_alone, &limit_ns);
	pthread_join(thread, NULL);
	return 0;
}

/* The sum of these lines of a file of /proc, in KB. */
static double kilobytes(const char *path, const char *const *names)
{
	FILE *f = fopen(path, "re");
	char line[256], name[64];
	double sum = 0, value;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63[^:]: %lf", name, &value) != 2)
			continue;
		for (int i = 0; names[i]; i++)
			if (strcmp(name, names[i]) == 0)
				sum += value;
	}
	if (f)
		fclose(f);
	return sum;
}

static double resident(void)
{
	static const char *const names[] = { "RssAnon", NULL };

	return kilobytes("/proc/self/status", names);
}

/* Of the whole machine: it does not say whose it is. */
static double of_kernel(void)
{
	static const char *const names[] = { "KernelStack", "PageTables",
					     "SUnreclaim", NULL };

	return kilobytes("/proc/meminfo", names);
}

static void *wait_for_end(void *arg)
{
	const int *fds = arg;
	char byte;

	while (read(fds[0], &byte, 1) > 0)
		;
	return NULL;
}

static int run_idle(bool quick)
{
	static pthread_t threads[NR_IDLE];
	int wanted = quick ? NR_IDLE_QUICK : NR_IDLE, nr = 0, fds[2];
	pthread_attr_t attr;
	double user, kernel;

	if (pipe(fds))
		return 1;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, IDLE_STACK);
	/* What the first thread makes is not a thread's own. */
	pthread_create(&threads[nr++], &attr, wait_for_end, fds);
	usleep(20000);
	user = resident();
	kernel = of_kernel();
	while (nr < wanted &&
	       pthread_create(&threads[nr], &attr, wait_for_end, fds) == 0)
		nr++;
	usleep(quick ? 50000 : 500000);
	user = (resident() - user) / (nr - 1);
	kernel = (of_kernel() - kernel) / (nr - 1);
	workload_say("resident", user);
	workload_say("kernel", kernel);
	workload_say("sum", user + kernel);
	close(fds[1]);
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	return nr < wanted;
}

const struct workload workload_sync = { .name = "sync", .run = run_sync };
const struct workload workload_idle = { .name = "idle", .run = run_idle };
