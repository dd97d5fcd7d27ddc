/* SPDX-License-Identifier: MIT */
/*
 * The harmful half of the fuzzer: an unprivileged process of several threads
 * that post random calls with random arguments, write at random over the
 * header, the rings and the entries, run, lend themselves, cancel, close, send
 * signals, fork, unmap and end, all at once.
 */
#include "cases.h"
#include "fuzz.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum {
	NR_THREADS = 6,
	NR_FDS = 24,
	BUFFER = 1 << 16,
	NR_ENTRIES = 128
};

struct arena {
	struct kset set;
	uint64_t seed;
	unsigned wildness; /* one in so many posted calls is nonsense */
	unsigned scribbles; /* so many words at once */
	uint32_t fds[NR_FDS];
	char *buffer;
	pid_t tids[NR_THREADS + 1];
};

static struct arena arena;

static void nothing(int number)
{
}

static void limit(int what, rlim_t value)
{
	struct rlimit both = { value, value };

	setrlimit(what, &both);
}

static void become_nobody(void)
{
	struct sigaction action = { .sa_handler = nothing };

	limit(RLIMIT_FSIZE, 1 << 20);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NPROC, 64);
	limit(RLIMIT_AS, 1ul << 30);
	limit(RLIMIT_NOFILE, 128);
	limit(RLIMIT_MEMLOCK, 1 << 20);
	/* So that a kill of all that may be killed kills no other child. */
	CHECK_EQ(setresgid(60000, 60000, 60000), 0);
	CHECK_EQ(syscall(SYS_setgroups, 0, NULL), 0);
	CHECK_EQ(setresuid((uid_t)getpid() + 10000, (uid_t)getpid() + 10000,
			   (uid_t)getpid() + 10000),
		 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 1);
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR2, &action, NULL);
	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGIO, &action, NULL);
}

static void open_things(void)
{
	unsigned nr = 0;
	int pair[2], null = open("/dev/null", O_RDWR);

	/* Descriptors are chosen at random as well. */
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);

	for (int i = 0; i < 3; i++) {
		if (!socketpair(AF_UNIX, i == 2 ? SOCK_DGRAM : SOCK_STREAM, 0,
				pair)) {
			arena.fds[nr++] = (uint32_t)pair[0];
			arena.fds[nr++] = (uint32_t)pair[1];
		}
		if (!pipe(pair)) {
			arena.fds[nr++] = (uint32_t)pair[0];
			arena.fds[nr++] = (uint32_t)pair[1];
		}
	}
	arena.fds[nr++] = (uint32_t)eventfd(0, 0);
	arena.fds[nr++] = (uint32_t)timerfd_create(CLOCK_MONOTONIC, 0);
	arena.fds[nr++] = (uint32_t)epoll_create1(0);
	arena.fds[nr++] = (uint32_t)memfd_create("m", 0);
	arena.fds[nr++] = (uint32_t)open("/dev/zero", O_RDWR);
	arena.fds[nr++] = (uint32_t)socket(AF_INET, SOCK_STREAM, 0);
	arena.fds[nr++] = (uint32_t)open("/proc/self/status", O_RDONLY);
	arena.fds[nr++] = (uint32_t)socket(AF_INET, SOCK_DGRAM, 0);
	arena.fds[nr++] = (uint32_t)arena.set.fd;
	while (nr < NR_FDS)
		arena.fds[nr++] = roll(&(struct dice){ arena.seed | 1 }, 64);
	arena.buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static uint64_t random_argument(struct dice *dice)
{
	static const uint64_t odd[] = {
		0,	    1,	   2,	       4096, 0x7fffffff,
		0x80000000, ~0ull, 1ull << 47, 8,    0xffffffff81000000ull,
	};

	switch (roll(dice, 6)) {
	case 0:
	case 1:
		return arena.fds[roll(dice, NR_FDS)];
	case 2:
		return ARG(arena.buffer + roll(dice, BUFFER));
	case 3:
		return ARG(arena.set.shared) +
		       roll(dice, (uint32_t)arena.set.map_size);
	case 4:
		return odd[roll(dice, sizeof(odd) / sizeof(*odd))];
	default:
		return roll(dice, 5000);
	}
}

/* Calls that do something with what there is. */
static struct call likely_call(struct dice *dice)
{
	static const unsigned short transfers[] = {
		SYS_read,
		SYS_write,
		SYS_recvfrom,
		SYS_sendto,
		SYS_pread64,
		SYS_pwrite64,
		SYS_readv,
		SYS_writev,
		SYS_recvmsg,
		SYS_sendmsg,
		SYS_fstat,
		SYS_lseek,
		SYS_dup,
		SYS_close,
		SYS_accept,
		SYS_fsync,
		SYS_poll,
		SYS_epoll_wait,
		SYS_ppoll,
		SYS_splice,
		FLEXSC_NR_READY_IN,
		FLEXSC_NR_READY_OUT,
	};
	static const struct call cheap[] = {
		{ SYS_getppid, 0, 0, { 0 } },
		{ SYS_gettid, 0, 0, { 0 } },
		{ SYS_sched_yield, 0, 0, { 0 } },
		{ SYS_umask, 1, 0, { 077 } },
	};
	struct call call = { 0 };

	if (roll(dice, 3))
		return cheap[roll(dice, sizeof(cheap) / sizeof(*cheap))];
	call.nr = transfers[roll(dice, sizeof(transfers) / 2)];
	/* Descriptors are few, and closing is rare enough to leave some. */
	if (call.nr == SYS_close && roll(dice, 8))
		call.nr = SYS_fstat;
	call.nr_args = 6;
	call.args[0] = arena.fds[roll(dice, NR_FDS)];
	call.args[1] = ARG(arena.buffer + roll(dice, BUFFER / 2));
	call.args[2] = roll(dice, 600);
	if (call.nr == SYS_splice)
		call.args[2] = arena.fds[roll(dice, NR_FDS)];
	return call;
}

static struct call random_call(struct dice *dice)
{
	struct call call = likely_call(dice);

	if (roll(dice, arena.wildness) == 0) {
		call.nr = roll(dice, 8) ? roll(dice, 520) : roll(dice, 65536);
		call.nr_args = roll(dice, 8) ? roll(dice, 7) : roll(dice, 256);
		for (int i = 0; i < 6; i++)
			call.args[i] = random_argument(dice);
	}
	/* Never back to root's processes, nor for longer than a child lives. */
	if (call.nr == SYS_nanosleep || call.nr == SYS_pause)
		call.nr = SYS_sched_yield;
	if (roll(dice, 12) == 0)
		call.flags = roll(dice, 256);
	return call;
}

static void post_some(struct dice *dice)
{
	uint32_t nr = 1 + roll(dice, 40);
	uint32_t index;
	int64_t ret;

	for (uint32_t i = 0; i < nr; i++) {
		struct call call = random_call(dice);

		/* Those that are under way are submitted again as well. */
		kset_post(&arena.set, roll(dice, NR_ENTRIES), &call);
	}
	for (uint32_t i = 0; i < 2 * nr; i++)
		if (!kset_reap(&arena.set, &index, &ret))
			arena.set.cq_head += roll(dice, 3) == 0;
	request(arena.set.fd, FLEXSC_IOC_RUN,
		roll(dice, 4) ? 0 : roll(dice, 300000));
}

static void scribble(struct dice *dice)
{
	char *base = (char *)arena.set.shared;
	size_t room[] = { sizeof(struct flexsc_set), arena.set.map_size,
			  NR_ENTRIES * 64 };
	char *from[] = { base, base, (char *)arena.set.entries };

	for (unsigned i = 0; i < arena.scribbles; i++) {
		unsigned where = roll(dice, 3);
		size_t at = roll(dice, (uint32_t)room[where]) & ~7ul;
		volatile uint64_t *word = (uint64_t *)(from[where] + at);

		switch (roll(dice, 5)) {
		case 0:
			*word ^= 1ull << roll(dice, 64);
			break;
		case 1:
			*word = random_argument(dice);
			break;
		case 2:
			*(volatile uint32_t *)word = roll(dice, 6);
			break;
		case 3:
			*(volatile uint32_t *)word = FLEXSC_SLOT_VALID |
						     roll(dice, 1u << 19);
			break;
		default:
			*word += roll(dice, 3);
		}
	}
}

static void ask(struct dice *dice)
{
	struct flexsc_wait wait = { .idle_ns = roll(dice, 3000000),
				    .spin_ns = roll(dice, 100000),
				    .flags = roll(dice, 3) };
	struct flexsc_stats stats;
	int fd = arena.set.fd;

	switch (roll(dice, 12)) {
	case 0:
		request(fd, FLEXSC_IOC_CLOSING, arena.fds[roll(dice, NR_FDS)]);
		break;
	case 1:
		request(fd, FLEXSC_IOC_WAKE, 0);
		break;
	case 2:
		request(fd, FLEXSC_IOC_KICK, 0);
		break;
	case 3:
		request(fd, FLEXSC_IOC_STATS, ARG(&stats));
		break;
	case 4:
		request(fd, _IOC(3, 0xfc, roll(dice, 16), roll(dice, 400)),
			random_argument(dice));
		break;
	case 5:
	case 6:
	case 7:
		request(fd, FLEXSC_IOC_WAIT, ARG(&wait));
		break;
	default:
		arena.set.entries[roll(dice, NR_ENTRIES)].status =
			FLEXSC_CANCEL;
		request(fd, FLEXSC_IOC_CANCEL, roll(dice, NR_ENTRIES + 2));
	}
}

/* Plainly closed, and another file has the number: of a socket, mostly. */
static void replace(struct dice *dice)
{
	int pair[2], fd = (int)arena.fds[roll(dice, 8)];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return;
	send(pair[1], "replaced", 8, MSG_NOSIGNAL | MSG_DONTWAIT);
	dup2(pair[0], fd);
	if (roll(dice, 2))
		dup2(pair[1], (int)arena.fds[roll(dice, 8)]);
	for (int i = 0; i < 2; i++)
		if (pair[i] != fd)
			close(pair[i]);
}

static void disturb(struct dice *dice)
{
	static const int numbers[] = { SIGUSR1, SIGUSR2, SIGIO };
	pid_t tid = arena.tids[roll(dice, NR_THREADS + 1)];

	if (tid)
		syscall(SYS_tgkill, getpid(), tid, numbers[roll(dice, 3)]);
	sched_yield();
}

/* What a process does once, at most. */
static void rare(struct dice *dice)
{
	uint32_t page = roll(dice, (uint32_t)(arena.set.map_size / 4096));
	char *at = (char *)arena.set.shared + page * 4096ul;
	int status;
	pid_t child;

	switch (roll(dice, 10)) {
	case 0:
		munmap(arena.set.shared, arena.set.map_size);
		break;
	case 1:
		munmap(at, 4096);
		break;
	case 2:
		mprotect(at, 4096, PROT_READ);
		break;
	case 3:
		madvise(at, 4096, roll(dice, 30));
		break;
	case 4:
		close(arena.set.fd);
		break;
	case 5:
		request(arena.set.fd, FLEXSC_IOC_STOP, 0);
		break;
	case 6:
		execl("/bin/true", "true", NULL);
		break;
	case 7:
		_exit(0);
	case 8:
		mremap(at, 4096, 8192, MREMAP_MAYMOVE);
		break;
	default:
		child = fork();
		if (!child) {
			request(arena.set.fd, FLEXSC_IOC_RUN, 0);
			_exit(0);
		}
		if (child > 0)
			waitpid(child, &status, 0);
	}
}

static void *work(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;
	struct dice dice;

	dice_init(&dice, arena.seed + number);
	arena.tids[number] = (pid_t)syscall(SYS_gettid);
	for (;;) {
		unsigned what = roll(&dice, 100);

		if (what < 70 - 8 * number)
			post_some(&dice);
		else if (what < 80)
			scribble(&dice);
		else if (what < 92)
			ask(&dice);
		else if (what < 98)
			disturb(&dice);
		else
			replace(&dice);
		if (roll(&dice, 20000) == 0)
			rare(&dice);
	}
	return NULL;
}

void fuzz_child(uint64_t seed)
{
	pthread_attr_t small;
	pthread_t thread;
	struct dice dice;
	unsigned nr;

	dice_init(&dice, seed);
	become_nobody();
	arena.seed = seed;
	arena.wildness = roll(&dice, 3) ? 1 + roll(&dice, 50) : 1;
	arena.scribbles = roll(&dice, 4) ? roll(&dice, 4) : roll(&dice, 200);
	nr = 1 + roll(&dice, NR_THREADS);
	if (kset_init(&arena.set, NR_ENTRIES, 1 + roll(&dice, 8)))
		_exit(1);
	open_things();
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (unsigned i = 1; i < nr; i++)
		if (pthread_create(&thread, &small, work, (void *)(uintptr_t)i))
			break;
	work(NULL);
	_exit(0);
}

void fuzz_witness(uint64_t seed)
{
	struct dice dice;
	struct kset set;
	struct lent lent;
	char text[8];
	int fds[2];

	dice_init(&dice, seed);
	CHECK_EQ(kset_init(&set, 64, 2), 0);
	CHECK_EQ(pipe(fds), 0);
	lend(&lent, &set, roll(&dice, 2));
	for (unsigned i = 0; i < 50; i++) {
		CHECK_EQ(CALL(&set, SYS_getpid), getpid());
		CHECK_EQ(CALL(&set, SYS_write, fds[1], ARG("witness"), 8), 8);
		CHECK_EQ(CALL(&set, SYS_read, fds[0], ARG(text), 8), 8);
		CHECK(!strcmp(text, "witness"));
		CHECK_EQ(CALL(&set, SYS_close, 1000), -EBADF);
	}
	CHECK_EQ(request(set.fd, FLEXSC_IOC_STOP, 0), 0);
	CHECK_EQ(unlend(&lent), -ESHUTDOWN);
	kset_fini(&set);
	_exit(0);
}
