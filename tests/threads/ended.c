/* SPDX-License-Identifier: MIT */
/*
 * A thread that has ended and was not joined yet: signals do nothing, its clock
 * is gone. And whose number and name are told where threads are elsewhere.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pid_t tid;
static clockid_t clock_of_it;

static void *ends(void *arg)
{
	__atomic_store_n(&tid, gettid(), __ATOMIC_RELEASE);
	return arg;
}

static void *tells_clock(void *arg)
{
	pthread_getcpuclockid(pthread_self(), &clock_of_it);
	return ends(arg);
}

static char state_of(pid_t thread)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%*d %*s %c", &state) != 1)
		state = 0;
	fclose(file);
	return state;
}

/* Natively its kernel thread goes; here it may sleep. */
static pthread_t one_that_has_ended(void *(*start)(void *))
{
	pthread_t thread;
	int asleep = 0;
	char state;

	tid = 0;
	pthread_create(&thread, NULL, start, &tid);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		usleep(1000);
	while (asleep < 20 && (state = state_of(tid))) {
		asleep = state == 'S' ? asleep + 1 : 0;
		usleep(2000);
	}
	return thread;
}

static void join(pthread_t thread)
{
	void *result = NULL;
	int bad = pthread_join(thread, &result);

	printf("join: %s, %s\n", strerror(bad),
	       result == &tid ? "its result" : "another");
}

/* Nobody has it. */
static void by_number(const char *what)
{
	pid_t me = getpid();

	printf("%s: %d %d %d", what, tgkill(me, tid, 0),
	       tgkill(me, tid, SIGUSR1), errno == ESRCH);
	printf(" %ld %ld", syscall(SYS_tgkill, me, tid, SIGUSR1),
	       syscall(SYS_tkill, tid, SIGUSR1));
	printf(" %d %d\n", kill(tid, SIGUSR1), errno == ESRCH);
	printf("first thread: %d %d\n", tgkill(me, me, 0), kill(me, 0));
}

static void signals(void)
{
	const union sigval value = { .sival_int = 1 };
	pthread_t thread = one_that_has_ended(ends);
	clockid_t clock;

	/* Nobody handles it. */
	printf("kill: %s\n", strerror(pthread_kill(thread, SIGUSR1)));
	printf("kill 0: %s\n", strerror(pthread_kill(thread, 0)));
	printf("sigqueue: %s\n",
	       strerror(pthread_sigqueue(thread, SIGUSR1, value)));
	printf("clock: %s\n", strerror(pthread_getcpuclockid(thread, &clock)));
	printf("cancel: %s\n", strerror(pthread_cancel(thread)));
	by_number("by number");
	join(thread);
	by_number("joined");
}

static void clocks(void)
{
	pthread_t thread = one_that_has_ended(tells_clock);
	struct timespec ts;

	join(thread);
	while (state_of(tid))
		usleep(1000);
	printf("its clock: %d\n", clock_gettime(clock_of_it, &ts));
}

static void *names(void *arg)
{
	char path[64], name[32] = "";
	sem_t *sem = arg;
	FILE *file;

	for (int i = 0; i < 2; i++) {
		usleep(100); /* away, if it can be */
		printf("number: %d\n", syscall(SYS_gettid) == gettid());
		usleep(100);
		prctl(PR_SET_NAME, i ? "second" : "first");
		usleep(100);
		prctl(PR_GET_NAME, name);
		snprintf(path, sizeof(path), "/proc/self/task/%d/comm",
			 gettid());
		printf("name: %s, ", name);
		file = fopen(path, "r");
		if (file && fgets(name, sizeof(name), file))
			printf("%s", name);
		if (file)
			fclose(file);
	}
	sem_post(sem);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	sem_t sem;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sem_init(&sem, 0, 0);
	signals();
	clocks();
	pthread_create(&thread, NULL, names, &sem);
	sem_wait(&sem);
	pthread_join(thread, NULL);
	return 0;
}
