/* SPDX-License-Identifier: MIT */
/*
 * Threads for observers: one that reads a pipe for good, one that waits for a
 * lock, one that computes, and the first one, which says "ready".
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static volatile uint64_t turns;
static volatile int waiting;

__attribute__((noinline)) static void reads_for_good(void)
{
	char byte;

	waiting++;
	if (read(ends[0], &byte, 1) != 1)
		_exit(1);
}

__attribute__((noinline)) static void waits_for_lock(void)
{
	waiting++;
	pthread_mutex_lock(&lock);
}

__attribute__((noinline)) static void computes(void)
{
	usleep(1); /* from here on it is on a carrier */
	waiting++;
	for (;;)
		turns++;
}

static void *run(void *what)
{
	((void (*)(void))what)();
	return NULL;
}

int main(void)
{
	void (*const jobs[])(void) = { reads_for_good, waits_for_lock,
				       computes };
	static const char *const names[] = { "reads", "waits", "computes" };
	pthread_t thread;

	if (pipe(ends))
		return 1;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 3; i++) {
		if (pthread_create(&thread, NULL, run, (void *)jobs[i]))
			return 1;
		pthread_setname_np(thread, names[i]);
		while (waiting <= i)
			usleep(1000);
	}
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
