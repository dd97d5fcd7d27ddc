/* SPDX-License-Identifier: MIT */
/* Threads that come and go: what a new one must not see of an old one. */
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NR 2000

static __thread int local = 5;
static __thread char zero[100];
static pthread_key_t key;
static int destroyed, wrong;

static void destroy(void *value)
{
	(void)value;
	__atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static void *lives(void *arg)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (local != 5 || zero[99] || pthread_getspecific(key) ||
	    state != PTHREAD_CANCEL_ENABLE)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
	local = 6;
	zero[99] = 1;
	pthread_setspecific(key, arg);
	return arg;
}

static void *detaches(void *arg)
{
	pthread_detach(pthread_self());
	lives(arg);
	return NULL;
}

static void *sleeps(void *arg)
{
	usleep(20000);
	return arg;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *is_let_go(void *arg)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return arg;
}

static volatile int storming;
static pthread_t creator;

static void ignore(int signal)
{
	(void)signal;
}

static void *storms(void *arg)
{
	while (storming)
		pthread_kill(creator, SIGUSR1);
	return arg;
}

static void *has_no_mask(void *arg)
{
	sigset_t mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	if (sigismember(&mask, SIGUSR1) || sigismember(&mask, SIGTERM))
		__atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
	return arg;
}

/* What is kept from a creator's handlers is not the new thread's mask. */
static void in_a_storm(void)
{
	struct sigaction action = { .sa_handler = ignore,
				    .sa_flags = SA_RESTART };
	pthread_t sender, thread;
	pthread_attr_t attr;

	creator = pthread_self();
	sigaction(SIGUSR1, &action, NULL);
	pthread_attr_init(&attr);
	storming = 1;
	pthread_create(&sender, NULL, storms, NULL);
	for (int i = 0; i < NR; i++) {
		/* Of another size each: none is a kept one. */
		pthread_attr_setstacksize(&attr, (64 + (size_t)i) * 4096);
		pthread_create(&thread, &attr, has_no_mask, NULL);
		pthread_join(thread, NULL);
	}
	storming = 0;
	pthread_join(sender, NULL);
	printf("in a storm: wrong %d\n", wrong);
}

/* A mask asked for by an attribute, of a new thread and of a kept one. */
static void with_a_mask(void)
{
	pthread_attr_t attr;
	sigset_t set;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_attr_init(&attr);
	pthread_attr_setsigmask_np(&attr, &set);
	wrong = 0;
	for (int i = 0; i < 4; i++) {
		pthread_create(&thread, i < 3 ? &attr : NULL, has_no_mask,
			       NULL);
		pthread_join(thread, NULL);
	}
	printf("with a mask: %d of 3\n", wrong);
	pthread_attr_destroy(&attr);
}

static int c11(void *arg)
{
	return arg ? 9 : 0;
}

static void churn(void)
{
	long sum = 0;

	for (long i = 1; i <= NR; i++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, NULL, lives, (void *)i);
		pthread_join(thread, &result);
		sum += (long)result;
	}
	printf("churn: %ld, destroyed %d, wrong %d\n", sum, destroyed, wrong);
}

static void detached(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	int before = destroyed;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (long i = 1; i <= NR; i++)
		pthread_create(&thread, i % 2 ? &attr : NULL,
			       i % 2 ? lives : detaches, (void *)i);
	for (int i = 0; i < 1000 && destroyed - before < NR; i++)
		usleep(10000);
	printf("detached: %d, wrong %d\n", destroyed - before, wrong);
}

static void joins(void)
{
	struct timespec now, before = { -1, -1 }, none = { 1, 2000000000 };
	pthread_t thread;
	pthread_attr_t attr;
	void *result = NULL;
	int how;

	pthread_mutex_lock(&gate);
	pthread_create(&thread, NULL, is_let_go, (void *)3);
	printf("self %d, ", pthread_join(pthread_self(), NULL) == EDEADLK);
	printf("try %d, ", pthread_tryjoin_np(thread, NULL) == EBUSY);
	clock_gettime(CLOCK_REALTIME, &now);
	printf("timed %d, ",
	       pthread_timedjoin_np(thread, NULL, &now) == ETIMEDOUT);
	printf("before time %d, ",
	       pthread_timedjoin_np(thread, NULL, &before) == ETIMEDOUT);
	printf("bad clock %d, ",
	       pthread_clockjoin_np(thread, NULL, CLOCK_PROCESS_CPUTIME_ID,
				    &now) == EINVAL);
	pthread_mutex_unlock(&gate);
	printf("joined %d ", pthread_join(thread, &result));
	printf("with %ld\n", (long)result);
	pthread_create(&thread, NULL, sleeps, (void *)4);
	printf("until no moment %d ",
	       pthread_timedjoin_np(thread, &result, &none));
	printf("with %ld\n", (long)result);
	pthread_create(&thread, NULL, sleeps, NULL);
	pthread_detach(thread);
	printf("detached twice %d, ", pthread_detach(thread) == EINVAL);
	printf("joined %d, ", pthread_join(thread, NULL) == EINVAL);
	pthread_getattr_np(thread, &attr);
	pthread_attr_getdetachstate(&attr, &how);
	printf("attribute %d\n", how == PTHREAD_CREATE_DETACHED);
}

static void of_c11(void)
{
	thrd_t thread;
	int result = 0;

	printf("thrd_create %d, ", thrd_create(&thread, c11, &result));
	printf("thrd_join %d, ", thrd_join(thread, &result));
	printf("result %d\n", result);
}

int main(void)
{
	pthread_key_create(&key, destroy);
	churn();
	detached();
	joins();
	of_c11();
	in_a_storm();
	with_a_mask();
	return 0;
}
