/* SPDX-License-Identifier: MIT */
/*
 * Threads that end in code without unwind tables: what is to be done at their
 * end is done all the same. (Built without tables.)
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int nr_inits;
static pthread_barrier_t barrier;
static pthread_key_t key;

static void on_exit_of_thread(void *value)
{
	printf("key: %s\n", (const char *)value);
}

static void cleaned(void *arg)
{
	printf("handler: %s\n", (const char *)arg);
}

static __attribute__((noinline)) void init(void)
{
	if (nr_inits++)
		return;
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
}

static void *in_once(void *arg)
{
	pthread_setspecific(key, "once");
	pthread_cleanup_push(cleaned, arg);
	pthread_once(&once, init);
	pthread_cleanup_pop(0);
	return NULL;
}

static __attribute__((noinline)) void deep(int depth)
{
	volatile int here = depth;

	if (!here)
		pthread_exit("deep");
	if (here > 0)
		deep(here - 1);
	__asm__ volatile("" ::: "memory");
}

static void *exits(void *arg)
{
	pthread_setspecific(key, "exit");
	usleep(1000); /* lent from here on, if it ever is */
	deep(10);
	return arg;
}

int main(void)
{
	pthread_t thread;
	void *result;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_key_create(&key, on_exit_of_thread);
	pthread_create(&thread, NULL, in_once, "in once");
	pthread_barrier_wait(&barrier);
	usleep(20000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("canceled in once: %d\n", result == PTHREAD_CANCELED);
	pthread_create(&thread, NULL, in_once, "not to be called");
	pthread_join(thread, &result);
	printf("once more: %d, %d inits\n", result == NULL, nr_inits);
	pthread_create(&thread, NULL, exits, NULL);
	pthread_join(thread, &result);
	printf("exit: %s\n", (const char *)result);
	return 0;
}
