/* SPDX-License-Identifier: MIT */
/* A thread's CPU clock counts its own work, and nobody else's. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long ms_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *works(void *arg)
{
	long begin = ms_of(CLOCK_THREAD_CPUTIME_ID), now;
	clockid_t clock;

	/* Others run in between. */
	do {
		usleep(10);
		now = ms_of(CLOCK_THREAD_CPUTIME_ID);
		for (volatile int i = 0; i < 100000; i++)
			;
	} while (now - begin < 50);
	pthread_getcpuclockid(pthread_self(), &clock);
	*(long *)arg = ms_of(clock) - begin;
	return NULL;
}

static void *idles(void *arg)
{
	long begin = ms_of(CLOCK_THREAD_CPUTIME_ID);

	usleep(200000);
	*(long *)arg = ms_of(CLOCK_THREAD_CPUTIME_ID) - begin;
	return NULL;
}

int main(void)
{
	long used[4] = { 0 };
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, i ? works : idles, &used[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	printf("idle: %s\n", used[0] < 20 ? "little" : "much");
	for (int i = 1; i < 4; i++)
		printf("busy: %s\n",
		       used[i] >= 50 && used[i] < 100 ? "its own" : "wrong");
	return 0;
}
