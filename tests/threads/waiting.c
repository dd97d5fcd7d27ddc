/* SPDX-License-Identifier: MIT */
/* Threads that wait for each other in every way that POSIX has. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NR 8
#define ROUNDS 2000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t sem;
static int turn, serial, written, counted, begun;

static void begin(void)
{
	usleep(1000);
	begun++;
}

static struct timespec soon(clockid_t clock, long ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ns;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void use_rwlock(int write)
{
	int before;

	if (!write) {
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		return;
	}
	pthread_rwlock_wrlock(&rwlock);
	before = written;
	sched_yield();
	written = before + 1;
	pthread_rwlock_unlock(&rwlock);
}

static void time_out(void)
{
	struct timespec t = soon(CLOCK_REALTIME, 1000);

	if (sem_timedwait(&sem, &t) == 0)
		sem_post(&sem);
	if (pthread_rwlock_timedwrlock(&rwlock, &t) == 0)
		pthread_rwlock_unlock(&rwlock);
	if (pthread_mutex_timedlock(&mutex, &t) == 0)
		pthread_mutex_unlock(&mutex);
}

static void *all_kinds(void *arg)
{
	long me = (long)arg;

	pthread_once(&once, begin);
	for (int i = 0; i < ROUNDS; i++) {
		if (pthread_barrier_wait(&barrier) ==
		    PTHREAD_BARRIER_SERIAL_THREAD)
			__atomic_fetch_add(&serial, 1, __ATOMIC_SEQ_CST);
		use_rwlock(i % 10 == me);
		sem_wait(&sem);
		pthread_spin_lock(&spin);
		counted++;
		pthread_spin_unlock(&spin);
		sem_post(&sem);
		if (i % 50 == 0)
			time_out();
	}
	return arg;
}

static void *take_turns(void *arg)
{
	long me = (long)arg;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != me)
			pthread_cond_wait(&cond, &mutex);
		turn = !me;
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return (void *)(me + 10);
}

static void *give_up(void *arg)
{
	struct timespec t = soon(CLOCK_REALTIME, 5000000);
	int bad;

	pthread_mutex_lock(&mutex);
	do
		bad = pthread_cond_timedwait(&cond, &mutex, &t);
	while (!bad);
	pthread_mutex_unlock(&mutex);
	return bad == ETIMEDOUT ? arg : NULL;
}

static void run(const char *name, void *(*start)(void *), int nr)
{
	pthread_t thread[NR];
	long sum = 0;
	void *result;

	for (long i = 0; i < nr; i++)
		if (pthread_create(&thread[i], NULL, start, (void *)i))
			abort();
	for (int i = 0; i < nr; i++) {
		pthread_join(thread[i], &result);
		sum += (long)result;
	}
	printf("%s: %ld\n", name, sum);
}

static void kinds_of_mutex(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t m;

	for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ERRORCHECK;
	     type++) {
		pthread_mutexattr_init(&attr);
		pthread_mutexattr_settype(&attr, type);
		pthread_mutex_init(&m, &attr);
		printf("type %d: lock %d", type, pthread_mutex_lock(&m));
		printf(", try %d", pthread_mutex_trylock(&m));
		if (type != PTHREAD_MUTEX_NORMAL)
			printf(", again %d", pthread_mutex_lock(&m));
		printf(", destroy %d", pthread_mutex_destroy(&m));
		while (type == PTHREAD_MUTEX_RECURSIVE && m.__data.__count > 1)
			pthread_mutex_unlock(&m);
		printf(", unlock %d", pthread_mutex_unlock(&m));
		if (type != PTHREAD_MUTEX_NORMAL)
			printf(", again %d", pthread_mutex_unlock(&m));
		printf(", destroy %d\n", pthread_mutex_destroy(&m));
	}
}

static void *try_kinds(void *arg)
{
	kinds_of_mutex();
	return arg;
}

int main(void)
{
	pthread_barrier_init(&barrier, NULL, NR);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	sem_init(&sem, 0, 2);
	kinds_of_mutex();
	run("all kinds", all_kinds, NR);
	run("take turns", take_turns, 2);
	run("give up", give_up, NR);
	run("kinds of mutex", try_kinds, 1);
	printf("%d rounds, %d written, %d counted, %d begun\n", serial, written,
	       counted, begun);
	return 0;
}
