/* SPDX-License-Identifier: MIT */
/*
 * Threads that take turns by condition variables, with time-outs, signals, and
 * a first thread that wants their mutexes: a mutex that is handed over in a
 * wait (threads/cond.c) has one owner at any time, and is free at the end.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	RINGS = 4,
	SIDES = 4,
	TURNS = 2000
};

static struct ring {
	pthread_mutex_t lock;
	pthread_cond_t cond[SIDES];
	int turn, left;
	int inside; /* threads that have the mutex */
	int broken;
} rings[RINGS];

static int ended;

static void handle(int signal)
{
	(void)signal;
}

static void enter(struct ring *r)
{
	r->broken += r->inside++ != 0 || r->lock.__data.__owner != gettid();
}

static void wait_shortly(struct ring *r, int side, unsigned ns)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += ns;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&r->cond[side], &r->lock, &ts);
}

static void *take_turns(void *arg)
{
	unsigned number = (unsigned)(size_t)arg, random = number * 7919 + 1;
	struct ring *r = &rings[number / SIDES];
	int side = (int)number % SIDES;

	pthread_mutex_lock(&r->lock);
	enter(r);
	while (r->left) {
		while (r->turn != side && r->left) {
			random = random * 1103515245 + 12345;
			r->inside--;
			if (random >> 16 & 3)
				pthread_cond_wait(&r->cond[side], &r->lock);
			else
				wait_shortly(r, side, random >> 8 & 0x1ffff);
			enter(r);
		}
		r->turn = (side + 1) % SIDES;
		r->left -= r->left > 0;
		pthread_cond_signal(&r->cond[r->turn]);
	}
	for (int i = 0; i < SIDES; i++)
		pthread_cond_broadcast(&r->cond[i]);
	r->inside--;
	pthread_mutex_unlock(&r->lock);
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = handle };
	pthread_t threads[RINGS * SIDES];
	unsigned n = 0;

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < RINGS; i++) {
		pthread_mutex_init(&rings[i].lock, NULL);
		for (int side = 0; side < SIDES; side++)
			pthread_cond_init(&rings[i].cond[side], NULL);
		rings[i].left = TURNS;
	}
	for (size_t i = 0; i < RINGS * SIDES; i++)
		pthread_create(&threads[i], NULL, take_turns, (void *)i);
	while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < RINGS * SIDES) {
		struct ring *r = &rings[n % RINGS];

		usleep(200);
		pthread_kill(threads[n++ % (RINGS * SIDES)], SIGUSR1);
		pthread_mutex_lock(&r->lock);
		enter(r);
		r->inside--;
		pthread_mutex_unlock(&r->lock);
	}
	for (int i = 0; i < RINGS; i++)
		printf("left %d, inside %d, broken %d, lock %d, users %u\n",
		       rings[i].left, rings[i].inside, rings[i].broken,
		       rings[i].lock.__data.__lock, rings[i].lock.__data.__nusers);
	fflush(stdout);
	_exit(0);
}
