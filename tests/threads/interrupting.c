/* SPDX-License-Identifier: MIT */
/*
 * Threads that signals and cancelation reach: while they wait, while they
 * compute, with masks, with SA_RESTART and without, in children of fork.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t hits;
static pthread_t hit;
static volatile int sent; /* was the cancelation */
static int pipe_fd[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;

static void on_signal(int signal)
{
	(void)signal;
	hits++;
	hit = pthread_self();
}

static void handle(int signal, int flags)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = flags };

	sigaction(signal, &action, NULL);
	hits = 0;
}

static void said(const char *what, long ret)
{
	printf("%s: %ld %s\n", what, ret, ret < 0 ? strerror(errno) : "");
}

static void *reads(void *arg)
{
	char c;

	said("read", read(pipe_fd[0], &c, 1));
	return arg;
}

static void *sleeps(void *arg)
{
	struct timespec t = { 50, 0 };

	said("nanosleep", nanosleep(&t, &t));
	printf("left %s\n", t.tv_sec < 50 && t.tv_sec > 20 ? "some" : "all");
	return arg;
}

static void *waits_for_sem(void *arg)
{
	said("sem_wait", sem_wait(&sem));
	return arg;
}

static void *polls(void *arg)
{
	struct pollfd p = { .fd = pipe_fd[0], .events = POLLIN };

	said("poll", poll(&p, 1, 5000));
	return arg;
}

static void *computes(void *arg)
{
	while (!hits)
		;
	return arg;
}

static void *waits_blocked(void *arg)
{
	sigset_t set, old;
	int got = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &old);
	raise(SIGUSR2);
	sigpending(&set);
	printf("blocked %d, pending %d", sigismember(&old, SIGUSR2),
	       sigismember(&set, SIGUSR2));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigwait(&set, &got);
	printf(", got %d\n", got == SIGUSR2);
	return arg;
}

static sigjmp_buf back;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static void *jumps(void *arg)
{
	struct sigaction action = { .sa_handler = jump };
	volatile int jumped = 0;
	sigset_t old;

	sigaction(SIGUSR2, &action, NULL);
	while (jumped < 3) {
		if (sigsetjmp(back, 1) == 0) {
			usleep(100);
			raise(SIGUSR2);
		}
		jumped++;
	}
	pthread_sigmask(SIG_BLOCK, NULL, &old);
	printf("jumped %d, blocked %d\n", jumped, sigismember(&old, SIGUSR2));
	return arg;
}

static void *faults(void *arg)
{
	struct sigaction action = { .sa_handler = jump };
	volatile int *volatile nowhere = NULL;
	volatile int caught = 0;

	sigaction(SIGSEGV, &action, NULL);
	while (caught < 3) {
		caught++;
		if (sigsetjmp(back, 1) == 0)
			*nowhere = 1;
	}
	printf("caught %d faults\n", caught);
	signal(SIGSEGV, SIG_DFL);
	return arg;
}

static void cleanup(void *arg)
{
	printf("cleanup of %s\n", (const char *)arg);
}

static void *canceled_read(void *arg)
{
	char c;

	pthread_cleanup_push(cleanup, "read");
	read(pipe_fd[0], &c, 1);
	pthread_cleanup_pop(0);
	return arg;
}

static void unlock(void *arg)
{
	printf("has the mutex: %d\n", pthread_mutex_trylock(arg) == EBUSY);
	pthread_mutex_unlock(arg);
}

static void *canceled_cond(void *arg)
{
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(unlock, &mutex);
	for (;;)
		pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(1);
	return arg;
}

static void *canceled_compute(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cleanup_push(cleanup, "computing");
	for (;;)
		;
	pthread_cleanup_pop(0);
	return arg;
}

static void *canceled_later(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (!sent)
		usleep(1000);
	printf("not canceled yet\n");
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_testcancel();
	printf("not reached\n");
	return arg;
}

static void *exits(void *arg)
{
	pthread_cleanup_push(cleanup, "exit");
	pthread_exit((void *)7);
	pthread_cleanup_pop(0);
	return arg;
}

static void *becomes_root(void *arg)
{
	said("setuid", setuid(getuid()));
	return arg;
}

static void *forks(void *arg)
{
	int status = 0;
	sigset_t mask;
	pid_t pid = fork();

	if (pid == 0) {
		sigprocmask(SIG_BLOCK, NULL, &mask);
		_exit(sigismember(&mask, SIGTERM) ? 1 : 5);
	}
	waitpid(pid, &status, 0);
	printf("child %d, ", WEXITSTATUS(status));
	printf("system %d\n", WEXITSTATUS(system("exit 3")));
	return arg;
}

static void *breaks_pipe(void *arg)
{
	int fd[2];

	pipe(fd);
	close(fd[0]);
	said("write", write(fd[1], "x", 1));
	close(fd[1]);
	return arg;
}

static void *result;

/* Has it ended within some time? */
static int joined(pthread_t thread, long ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return pthread_timedjoin_np(thread, &result, &t) == 0;
}

/*
 * @signal: sent until it ends, since nobody can know when it has begun to
 * wait; 0: none; -1: canceled.
 */
static void run(const char *name, void *(*start)(void *), int signal)
{
	pthread_t thread;

	hits = 0;
	sent = 0;
	pthread_create(&thread, NULL, start, NULL);
	if (signal < 0) {
		usleep(20000);
		pthread_cancel(thread);
		sent = 1;
	}
	if (signal > 0)
		while (!joined(thread, 20))
			pthread_kill(thread, signal);
	else
		pthread_join(thread, &result);
	printf("%s: %ld, handler %s\n", name,
	       result == PTHREAD_CANCELED ? -1 : (long)result,
	       !hits	     ? "did not run" :
	       hit == thread ? "in it" :
			       "elsewhere");
	fflush(stdout);
}

static void *feed(void *arg)
{
	while (!hits)
		usleep(1000);
	usleep(20000);
	write(pipe_fd[1], "x", 1);
	sem_post(&sem);
	return arg;
}

#define KILLS 300

static volatile int seen, turn;
static int late;

static void see(int signal)
{
	(void)signal;
	seen = 1;
}

static void *looks(void *arg)
{
	for (int i = 0; i < KILLS; i++) {
		while (turn != 1)
			usleep(1);
		late += !seen;
		seen = 0;
		turn = 2;
	}
	return arg;
}

/* What was done after pthread_kill() is seen after the handler, or nearly. */
static void handled_first(void)
{
	struct sigaction action = { .sa_handler = see };
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&thread, NULL, looks, NULL);
	for (int i = 0; i < KILLS; i++) {
		usleep(20);
		pthread_kill(thread, SIGUSR1);
		turn = 1;
		while (turn != 2)
			usleep(10);
	}
	pthread_join(thread, NULL);
	printf("handled first: %s\n", late < KILLS / 50 ? "yes" : "no");
}

static volatile int has_blocked, was_bound;

static void *blocks(void *arg)
{
	struct sigaction action;
	sigset_t set, now;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	has_blocked = 1;
	while (!was_bound)
		; /* at home, where it has not been away from */
	sigaction(SIGUSR2, NULL, &action);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	printf("still blocked: %d\n", sigismember(&now, SIGUSR1));
	return arg;
}

/* Called home by another thread, where it was: with the mask that it has. */
static void keeps_mask(void)
{
	pthread_t thread;
	struct sched_param param = { .sched_priority = 0 };

	pthread_create(&thread, NULL, blocks, NULL);
	while (!has_blocked)
		usleep(100);
	pthread_setschedparam(thread, SCHED_BATCH, &param);
	was_bound = 1;
	pthread_join(thread, NULL);
}

int main(void)
{
	pthread_t feeder;

	pipe(pipe_fd);
	sem_init(&sem, 0, 0);
	handle(SIGUSR1, 0);
	run("read", reads, SIGUSR1);
	run("sem_wait", waits_for_sem, SIGUSR1);
	run("nanosleep", sleeps, SIGUSR1);
	run("poll", polls, SIGUSR1);
	run("computing", computes, SIGUSR1);
	handle(SIGUSR1, SA_RESTART);
	pthread_create(&feeder, NULL, feed, NULL);
	run("read, restarted", reads, SIGUSR1);
	pthread_join(feeder, NULL);
	handle(SIGPIPE, 0);
	run("broken pipe", breaks_pipe, 0);
	run("blocked", waits_blocked, 0);
	run("jumps", jumps, 0);
	run("faults", faults, 0);
	run("canceled read", canceled_read, -1);
	run("canceled cond", canceled_cond, -1);
	run("canceled computing", canceled_compute, -1);
	run("canceled later", canceled_later, -1);
	run("exits", exits, 0);
	run("setuid", becomes_root, 0);
	run("forks", forks, 0);
	handled_first();
	keeps_mask();
	return 0;
}
