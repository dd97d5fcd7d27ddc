/* SPDX-License-Identifier: MIT */
/*
 * Attributes of threads: those that are asked for, and those that the process
 * has set for all; one thread after the other, since an older one may be used
 * again. And a process that is short of addresses.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

enum {
	CREATIONS = 2000
};

static void *tells(void *arg)
{
	pthread_attr_t attr;
	size_t guard, size;
	sigset_t mask;
	int how;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getguardsize(&attr, &guard);
	pthread_attr_getstacksize(&attr, &size);
	pthread_attr_getdetachstate(&attr, &how);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	printf("%s: guard %zu, stack %zu, %s, SIGUSR1 %s\n",
	       (const char *)arg, guard, size,
	       how == PTHREAD_CREATE_DETACHED ? "detached" : "joinable",
	       sigismember(&mask, SIGUSR1) ? "blocked" : "not blocked");
	usleep(1000);
	return NULL;
}

static void run(const pthread_attr_t *attr, const char *name)
{
	pthread_t thread;
	int bad = pthread_create(&thread, attr, tells, (void *)name);

	if (!bad)
		bad = pthread_join(thread, NULL);
	if (bad)
		printf("%s: %s\n", name, strerror(bad));
}

static int c11_tells(void *arg)
{
	tells(arg);
	return 7;
}

static void guards(void)
{
	static const size_t sizes[] = { 0, 4096, 65536, 4096, 16384 };
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		pthread_attr_setguardsize(&attr, sizes[i]);
		run(&attr, "asked for");
	}
	pthread_attr_destroy(&attr);
}

static void defaults(void)
{
	pthread_attr_t attr;
	sigset_t mask;
	thrd_t thread;
	int result;

	run(NULL, "usual");
	pthread_getattr_default_np(&attr);
	pthread_attr_setguardsize(&attr, 32768);
	pthread_attr_setstacksize(&attr, 1 << 20);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	pthread_attr_setsigmask_np(&attr, &mask);
	printf("set: %d\n", pthread_setattr_default_np(&attr));
	pthread_attr_destroy(&attr);
	run(NULL, "as set");
	pthread_attr_init(&attr);
	run(&attr, "as initialized");
	pthread_attr_destroy(&attr);
	thrd_create(&thread, c11_tells, "of C11");
	thrd_join(thread, &result);
	printf("result %d\n", result);
}

static void *nothing(void *arg)
{
	return arg;
}

/* Objects made before there are threads; threads that need all there is. */
static int in_little_space(void)
{
	struct rlimit limit = { 400 << 20, 400 << 20 };
	pthread_barrier_t barrier;
	pthread_attr_t attr;
	pthread_t thread;
	int made = 0;

	setrlimit(RLIMIT_AS, &limit);
	pthread_barrier_init(&barrier, NULL, 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 20);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; made < CREATIONS && i < 100 * CREATIONS; i++) {
		int bad = pthread_create(&thread, &attr, nothing, NULL);

		if (bad == EAGAIN)
			usleep(100);
		made += !bad;
	}
	printf("made %d, barrier %d\n", made,
	       pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
	fflush(stdout);
	_exit(0);
}

int main(void)
{
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (fork() == 0)
		in_little_space();
	wait(&status);
	printf("status %d\n", status);
	guards();
	defaults();
	return 0;
}
