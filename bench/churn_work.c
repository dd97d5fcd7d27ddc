/* SPDX-License-Identifier: MIT */
/*
 * Workload `churn`: making threads and seeing them end, one after the other
 * and very many at once. A plain pthread program that knows nothing of FlexSC.
 */
#include "bench/child.h"

#include "bench/machine.h"
#include "bench/series.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	BLOCK = 200,
	MAX_BLOCKS = 1000,
	NR_MANY = 20000,
	NR_MANY_QUICK = 200,
	MANY_STACK = 65536
};

static sem_t ended;

static void *return_at_once(void *arg)
{
	return arg;
}

/* Never one whose kernel thread can be used again without further ado. */
static void *exit_at_once(void *arg)
{
	pthread_exit(arg);
}

static void *post_and_return(void *arg)
{
	sem_post(&ended);
	return arg;
}

static void join_one(void *(*start)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, start, NULL))
		abort();
	pthread_join(thread, NULL);
}

static void create_join(void)
{
	join_one(return_at_once);
}

static void create_join_exit(void)
{
	join_one(exit_at_once);
}

static void create_detached(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, post_and_return, NULL))
		abort();
	pthread_attr_destroy(&attr);
	sem_wait(&ended);
}

struct kind {
	const char *name;
	void (*once)(void);
	uint64_t limit_ns;
};

/* In a thread of its own: servers create threads from where they like. */
static void *run_kind(void *arg)
{
	static double blocks[MAX_BLOCKS];
	const struct kind *kind = arg;
	uint64_t begin = now_ns(), last = begin;
	unsigned int nr = 0;

	do {
		uint64_t now;

		for (int i = 0; i < BLOCK; i++)
			kind->once();
		now = now_ns();
		blocks[nr++] = (double)(now - last) / BLOCK / 1000;
		last = now;
	} while (nr < MAX_BLOCKS && last - begin < kind->limit_ns);
	workload_say(kind->name, median(blocks, nr));
	return NULL;
}

struct crowd {
	pthread_mutex_t lock;
	pthread_cond_t all_here, go;
	int here, wanted;
	bool gone;
};

static void *join_crowd(void *arg)
{
	struct crowd *c = arg;

	pthread_mutex_lock(&c->lock);
	if (++c->here == c->wanted)
		pthread_cond_signal(&c->all_here);
	while (!c->gone)
		pthread_cond_wait(&c->go, &c->lock);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* All of them alive at one moment. Return: how many there were. */
static int run_many(int wanted)
{
	static struct crowd c = { .lock = PTHREAD_MUTEX_INITIALIZER,
				  .all_here = PTHREAD_COND_INITIALIZER,
				  .go = PTHREAD_COND_INITIALIZER };
	static pthread_t threads[NR_MANY];
	uint64_t begin = now_ns();
	pthread_attr_t attr;
	int nr = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, MANY_STACK);
	while (nr < wanted &&
	       pthread_create(&threads[nr], &attr, join_crowd, &c) == 0)
		nr++;
	pthread_mutex_lock(&c.lock);
	c.wanted = nr;
	while (c.here < nr)
		pthread_cond_wait(&c.all_here, &c.lock);
	c.gone = true;
	pthread_cond_broadcast(&c.go);
	pthread_mutex_unlock(&c.lock);
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	if (nr)
		workload_say("many", (double)(now_ns() - begin) / nr / 1000);
	return nr;
}

static int run_churn(bool quick)
{
	struct kind kinds[] = {
		{ .name = "join", .once = create_join },
		{ .name = "exit", .once = create_join_exit },
		{ .name = "detached", .once = create_detached },
	};
	int wanted = quick ? NR_MANY_QUICK : NR_MANY;
	pthread_t thread;

	sem_init(&ended, 0, 0);
	for (int i = 0; i < 3; i++) {
		kinds[i].limit_ns = quick ? 5000000 : 200000000;
		pthread_create(&thread, NULL, run_kind, &kinds[i]);
		pthread_join(thread, NULL);
	}
	return run_many(wanted) != wanted;
}

const struct workload workload_churn = { .name = "churn", .run = run_churn };
