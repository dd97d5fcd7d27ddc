/* SPDX-License-Identifier: MIT */
/*
 * Calls on memory, time, futexes, locks and children, by wrapper and by
 * number; and calls that depend on the calling thread, which must act on the
 * thread of the loop.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

static void facts(void)
{
	struct utsname name;
	struct rlimit limit;
	uint8_t random[64] = { 0 }, zero[64] = { 0 };

	umask(077);
	DO_NR(SYS_getpid);
	DO_NR(SYS_getppid);
	DO_NR(SYS_getpgrp);
	DO_NR(SYS_getuid);
	DO_NR(SYS_geteuid);
	DO_NR(SYS_getgid);
	DO_NR(SYS_gettid);
	DO_NR(SYS_getpgid, 0);
	DO_NR(SYS_getpgid, 1 << 30);
	DO_NR(SYS_uname, (long)&name);
	note_bytes("release", name.release, strlen(name.release));
	DO_NR(SYS_sched_get_priority_max, SCHED_FIFO);
	DO_NR(SYS_getpriority, PRIO_PROCESS, 0);
	DO(prlimit, 0, RLIMIT_NOFILE, NULL, &limit);
	note("rlim_max", (int64_t)limit.rlim_max);
	DO_NR(SYS_getrlimit, RLIMIT_CORE, (long)&limit);
	DO_NR(SYS_getrlimit, 999, (long)&limit);
	DO(getrandom, random, sizeof(random), 0);
	CHECK(memcmp(random, zero, sizeof(zero)));
	DO(getrandom, random, 1, 0x100);
	DO(kill, getpid(), 0);
	DO(kill, getpid(), 999);
	DO_NR(SYS_umask, 022);
	DO_NR(SYS_umask, 077);
	DO_NR(SYS_alarm, 0);
}

static void memory(void)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = make_file("file", (size_t)(4 * page));
	unsigned char resident[4];
	char *p, *q;

	p = (char *)DO_NEW(mmap, NULL, (size_t)(4 * page),
			   PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	note_bytes("mapped", p, (size_t)page);
	p[page] = 'x';
	DO(msync, p, (size_t)(4 * page), MS_SYNC);
	DO(mprotect, p, (size_t)(4 * page), PROT_READ);
	DO(mprotect, p + 1, (size_t)page, PROT_READ);
	DO(mincore, p, (size_t)(4 * page), resident);
	DO(madvise, p, (size_t)page, MADV_WILLNEED);
	DO(madvise, p, (size_t)page, 12345);
	DO(mlock, p, (size_t)page);
	DO(munlock, p, (size_t)page);
	q = (char *)DO_NEW(mremap, p, (size_t)(4 * page), (size_t)(8 * page),
			   MREMAP_MAYMOVE, NULL);
	note("x", q[page]);
	DO(munmap, q, (size_t)(8 * page));
	DO(munmap, (void *)1, (size_t)page);
	DO_NEW(mmap, NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0);
	DO_NEW(mmap, NULL, (size_t)page, PROT_READ, MAP_PRIVATE, -1, 0);
	p = (char *)DO_NEW(mmap, NULL, (size_t)page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*p = 1;
	DO(munmap, p, (size_t)page);
	close(fd);
}

static void times(void)
{
	struct timespec nap = { .tv_nsec = 30 * 1000000 }, left, until;
	uint64_t begin = now_ns();

	DO(nanosleep, &nap, &left);
	CHECK_IN(now_ns() - begin, 30 * MS, 400 * slowness() * MS);
	nap.tv_nsec = 1000000000;
	DO(nanosleep, &nap, NULL);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec -= 1;
	DO_NR(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&until,
	      0);
	DO_NR(SYS_clock_nanosleep, 999, 0, (long)&until, 0);
	DO_NR(SYS_clock_gettime, CLOCK_REALTIME, (long)&until);
	CHECK_IN(time(NULL) - until.tv_sec, -1, 5);
	DO_NR(SYS_clock_getres, 999, 0);
}

static void futexes(void)
{
	struct timespec soon = { .tv_nsec = 20 * 1000000 };
	uint32_t word = 5;

	DO_NR(SYS_futex, (long)&word, FUTEX_WAIT, 6, 0, 0, 0);
	DO_NR(SYS_futex, (long)&word, FUTEX_WAIT, 5, (long)&soon, 0, 0);
	DO_NR(SYS_futex, (long)&word, FUTEX_WAKE, 1, 0, 0, 0);
	DO_NR(SYS_futex, (long)&word, 999, 1, 0, 0, 0);
	DO_NR(SYS_futex, (long)((char *)&word + 1), FUTEX_WAIT, 5, 0, 0, 0);
}

static void futex_wakes(void)
{
	struct op first = { 0 }, second = { 0 };
	uint32_t word = 5;

	POST(futex, &first, &word, FUTEX_WAIT, 5, NULL, NULL, 0);
	POST(futex, &second, &word, FUTEX_WAIT_PRIVATE, 5, NULL, NULL, 0);
	run_ms(100);
	CHECK_EQ(first.nr_done + second.nr_done, 0);
	CHECK_EQ(CALL(futex, &word, FUTEX_WAKE, 10, NULL, NULL, 0), 1);
	CHECK_EQ(WAIT(&first), 0);
	CHECK_EQ(second.nr_done, 0);
	CHECK_EQ(CALL(futex, &word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0), 1);
	CHECK_EQ(WAIT(&second), 0);
}

static void flocks(void)
{
	int a = make_file("file", 1), b = open("file", O_RDWR);

	DO(flock, a, LOCK_SH);
	DO(flock, b, LOCK_SH);
	DO(flock, b, LOCK_EX | LOCK_NB);
	DO(flock, b, LOCK_UN);
	DO(flock, a, LOCK_EX);
	DO(flock, b, LOCK_SH | LOCK_NB);
	DO(flock, a, 999);
	DO(flock, -1, LOCK_SH);
	DO(close, a);
	DO(flock, b, LOCK_EX | LOCK_NB);
	close(b);
}

static void flock_waits(void)
{
	int a = make_file("file", 1), b = open("file", O_RDWR);
	struct flock range = { .l_type = F_WRLCK, .l_len = 10 };
	struct op op = { 0 };

	CHECK_EQ(CALL(flock, a, LOCK_EX), 0);
	POST(flock, &op, b, LOCK_EX);
	run_ms(50);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(CALL(flock, a, LOCK_UN), 0);
	CHECK_EQ(WAIT(&op), 0);
	CHECK_EQ(CALL(flock, a, LOCK_EX | LOCK_NB), -EWOULDBLOCK);
	/* The same with record locks of the open file. */
	CHECK_EQ(CALL(fcntl, a, F_OFD_SETLK, (long)&range), 0);
	POST(fcntl, &op, b, F_OFD_SETLKW, (long)&range);
	run_ms(50);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(CALL(close, a), 0);
	CHECK_EQ(WAIT(&op), 0);
}

static pid_t exit_later(unsigned int ms, int status)
{
	pid_t pid = fork_or_fail();

	if (!pid) {
		sleep_ms(ms);
		_exit(status);
	}
	return pid;
}

static void children(void)
{
	struct rusage usage;
	siginfo_t info;
	int status = 0;
	/* Not before the next call has been made, however slow that is. */
	pid_t pid = exit_later(30 * slowness(), 3);

	DO(wait4, -1, &status, WNOHANG, NULL);
	note("is it", DO_NEW(wait4, pid, &status, 0, &usage) == pid);
	note("status", status);
	DO(wait4, pid, &status, 0, NULL);
	pid = exit_later(30, 4);
	memset(&info, 0, sizeof(info));
	DO(waitid, P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	note("is it", info.si_pid == pid);
	note("status", info.si_status);
	DO(waitid, P_PID, (id_t)pid, &info, WEXITED);
	DO(waitid, P_PID, (id_t)pid, &info, WEXITED);
	DO(waitid, P_ALL, 0, &info, 0);
	pid = exit_later(10000, 0);
	DO(kill, pid, SIGKILL);
	note("is it", DO_NEW(waitpid, -1, &status, 0) == pid);
	note("status", status);
}

/* A wait for a child does not hold other calls up. */
static void child_beside(void)
{
	struct op waited = { 0 }, polled = { 0 };
	int status = 0, pidfd, told[2];
	struct pollfd ready = { .events = POLLIN };
	char byte;
	pid_t pid;

	CHECK_EQ(pipe(told), 0);
	pid = fork_or_fail();
	if (!pid) {
		close(told[1]);
		_exit(read(told[0], &byte, 1) == 0 ? 9 : 1);
	}
	close(told[0]);
	pidfd = (int)CALL(pidfd_open, pid, 0);
	ready.fd = pidfd;
	POST(waitpid, &waited, pid, &status, 0);
	POST(poll, &polled, &ready, 1, -1);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(CALL(post, SYS_getppid, 0, 0, 0, 0, 0, 0), getppid());
	CHECK_EQ(waited.nr_done + polled.nr_done, 0);
	close(told[1]);
	CHECK_EQ(WAIT(&waited), pid);
	CHECK_EQ(WEXITSTATUS(status), 9);
	CHECK_EQ(WAIT(&polled), 1);
}

static void identity(void)
{
	sigset_t set, seen;
	char name[16] = "";
	cpu_set_t cpus;
	stack_t stack;

	/* Syscall threads exist by now, if the engine has any. */
	CALL(nanosleep, (&(struct timespec){ .tv_nsec = 1000 }), NULL);
	CHECK_EQ(CALL(post, SYS_gettid, 0, 0, 0, 0, 0, 0), gettid());
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(CALL(post, SYS_rt_sigprocmask, SIG_BLOCK, (long)&set, 0, 8, 0,
		      0),
		 0);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &seen), 0);
	CHECK(sigismember(&seen, SIGUSR2));
	CHECK_EQ(CALL(post, SYS_prctl, PR_SET_NAME, (long)"its name", 0, 0, 0,
		      0),
		 0);
	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	CHECK(!strcmp(name, "its name"));
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	CHECK_EQ(CALL(post, SYS_sched_setaffinity, 0, sizeof(cpus), (long)&cpus,
		      0, 0, 0),
		 0);
	CPU_ZERO(&cpus);
	CHECK_EQ(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	CHECK_EQ(CPU_COUNT(&cpus), 1);
	CHECK_EQ(CALL(post, SYS_sigaltstack, 0, (long)&stack, 0, 0, 0, 0), 0);
	CHECK_EQ(CALL(post, SYS_getpriority, PRIO_PROCESS, 0, 0, 0, 0, 0),
		 syscall(SYS_getpriority, PRIO_PROCESS, 0));
}

/* The same while the loop belongs to another thread than the first. */
static void *identity_elsewhere(void *arg)
{
	char name[16] = "";

	(void)arg;
	loop = new_loop(0, 0);
	CHECK_EQ(CALL(post, SYS_gettid, 0, 0, 0, 0, 0, 0), gettid());
	CHECK_EQ(CALL(post, SYS_prctl, PR_SET_NAME, (long)"elsewhere", 0, 0, 0,
		      0),
		 0);
	prctl(PR_GET_NAME, name);
	CHECK(!strcmp(name, "elsewhere"));
	end_loop(loop);
	loop = NULL;
	return NULL;
}

static void identity_of_thread(void)
{
	char before[16] = "", after[16] = "";

	prctl(PR_GET_NAME, before);
	thread_join(thread_start(identity_elsewhere, NULL));
	prctl(PR_GET_NAME, after);
	CHECK(!strcmp(before, after));
}

/* With nobody to hear of it. */
static void without_event(void)
{
	int fds[2];
	char buf[10];

	make_pipe(fds);
	CHECK_EQ(flexsc_write(NULL, fds[1], "abc", 3), 0);
	CHECK_EQ(CALL(read, fds[0], buf, sizeof(buf)), 3);
	CHECK_EQ(flexsc_close(NULL, fds[1]), 0);
	CHECK_EQ(CALL(read, fds[0], buf, sizeof(buf)), 0);
	CHECK_EQ(flexsc_read(NULL, 12345, buf, 1), 0);
	CHECK_EQ(flexsc_open(NULL, "absent", O_RDONLY, 0), 0);
	while (flexsc_loop_outstanding(loop))
		run_ms(1);
}

/* A handler may be NULL too: the result is in the event all the same. */
static void without_handler(void)
{
	struct flexsc_event ev = { 0 };

	CHECK_EQ(flexsc_post(&ev, SYS_getpid, 0, 0, 0, 0, 0, 0), 0);
	while (flexsc_pending(&ev))
		run_ms(1);
	CHECK_EQ(ev.ret, getpid());
	CHECK_EQ(flexsc_loop_outstanding(loop), 0);
}

static const struct test tests[] = {
	{ "facts", facts, TEST_BOTH },
	{ "memory", memory, TEST_BOTH },
	{ "times", times, TEST_BOTH },
	{ "futexes", futexes, TEST_BOTH },
	{ "futex_wakes", futex_wakes, TEST_BESIDE },
	{ "flocks", flocks, TEST_BOTH },
	{ "flock_waits", flock_waits, TEST_BESIDE },
	{ "children", children, TEST_BOTH },
	{ "child_beside", child_beside, TEST_BESIDE },
	{ "identity", identity, 0 },
	{ "identity_of_thread", identity_of_thread, TEST_NO_LOOP },
	{ "without_event", without_event, 0 },
	{ "without_handler", without_handler, 0 },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
