/* SPDX-License-Identifier: MIT */
/*
 * What the end of a thread must not lose: signals of the process that it was
 * given, cancelations that came before it ran, its process's exit status.
 */
#include "until.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SIGNALS = 3000,
	EARLY = 50,
	FORKS = 20,
	LATE = 1000
};

static sem_t handled[2];
static volatile int nr_sending;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void on_signal(int signal)
{
	sem_post(&handled[signal == SIGUSR2]);
}

static void *sends(void *arg)
{
	int signal = *(int *)arg;

	for (int i = 0; i < SIGNALS; i++) {
		kill(getpid(), signal);
		while (sem_wait(&handled[signal == SIGUSR2]))
			;
	}
	__atomic_fetch_sub(&nr_sending, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *ends(void *arg)
{
	return arg;
}

/* Has the signals unblocked, and so have the threads that it makes. */
static void *makes(void *arg)
{
	const sigset_t *signals = arg;
	pthread_attr_t small;
	pthread_t thread;

	pthread_sigmask(SIG_UNBLOCK, signals, NULL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
	for (int i = 0; __atomic_load_n(&nr_sending, __ATOMIC_ACQUIRE); i++) {
		if (pthread_create(&thread, i % 2 ? &small : NULL, ends, NULL))
			continue;
		if (i % 4 < 2)
			pthread_join(thread, NULL);
		else
			pthread_detach(thread);
	}
	pthread_attr_destroy(&small);
	return NULL;
}

static void loses_no_signal(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	int numbers[2] = { SIGUSR1, SIGUSR2 };
	pthread_t sender[2], maker;
	sigset_t signals;

	sigemptyset(&signals);
	nr_sending = 2;
	for (int i = 0; i < 2; i++) {
		sigaddset(&signals, numbers[i]);
		sem_init(&handled[i], 0, 0);
		sigaction(numbers[i], &action, NULL);
	}
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	pthread_create(&maker, NULL, makes, &signals);
	for (int i = 0; i < 2; i++)
		pthread_create(&sender[i], NULL, sends, &numbers[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(sender[i], NULL);
	pthread_join(maker, NULL);
	printf("all signals were handled\n");
}

static void *sleeps(void *arg)
{
	sleep(100);
	return arg;
}

static void *locks(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_mutex_lock(&mutex);
	return arg;
}

static void is_canceled(void *(*start)(void *), useconds_t after_us)
{
	int nr = 0;

	for (int i = 0; i < EARLY; i++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, NULL, start, NULL);
		if (after_us)
			usleep(after_us);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		nr += result == PTHREAD_CANCELED;
	}
	printf("canceled %d times\n", nr);
}

static void leave(void)
{
	_exit(3);
}

/* Perhaps before its creator has returned from pthread_create(). */
static void *forks(void *arg)
{
	int status = -1;
	pid_t pid = fork();

	(void)arg;
	if (pid == 0) {
		atexit(leave);
		pthread_exit(NULL);
	}
	waitpid(pid, &status, 0);
	return (void *)(intptr_t)status;
}

static void child_ends(void)
{
	for (int i = 0; i < FORKS; i++) {
		pthread_t thread;
		void *status;

		pthread_create(&thread, NULL, forks, NULL);
		pthread_join(thread, &status);
		if (WEXITSTATUS((int)(intptr_t)status) != 3)
			printf("the child ended with %lx\n",
			       (long)(intptr_t)status);
	}
}

static void farewell(void)
{
	printf("the process ends\n");
}

static void *is_last(void *arg)
{
	usleep(20000);
	printf("the last thread ends\n");
	return arg;
}

static sem_t may_end, in_handler, may_return, ends_now;
static pthread_key_t key;

/* In the last round, when no destructor follows that could tidy up. */
static void in_last_round(void *value)
{
	uintptr_t round = (uintptr_t)value;

	if (round < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(key, (void *)(round + 1));
	else
		sem_post(&ends_now);
}

static void *is_joined(void *arg)
{
	while (sem_wait(&may_end))
		;
	pthread_setspecific(key, (void *)1);
	pthread_exit(arg);
}

static void on_interrupt(int signal)
{
	(void)signal;
	sem_post(&in_handler);
	while (sem_wait(&may_return))
		;
}

static void *joins(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL);
	return arg;
}

/* What joins looks again when the other one has used a semaphore at its end. */
static void used_at_its_end(void)
{
	struct sigaction action = { .sa_handler = on_interrupt };
	pthread_t thread, joiner;

	sigaction(SIGHUP, &action, NULL);
	sem_init(&may_end, 0, 0);
	sem_init(&in_handler, 0, 0);
	sem_init(&may_return, 0, 0);
	sem_init(&ends_now, 0, 0);
	pthread_key_create(&key, in_last_round);
	pthread_create(&thread, NULL, is_joined, NULL);
	pthread_create(&joiner, NULL, joins, &thread);
	usleep(20000);
	pthread_kill(joiner, SIGHUP);
	sem_wait(&in_handler);
	sem_post(&may_end);
	sem_wait(&ends_now);
	usleep(20000);
	sem_post(&may_return);
	pthread_join(joiner, NULL);
	printf("joined\n");
}

/* Of the library's records; natively there are none. */
static unsigned nr_records(void)
{
	struct flexsc_process **shown = dlsym(RTLD_DEFAULT, "flexsc_process");
	uint64_t record, next;
	unsigned nr = 0;

	if (!shown || !*shown || (*shown)->declined[0])
		return 0;
	next = word_at((*shown)->threads, 0);
	do {
		record = next;
		next = word_at(record, (*shown)->thread.next);
		nr++;
	} while (next != record);
	return nr;
}

static void leaves_nothing(void)
{
	unsigned before = nr_records();

	for (int i = 0; i < LATE; i++) {
		pthread_t thread;

		sem_post(&may_end);
		pthread_create(&thread, NULL, is_joined, NULL);
		pthread_join(thread, NULL);
	}
	if (nr_records() - before > LATE / 2)
		printf("%u records of %u\n", nr_records() - before, LATE);
}

int main(void)
{
	pthread_t thread;

	loses_no_signal();
	used_at_its_end();
	leaves_nothing();
	is_canceled(sleeps, 0);
	pthread_mutex_lock(&mutex);
	is_canceled(locks, 2000);
	pthread_mutex_unlock(&mutex);
	fflush(stdout);
	child_ends();
	atexit(farewell);
	pthread_create(&thread, NULL, is_last, NULL);
	pthread_detach(thread);
	pthread_exit(NULL);
}
