/* SPDX-License-Identifier: MIT */
/*
 * Engines below tasks: signals of their own, kernel threads that change below
 * them, and SIGPIPE, which nobody suppresses because all carriers block it.
 */
#include "threads.h"

#include "engine/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIGNAL 32 /* SIGCANCEL */

static int nr_masks;

/* In place of the C library's. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	__atomic_add_fetch(&nr_masks, 1, __ATOMIC_RELAXED);
	return (int)-syscall(SYS_rt_sigprocmask, how, set, old, 8);
}

static void burn(uint64_t ns)
{
	uint64_t end = fx_now_ns() + ns;

	while (fx_now_ns() < end)
		;
}

/* SIGPIPE ------------------------------------------------------------------ */

static void broken(struct thread *t)
{
	struct fx_task *me = &t->task;
	int before, fds[2], sockets[2];
	char c = 0;

	EXPECT(pipe(fds) == 0 && close(fds[0]) == 0);
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	close(sockets[0]);
	before = __atomic_load_n(&nr_masks, __ATOMIC_RELAXED);
	for (int i = 0; i < 1000; i++) {
		EXPECT(call3(me, SYS_write, (uint64_t)fds[1], (uintptr_t)&c,
			     1) == -EPIPE);
		EXPECT(call3(me, SYS_write, (uint64_t)sockets[1], (uintptr_t)&c,
			     1) == -EPIPE);
		EXPECT(call3(me, SYS_write, (uint64_t) * (int *)t->arg,
			     (uintptr_t)&c, 1) == 1);
	}
	EXPECT(__atomic_load_n(&nr_masks, __ATOMIC_RELAXED) - before < 10);
}

static void no_masks(void)
{
	char name[] = "/tmp/flexsc-signals-XXXXXX";
	int fd = mkstemp(name);

	unlink(name);
	scheduler(1);
	threads_run(1, broken, &fd);
}

/* Memory -------------------------------------------------------------------- */

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define COUNT_MEMORY 1
static __thread bool in_allocator;
static unsigned nr_entered;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);

static void entered(void)
{
	if (in_allocator)
		__atomic_add_fetch(&nr_entered, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
	entered();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	entered();
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	entered();
	return __libc_realloc(p, size);
}

/* As an allocator that waits for its own lock, with its state half made. */
static void allocating(struct thread *t)
{
	int fds[2], high;
	char c;

	EXPECT(pipe(fds) == 0);
	high = fcntl(fds[0], F_DUPFD, 1030);
	in_allocator = true;
	sleep_ns(t, 20 * FX_NS_PER_MS);
	EXPECT(call3(&t->task, SYS_write, (uint64_t)fds[1], (uintptr_t) "",
		     1) == 1);
	EXPECT(call3(&t->task, SYS_read, (uint64_t)(high < 0 ? fds[0] : high),
		     (uintptr_t)&c, 1) == 1);
	in_allocator = false;
}

/* Enough of them for the heap of deadlines to grow. */
static void no_allocation(void)
{
	scheduler(1);
	threads_run(200, allocating, NULL);
	EXPECT(nr_entered == 0);
}
#endif

/* The thread below changes ------------------------------------------------- */

static char fifo[64];

static int64_t open_file(struct fx_task *me, const char *name)
{
	struct flexsc_entry call = { .nr = SYS_openat, .nr_args = 4 };

	call.args[0] = (uint64_t)AT_FDCWD;
	call.args[1] = (uintptr_t)name;
	call.args[2] = O_RDONLY;
	return fx_call(me, &call, "open", NULL, 0, NULL);
}

static unsigned opening, nr_ticks, opened;

static void opener(struct thread *t)
{
	uint64_t before = COUNTED(handoffs);
	int64_t fd;

	for (int i = 0; i < 5; i++) {
		uint64_t end = fx_now_ns() + 5 * FX_NS_PER_SEC;

		fd = open_file(&t->task, "/dev/null");
		EXPECT(fd >= 0);
		close((int)fd);
		/* Stuck, until somebody else has the queue. */
		while (COUNTED(handoffs) == before && fx_now_ns() < end)
			burn(100 * FX_NS_PER_US);
		EXPECT(COUNTED(handoffs) > before);
		before = COUNTED(handoffs);
	}
	__atomic_store_n(&opening, 1, __ATOMIC_RELEASE);
	fd = open_file(&t->task, fifo);
	EXPECT(fd >= 0);
	close((int)fd);
	__atomic_store_n(&opened, 1, __ATOMIC_RELEASE);
}

static void ticker(struct thread *t)
{
	if (t->number == 0) {
		opener(t);
		return;
	}
	while (!__atomic_load_n(&opened, __ATOMIC_ACQUIRE)) {
		sleep_ns(t, FX_NS_PER_MS);
		if (__atomic_load_n(&opening, __ATOMIC_ACQUIRE))
			__atomic_add_fetch(&nr_ticks, 1, __ATOMIC_SEQ_CST);
	}
}

/* An open that blocks is interrupted where it is now. */
static void another_carrier(void)
{
	struct thread *threads;
	uint64_t end;
	int fd;

	snprintf(fifo, sizeof(fifo), "/tmp/flexsc-fifo-%d", getpid());
	EXPECT(mkfifo(fifo, 0600) == 0);
	scheduler(1);
	threads = threads_start(2, ticker, NULL);
	end = fx_now_ns() + 20 * FX_NS_PER_SEC;
	while (__atomic_load_n(&nr_ticks, __ATOMIC_SEQ_CST) < 50 &&
	       fx_now_ns() < end)
		usleep(1000);
	EXPECT(__atomic_load_n(&nr_ticks, __ATOMIC_SEQ_CST) >= 50);
	EXPECT(!__atomic_load_n(&opened, __ATOMIC_ACQUIRE));
	fd = open(fifo, O_WRONLY);
	threads_join(threads, 2);
	EXPECT(opened);
	close(fd);
	unlink(fifo);
}

/* A signal that is not ours alone ------------------------------------------ */

static unsigned nr_ours, nr_others;

static void on_signal(int signal, siginfo_t *info, void *ucontext)
{
	EXPECT(signal == SIGNAL);
	if (fx_interrupt_handle(info, ucontext))
		__atomic_add_fetch(&nr_ours, 1, __ATOMIC_RELAXED);
	else
		__atomic_add_fetch(&nr_others, 1, __ATOMIC_RELAXED);
}

/* The C library refuses this number: borrow what it does for another one. */
static void install(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} raw;
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_RESTART };

	action.sa_sigaction = on_signal;
	sigaction(SIGUSR2, &action, NULL);
	EXPECT(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &raw, 8) == 0);
	EXPECT(syscall(SYS_rt_sigaction, SIGNAL, &raw, NULL, 8) == 0);
	signal(SIGUSR2, SIG_DFL);
}

static unsigned running;

static void *pester(void *arg)
{
	(void)arg;
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
		/* All of our threads, carriers and syscall threads too. */
		for (pid_t tid = getpid() + 1; tid < getpid() + 64; tid++)
			syscall(SYS_tgkill, getpid(), tid, SIGNAL);
		usleep(300);
	}
	return NULL;
}

static void sleeper(struct thread *t)
{
	for (int i = 0; i < 50; i++) {
		struct timespec long_time = { 100, 0 };
		struct flexsc_entry call = { .nr = SYS_nanosleep,
					     .nr_args = 2 };
		struct fx_deadline soon =
			in_ns(FX_CLOCK_MONOTONIC, 2 * FX_NS_PER_MS);
		enum fx_reason why;

		call.args[0] = (uintptr_t)&long_time;
		EXPECT(fx_call(&t->task, &call, "nanosleep", &soon, 0, &why) ==
		       -ECANCELED);
		EXPECT(why == FX_WOKEN_TIMEOUT);
	}
}

__attribute__((unused)) static void adopted(void)
{
	pthread_t other;

	EXPECT(fx_interrupt_adopt(SIGNAL) == 0);
	EXPECT(fx_interrupt_adopt(SIGNAL) == 0);
	EXPECT(fx_interrupt_adopt(SIGNAL + 1) == -EBUSY);
	EXPECT(fx_interrupt_signal() == SIGNAL);
	install();
	scheduler(2);
	running = 1;
	pthread_create(&other, NULL, pester, NULL);
	threads_run(8, sleeper, NULL);
	running = 0;
	pthread_join(other, NULL);
	printf("# %u interrupts, %u others\n", nr_ours, nr_others);
	EXPECT(nr_ours > 0);
	EXPECT(nr_others > 0);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
		struct sigaction action;

		EXPECT(sigaction(s, NULL, &action) == 0 &&
		       action.sa_handler == SIG_DFL);
	}
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "no_masks", no_masks },
#ifdef COUNT_MEMORY
		{ "no_allocation", no_allocation },
#endif
		{ "another_carrier", another_carrier },
/* tsan's handlers are its own, which know the number they were set for. */
#ifndef __SANITIZE_THREAD__
		{ "adopted", adopted },
#endif
	};

	(void)argc;
	return tests_run(tests, FX_ARRAY_SIZE(tests), argv);
}
