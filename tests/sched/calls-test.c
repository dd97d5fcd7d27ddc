/* SPDX-License-Identifier: MIT */
/* System calls of tasks through the page set: results, deadlines, cancels. */
#include "threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR 200

static int sockets[NR / 2][2];

/* Pairs that send a number to and fro. */
static void talker(struct thread *t)
{
	struct fx_task *me = &t->task;
	int fd = sockets[t->number / 2][t->number % 2];
	uint32_t n = 0;

	for (uint32_t i = 0; i < 50; i++) {
		if (t->number % 2 == 0) {
			n = i;
			EXPECT(call3(me, SYS_write, (uint64_t)fd, (uintptr_t)&n,
				     sizeof(n)) == sizeof(n));
		}
		n = 77;
		EXPECT(call3(me, SYS_read, (uint64_t)fd, (uintptr_t)&n,
			     sizeof(n)) == sizeof(n));
		EXPECT(n == i);
		if (t->number % 2)
			EXPECT(call3(me, SYS_write, (uint64_t)fd, (uintptr_t)&n,
				     sizeof(n)) == sizeof(n));
	}
}

static void make_sockets(void)
{
	for (unsigned i = 0; i < NR / 2; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[i]))
			expect_failed(__FILE__, __LINE__, "socketpair");
}

static void talk(void)
{
	make_sockets();
	scheduler(2);
	threads_run(NR, talker, NULL);
}

static struct flexsc_entry reading(int fd, void *buf, size_t size)
{
	struct flexsc_entry call = { .nr = SYS_read, .nr_args = 3 };

	call.args[0] = (uint64_t)fd;
	call.args[1] = (uintptr_t)buf;
	call.args[2] = size;
	return call;
}

static unsigned nr_given_up;

/* A deadline that races with the answer: one of the two, and no byte lost. */
static void timed(struct thread *t)
{
	struct fx_task *me = &t->task;
	int fd = sockets[t->number / 2][t->number % 2];
	unsigned received = 0, given_up = 0;
	char c = 0;

	for (int i = 0; i < 60; i++) {
		if (t->number % 2) {
			sleep_ns(t, 100000 + (uint64_t)(i % 5) * 3000);
			EXPECT(call3(me, SYS_write, (uint64_t)fd, (uintptr_t)&c,
				     1) == 1);
			continue;
		}
		while (received <= (unsigned)i) {
			struct flexsc_entry call = reading(fd, &c, 1);
			struct fx_deadline soon =
				in_ns(FX_CLOCK_MONOTONIC, 103000);
			enum fx_reason why;
			int64_t ret =
				fx_call(me, &call, "read", &soon, 0, &why);

			EXPECT(ret == 1 || ret == -ECANCELED);
			EXPECT(ret == 1 || why == FX_WOKEN_TIMEOUT);
			received += ret == 1;
			given_up += ret != 1;
		}
	}
	__atomic_add_fetch(&nr_given_up, given_up, __ATOMIC_RELAXED);
}

static void deadlines(void)
{
	make_sockets();
	scheduler(2);
	threads_run(40, timed, NULL);
	printf("# %u given up\n", nr_given_up);
	EXPECT(nr_given_up > 0);
}

static uint32_t reader_parked;

static void unlucky(struct thread *t)
{
	char c;

	for (int i = 0; i < 100; i++) {
		struct flexsc_entry call =
			reading(sockets[t->number][0], &c, 1);
		enum fx_reason why;
		int64_t ret;

		__atomic_store_n(&reader_parked, 1, __ATOMIC_RELEASE);
		ret = fx_call(&t->task, &call, "read", NULL, FX_PENDING_SIGNAL,
			      &why);
		EXPECT(ret == -ECANCELED);
		EXPECT(why == FX_WOKEN_SIGNAL);
		EXPECT(fx_task_asked(&t->task, FX_PENDING_SIGNAL));
	}
	__atomic_store_n(&reader_parked, 2, __ATOMIC_RELEASE);
}

static void interrupted(void)
{
	struct thread *threads;
	uint32_t state;

	make_sockets();
	scheduler(2);
	threads = threads_start(1, unlucky, NULL);
	while ((state = __atomic_load_n(&reader_parked, __ATOMIC_ACQUIRE)) !=
	       2) {
		if (state == 1 &&
		    __atomic_exchange_n(&reader_parked, 0, __ATOMIC_ACQ_REL))
			fx_interrupt(&threads[0].task, FX_PENDING_SIGNAL);
		usleep(20);
	}
	threads_join(threads, 1);
}

static void file_reader(struct thread *t)
{
	static const char name[] = "/proc/self/stat";
	struct fx_task *me = &t->task;
	char buf[64];

	for (int i = 0; i < 50; i++) {
		struct flexsc_entry call = { .nr = SYS_openat, .nr_args = 4 };
		int64_t fd;

		call.args[0] = (uint64_t)AT_FDCWD;
		call.args[1] = (uintptr_t)name;
		call.args[2] = O_RDONLY;
		fd = fx_call(me, &call, "open", NULL, 0, NULL);
		EXPECT(fd >= 0);
		EXPECT(call3(me, SYS_read, (uint64_t)fd, (uintptr_t)buf,
			     sizeof(buf)) > 0);
		EXPECT(call3(me, SYS_close, (uint64_t)fd, 0, 0) == 0);
	}
	EXPECT(call3(me, SYS_close, 99999, 0, 0) == -EBADF);
}

static void files(void)
{
	scheduler(2);
	threads_run(20, file_reader, NULL);
}

static void napper(struct thread *t)
{
	struct timespec ts = { 0, 1000000 };

	EXPECT(call3(&t->task, SYS_nanosleep, (uintptr_t)&ts, 0, 0) == 0);
}

/* Carriers are bound to a processor each, syscall threads are not. */
static void unbound(void)
{
	cpu_set_t all, set;
	unsigned nr = 0;
	DIR *dir;
	struct dirent *entry;
	struct thread *threads;

	sched_getaffinity(0, sizeof(all), &all);
	scheduler(2);
	threads = threads_start(8, napper, NULL);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i].pthread, NULL);
	dir = opendir("/proc/self/task");
	while ((entry = readdir(dir))) {
		char path[300], name[16] = { 0 };
		int fd;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, name, sizeof(name) - 1) <= 0 ||
		    strncmp(name, "flexsc-syscall", 14))
			continue;
		EXPECT(sched_getaffinity(atoi(entry->d_name), sizeof(set),
					 &set) == 0 &&
		       CPU_EQUAL(&set, &all));
		nr++;
	}
	printf("# %u syscall threads\n", nr); /* sync has none */
}

static unsigned nr_slept;

/* Calls that never wait: the others get their turn all the same. */
static void busy(struct thread *t)
{
	for (int i = 0; t->number && i < 100; i++) {
		sleep_ns(t, 100000);
		__atomic_add_fetch(&nr_slept, 1, __ATOMIC_SEQ_CST);
	}
	if (t->number)
		return;
	while (__atomic_load_n(&nr_slept, __ATOMIC_SEQ_CST) < 300)
		EXPECT(call3(&t->task, SYS_getpid, 0, 0, 0) == getpid());
	EXPECT(COUNTED(handoffs) < 30);
}

static void busy_calls(void)
{
	scheduler(1);
	threads_run(4, busy, NULL);
	EXPECT(nr_slept == 300);
}

enum {
	SERVER,
	CLIENT,
	NR_TURN = 16,
	TURNS = 200
};

static unsigned turns_begun, turns_over;
static uint64_t nr_parked;

static int64_t receive(struct fx_task *me, int fd, unsigned flags)
{
	struct flexsc_entry call = { .nr = SYS_recvfrom, .nr_args = 6 };
	char c;

	call.args[0] = (uint64_t)fd;
	call.args[1] = (uintptr_t)&c;
	call.args[2] = 1;
	call.args[3] = flags;
	return fx_call(me, &call, "recvfrom", NULL, 0, NULL);
}

/* One asks, one answers, the others keep the carrier busy meanwhile. */
static void take_turns(struct thread *t)
{
	struct fx_task *me = &t->task;
	int fd = sockets[0][t->number % 2];

	__atomic_add_fetch(&turns_begun, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&turns_begun, __ATOMIC_SEQ_CST) < NR_TURN)
		sleep_ns(t, FX_NS_PER_MS);
	for (int i = 0; t->number == SERVER && i < TURNS; i++) {
		EXPECT(receive(me, fd, 0) == 1);
		EXPECT(call3(me, SYS_write, (uint64_t)fd, (uintptr_t) "", 1) ==
		       1);
	}
	for (int i = 0; t->number == CLIENT && i < TURNS; i++) {
		EXPECT(write(fd, "", 1) == 1);
		while (receive(me, fd, MSG_DONTWAIT) != 1)
			fx_yield(me);
	}
	if (t->number == CLIENT)
		nr_parked = COUNTED(calls_parked);
	if (t->number <= CLIENT)
		__atomic_add_fetch(&turns_over, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&turns_over, __ATOMIC_SEQ_CST) < 2)
		fx_yield(me);
}

/* Who has answered reads when others have run: the next request is there. */
static void lets_others(void)
{
	const char *engine = getenv("FLEXSC_ENGINE");

	make_sockets();
	scheduler(1);
	threads_run(NR_TURN, take_turns, NULL);
	printf("# %lu calls parked\n", nr_parked);
	if (!engine || strcmp(engine, "poll") == 0)
		EXPECT(nr_parked < TURNS * 3 / 4); /* else all of them */
}

enum {
	NR_ANSWERS = 40,
	BIG = 1 << 20
};

static char big[BIG];
static uint64_t nr_together;

/* In turns small ones, such as do not fit at once, and to nobody. */
static void answer(struct thread *t)
{
	struct fx_task *me = &t->task;
	int fd = sockets[t->number][0];

	for (int i = 0; i < 30; i++) {
		size_t size = i % 3 == 1 ? BIG : 1;
		char c;

		EXPECT(call3(me, SYS_read, (uint64_t)fd, (uintptr_t)&c, 1) ==
		       1);
		EXPECT(call3(me, SYS_write, (uint64_t)fd, (uintptr_t)big,
			     size) == (int64_t)size);
	}
	EXPECT(call3(me, SYS_read, (uint64_t)fd, (uintptr_t)big, 1) == 1);
	EXPECT(call3(me, SYS_read, (uint64_t)fd, (uintptr_t)big, 1) == 0);
	EXPECT(call3(me, SYS_write, (uint64_t)fd, (uintptr_t)big, 1) == -EPIPE);
	nr_together = COUNTED(calls_together);
}

static void drain(int fd, size_t size)
{
	static char buf[65536];
	ssize_t n = 1;

	for (; size && n > 0; size -= (size_t)n)
		n = read(fd, buf, sizeof(buf) < size ? sizeof(buf) : size);
	EXPECT(n > 0);
}

/* Made in a row or not: each gets what it asked for, all of it. */
static void answers(void)
{
	const char *engine = getenv("FLEXSC_ENGINE");
	struct thread *threads;

	make_sockets();
	scheduler(1);
	threads = threads_start(NR_ANSWERS, answer, NULL);
	for (int round = 0; round <= 30; round++) {
		for (unsigned i = 0; i < NR_ANSWERS; i++)
			EXPECT(write(sockets[i][1], "", 1) == 1);
		for (unsigned i = 0; i < NR_ANSWERS && round < 30; i++)
			drain(sockets[i][1], round % 3 == 1 ? BIG : 1);
	}
	for (unsigned i = 0; i < NR_ANSWERS; i++)
		close(sockets[i][1]);
	threads_join(threads, NR_ANSWERS);
	printf("# %lu answers in a row\n", nr_together);
	if (!engine || strcmp(engine, "poll") == 0)
		EXPECT(nr_together > 0);
}

static uint32_t stray_stage;

static void owner_of_strays(struct thread *t)
{
	int fd = sockets[0][0];
	char c;

	for (uint32_t stage = 1; stage <= 2; stage++) {
		EXPECT(call3(&t->task, SYS_read, (uint64_t)fd, (uintptr_t)&c,
			     1) == 1);
		__atomic_store_n(&stray_stage, stage, __ATOMIC_RELEASE);
		while (stage == 1 &&
		       __atomic_load_n(&stray_stage, __ATOMIC_ACQUIRE) == 1)
			sleep_ns(t, 50000000);
	}
}

static void send_one(uint32_t stage)
{
	usleep(20000);
	EXPECT(write(sockets[0][1], "", 1) == 1);
	while (__atomic_load_n(&stray_stage, __ATOMIC_ACQUIRE) != stage)
		usleep(1000);
}

/* A descriptor that is used elsewhere stops waking carriers; then it is back. */
static void strays(void)
{
	const char *engine = getenv("FLEXSC_ENGINE");
	struct thread *threads;
	uint64_t before;
	char c;

	make_sockets();
	scheduler(1);
	threads = threads_start(1, owner_of_strays, NULL);
	send_one(1);
	before = COUNTED(sleeps);
	for (int i = 0; i < 200; i++) {
		EXPECT(write(sockets[0][1], "", 1) == 1);
		usleep(1000); /* time to wake somebody */
		EXPECT(read(sockets[0][0], &c, 1) == 1);
	}
	before = COUNTED(sleeps) - before;
	printf("# slept %lu times\n", before);
	if (!engine || strcmp(engine, "poll") == 0)
		EXPECT(before < 100);
	__atomic_store_n(&stray_stage, 3, __ATOMIC_RELEASE);
	usleep(100000);
	send_one(2);
	threads_join(threads, 1);
}

/*
 * Storage that does not answer, where no signal reaches: the kernel waits for
 * the page of a buffer. Others on the same carrier go on.
 */
#define PAGE 4096u

static char *missing; /* pages that nobody has filled in yet */
static int stored = -1;
static unsigned nr_ticks;

static void stuck(struct thread *t)
{
	struct fx_task *me = &t->task;
	char *page = missing + t->number * PAGE, byte;

	/* The engine asks once what a descriptor is. */
	EXPECT(call3(me, SYS_read, (uint64_t)stored, (uintptr_t)&byte, 1) == 1);
	switch (t->number) {
	case 0:
		EXPECT(call3(me, SYS_read, (uint64_t)stored, (uintptr_t)page,
			     1) == 1);
		break;
	case 1:
		EXPECT(call3(me, SYS_pread64, (uint64_t)stored, (uintptr_t)page,
			     1) == 1);
		break;
	case 2:
		EXPECT(call3(me, SYS_fstat, (uint64_t)stored, (uintptr_t)page,
			     0) == 0);
		break;
	default:
		for (int i = 0; i < 50; i++) {
			sleep_ns(t, FX_NS_PER_MS);
			__atomic_add_fetch(&nr_ticks, 1, __ATOMIC_RELAXED);
		}
	}
}

static bool hold_pages(int uffd, unsigned nr)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	missing = mmap(NULL, nr * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)missing;
	range.range.len = nr * PAGE;
	return uffd >= 0 && ioctl(uffd, UFFDIO_API, &api) == 0 &&
	       ioctl(uffd, UFFDIO_REGISTER, &range) == 0;
}

static void storage(void)
{
	const char *engine = getenv("FLEXSC_ENGINE");
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_zeropage zero = { 0 };
	struct thread *threads;
	uint64_t end = fx_now_ns() + 20 * FX_NS_PER_SEC;

	if ((engine && strcmp(engine, "poll") != 0 &&
	     strcmp(engine, "kmod") != 0) ||
	    !hold_pages(uffd, 3)) {
		printf("# no such wait here\n");
		return;
	}
	stored = memfd_create("stored", MFD_CLOEXEC);
	EXPECT(write(stored, "abcdefgh", 8) == 8 &&
	       lseek(stored, 0, SEEK_SET) == 0);
	scheduler(1);
	threads = threads_start(4, stuck, NULL);
	while (__atomic_load_n(&nr_ticks, __ATOMIC_RELAXED) < 50 &&
	       fx_now_ns() < end)
		usleep(1000);
	EXPECT(__atomic_load_n(&nr_ticks, __ATOMIC_RELAXED) == 50);
	zero.range.start = (uintptr_t)missing;
	zero.range.len = 3 * PAGE;
	EXPECT(ioctl(uffd, UFFDIO_ZEROPAGE, &zero) == 0);
	threads_join(threads, 4);
}

/* A filter that lets everything through; engine kmod becomes poll by it. */
static int allow_all(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static unsigned filter_stage;

static void looks_at_file(struct fx_task *me, int fd)
{
	struct stat st = { 0 };
	char byte = 0;

	EXPECT(call3(me, SYS_fstat, (uint64_t)fd, (uintptr_t)&st, 0) == 0);
	EXPECT(st.st_size == 1);
	EXPECT(call3(me, SYS_lseek, (uint64_t)fd, 0, SEEK_SET) == 0);
	EXPECT(call3(me, SYS_write, (uint64_t)fd, (uintptr_t) "x", 1) == 1);
	EXPECT(call3(me, SYS_lseek, (uint64_t)fd, 0, SEEK_SET) == 0);
	EXPECT(call3(me, SYS_read, (uint64_t)fd, (uintptr_t)&byte, 1) == 1);
	EXPECT(byte == 'x');
}

static void filtered_task(struct thread *t)
{
	int fd = memfd_create("looked at", MFD_CLOEXEC);

	EXPECT(write(fd, "a", 1) == 1);
	looks_at_file(&t->task, fd);
	__atomic_add_fetch(&filter_stage, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&filter_stage, __ATOMIC_SEQ_CST) < 5)
		sleep_ns(t, FX_NS_PER_MS);
	for (int i = 0; i < 50; i++)
		looks_at_file(&t->task, fd);
	EXPECT(call3(&t->task, SYS_close, (uint64_t)fd, 0, 0) == 0);
}

static void filtered(void)
{
	struct thread *threads;

	scheduler(2);
	threads = threads_start(4, filtered_task, NULL);
	while (__atomic_load_n(&filter_stage, __ATOMIC_SEQ_CST) < 4)
		usleep(1000);
	EXPECT(allow_all() == 0);
	__atomic_add_fetch(&filter_stage, 1, __ATOMIC_SEQ_CST);
	threads_join(threads, 4);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "talk", talk },
		{ "deadlines", deadlines },
		{ "interrupted", interrupted },
		{ "files", files },
		{ "busy_calls", busy_calls },
		{ "unbound", unbound },
		{ "lets_others", lets_others },
		{ "answers", answers },
		{ "strays", strays },
		{ "storage", storage },
		{ "filtered", filtered },
	};

	(void)argc;
	return tests_run(tests, FX_ARRAY_SIZE(tests), argv);
}
