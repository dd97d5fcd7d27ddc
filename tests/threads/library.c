/* SPDX-License-Identifier: MIT */
/*
 * What the C library waits for inside of itself, and the first thread: a
 * cancelation in the middle of stdio, waits that handlers interrupt, timers on
 * the clock of a thread that computes.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t both;

/* stdio's write is a blocking call that programs do not see. */
static void *writes(void *arg)
{
	FILE *file = arg;

	pthread_barrier_wait(&both);
	for (;;)
		fputs("some text that fills the buffer soon enough\n", file);
	return NULL;
}

static void cancel_in_stdio(void)
{
	pthread_t thread;
	void *result;
	int nr = 0;

	for (int i = 0; i < 200; i++) {
		FILE *file = fopen("/dev/null", "w");

		setvbuf(file, NULL, _IOFBF, 64);
		pthread_create(&thread, NULL, writes, file);
		pthread_barrier_wait(&both);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		nr += result == PTHREAD_CANCELED;
	}
	printf("canceled in stdio: %d\n", nr);
}

/* Anywhere: on its way to a call that only its own kernel thread can make. */
static void *pauses(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_barrier_wait(&both);
	for (;;)
		syscall(SYS_pause);
	return arg;
}

static void cancel_anywhere(void)
{
	pthread_t thread;
	void *result;
	int nr = 0;

	for (int i = 0; i < 300; i++) {
		pthread_create(&thread, NULL, pauses, NULL);
		pthread_barrier_wait(&both);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		nr += result == PTHREAD_CANCELED;
	}
	printf("canceled anywhere: %d\n", nr);
}

static void on_abort(int signal)
{
	(void)signal;
	_exit(7);
}

static sem_t changed;

static void *changes_itself(void *arg)
{
	syscall(SYS_setresuid, 2001, 2002, 2003);
	sem_post(&changed);
	sem_wait(arg);
	return NULL;
}

/* Only the superuser's credentials can differ so; the process is aborted. */
static void differ(void)
{
	pthread_t thread;
	sem_t never;
	int status;

	fflush(stdout);
	if (getuid() == 0 && fork() == 0) {
		sem_init(&changed, 0, 0);
		sem_init(&never, 0, 0);
		signal(SIGABRT, on_abort);
		pthread_create(&thread, NULL, changes_itself, &never);
		sem_wait(&changed);
		_exit(setresuid(1001, 1002, 1003) ? 1 : 2);
	}
	if (getuid() == 0)
		wait(&status);
	printf("different credentials: %d\n",
	       getuid() == 0 ? WEXITSTATUS(status) : 7);
}

static void *joins(void *arg)
{
	int bad = pthread_join(*(pthread_t *)arg, NULL);

	printf("joined the first: %d\n", bad);
	return NULL;
}

/* The first thread ends before the others. */
static void join_first(bool canceled)
{
	static pthread_t first, thread;
	int status;

	fflush(stdout);
	if (fork() == 0) {
		first = pthread_self();
		pthread_create(&thread, NULL, joins, &first);
		usleep(10000);
		if (canceled)
			pthread_cancel(first);
		pthread_testcancel();
		pthread_exit(NULL);
	}
	wait(&status);
	printf("status %d\n", status);
}

static int handled;

static void on_signal(int signal)
{
	(void)signal;
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *waits(void *arg)
{
	int woken = 0;

	(void)arg;
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&both);
	/* Not in a loop: that is what is tested. */
	woken = pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return (void *)(intptr_t)(woken + 10 * handled);
}

static void handlers_in_wait(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread;
	void *result;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&thread, NULL, waits, NULL);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&mutex); /* it waits */
	for (int i = 1; i <= 20; i++) {
		pthread_kill(thread, SIGUSR1);
		while (__atomic_load_n(&handled, __ATOMIC_RELAXED) != i)
			usleep(100);
	}
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, &result);
	printf("woken after handlers: %d\n", (int)(intptr_t)result);
}

static void *takes(void *arg)
{
	struct timespec soon = { time(NULL) + 5, 0 };

	pthread_barrier_wait(&both);
	return sem_timedwait(arg, &soon) ? "failed" : "taken";
}

static void semaphores(void)
{
	struct timespec bad = { time(NULL) + 5, -1 };
	pthread_t thread;
	void *result;
	sem_t sem;

	sem_init(&sem, 0, 3);
	pthread_create(&thread, NULL, takes, &sem);
	pthread_cancel(thread);
	pthread_barrier_wait(&both);
	pthread_join(thread, &result);
	printf("canceled before it took: %d\n", result == PTHREAD_CANCELED);
	errno = 0;
	printf("a bad time: %d", sem_timedwait(&sem, &bad));
	printf(", %s\n", strerror(errno));
	bad.tv_nsec = 0;
	printf("a bad clock: %d",
	       sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &bad));
	printf(", %s\n", strerror(errno));
}

enum {
	FORKS = 300
};

static volatile int nr_forked, nr_bad;

static void on_signal_fork(int signal)
{
	int status = -1;
	pid_t pid = _Fork();

	(void)signal;
	if (pid == 0)
		_exit(3);
	waitpid(pid, &status, 0);
	nr_bad += !WIFEXITED(status) || WEXITSTATUS(status) != 3;
	nr_forked++;
}

static void *sends(void *arg)
{
	for (int i = 0; i < FORKS; i++) {
		pthread_kill(*(pthread_t *)arg, SIGUSR2);
		while (nr_forked <= i)
			usleep(50);
	}
	return arg;
}

/* Whose process is in the middle of malloc(), with its locks. */
static void fork_in_handler(void)
{
	struct sigaction action = { .sa_handler = on_signal_fork,
				    .sa_flags = SA_RESTART };
	pthread_t thread, self = pthread_self();

	sigaction(SIGUSR2, &action, NULL);
	pthread_create(&thread, NULL, sends, &self);
	while (nr_forked < FORKS) {
		void *volatile p = malloc(5000 + 7 * (size_t)nr_forked);

		free(p);
	}
	pthread_join(thread, NULL);
	printf("forked in handlers: %d, bad %d\n", nr_forked, nr_bad);
}

static volatile bool enough;

static void *computes(void *arg)
{
	pthread_barrier_wait(&both);
	if (arg) /* on a carrier, where there are some */
		usleep(1000);
	while (!enough)
		;
	return NULL;
}

static long ms_of(const struct timespec *ts)
{
	return ts->tv_sec * 1000 + ts->tv_nsec / 1000000;
}

/* Waiting for a thread's CPU time, which must not take for ever. */
static void clocks(void *lent)
{
	struct timespec now, until = { 0, 20000000 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1 };
	struct itimerspec in = { .it_value = until };
	int before = handled, bad;
	pthread_t thread;
	clockid_t clock;
	timer_t timer;

	enough = false;
	pthread_create(&thread, NULL, computes, lent);
	bad = pthread_getcpuclockid(thread, &clock);
	pthread_barrier_wait(&both);
	usleep(20000);
	bad |= clock_nanosleep(clock, 0, &until, NULL);
	clock_gettime(clock, &now);
	until = now;
	until.tv_nsec += 20000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	bad |= clock_nanosleep(clock, TIMER_ABSTIME, &until, NULL);
	clock_gettime(clock, &now);
	printf("slept: %d, late %d\n", bad, ms_of(&now) < ms_of(&until));
	bad = timer_create(clock, &event, &timer);
	bad |= timer_settime(timer, 0, &in, NULL);
	while (__atomic_load_n(&handled, __ATOMIC_RELAXED) == before)
		usleep(1000);
	clock_gettime(clock, &now);
	in.it_value = now;
	bad |= timer_settime(timer, TIMER_ABSTIME, &in, NULL);
	while (__atomic_load_n(&handled, __ATOMIC_RELAXED) == before + 1)
		usleep(1000);
	timer_delete(timer);
	enough = true;
	pthread_join(thread, NULL);
	printf("timer: %d\n", bad);
}

int main(void)
{
	pthread_barrier_init(&both, NULL, 2);
	semaphores();
	cancel_in_stdio();
	cancel_anywhere();
	differ();
	join_first(false);
	join_first(true);
	handlers_in_wait();
	clocks(NULL);
	clocks("lent");
	fork_in_handler();
	return 0;
}
