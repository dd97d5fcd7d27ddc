/* SPDX-License-Identifier: MIT */
/*
 * What mutexes of all kinds say: whose owner is gone, that cannot be recovered,
 * that are waited for until a moment that is none.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *dies(void *mutex)
{
	pthread_mutex_lock(mutex);
	return NULL;
}

static sem_t locked;

static void *locks_for_long(void *mutex)
{
	pthread_mutex_lock(mutex);
	sem_post(&locked);
	usleep(50000);
	return NULL;
}

static void let(void *(*start)(void *), void *mutex)
{
	pthread_t thread;

	pthread_create(&thread, NULL, start, mutex);
	pthread_join(thread, NULL);
}

static void say(const char *what, int bad)
{
	printf(" %s %s;", what, bad ? strerror(bad) : "good");
}

static int timed(pthread_mutex_t *mutex, long nsec)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec = nsec;
	return pthread_mutex_timedlock(mutex, &until);
}

static void robust(int type, int protocol)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;
	pthread_t thread;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	pthread_mutexattr_setprotocol(&attr, protocol);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&mutex, &attr);
	printf("robust %d %d:", type, protocol);
	let(dies, &mutex);
	say("lock", pthread_mutex_lock(&mutex));
	say("consistent", pthread_mutex_consistent(&mutex));
	say("unlock", pthread_mutex_unlock(&mutex));
	pthread_create(&thread, NULL, locks_for_long, &mutex);
	sem_wait(&locked);
	say("wait", pthread_mutex_lock(&mutex));
	say("unlock", pthread_mutex_unlock(&mutex));
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		say("lock", pthread_mutex_lock(&mutex));
		say("timed", timed(&mutex, 1));
	}
	say("destroy", pthread_mutex_destroy(&mutex));
	printf("\n");
}

static void bad_moments(int type)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	pthread_mutex_init(&mutex, &attr);
	printf("moments %d:", type);
	for (int i = 0; i < 2; i++) {
		long nsec = i ? -1 : 1000000000;

		say("free", timed(&mutex, nsec));
		say("locked", timed(&mutex, nsec));
		say("unlock", pthread_mutex_unlock(&mutex));
		if (type == PTHREAD_MUTEX_RECURSIVE)
			say("unlock", pthread_mutex_unlock(&mutex));
	}
	say("destroy", pthread_mutex_destroy(&mutex));
	printf("\n");
}

static void *all(void *arg)
{
	for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ERRORCHECK;
	     type++) {
		robust(type, PTHREAD_PRIO_NONE);
		robust(type, PTHREAD_PRIO_INHERIT);
		bad_moments(type);
	}
	return arg;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	sem_init(&locked, 0, 0);
	let(all, NULL);
	all(NULL);
	return 0;
}
