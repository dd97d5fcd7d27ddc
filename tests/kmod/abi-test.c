/* SPDX-License-Identifier: MIT */
/*
 * What <linux/flexsc.h> says of flexsc.ko: registering, requests and their
 * errors, rings, chains, cancelling, threads, the descriptor in an epoll set.
 */
#include "cases.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

static int device(void)
{
	int fd = open(FLEXSC_DEVICE, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static long registered(int fd, struct flexsc_register argument)
{
	if (!argument.version)
		argument.version = FLEXSC_ABI_VERSION;
	if (!argument.max_entries)
		argument.max_entries = 64;
	return request(fd, FLEXSC_IOC_REGISTER, ARG(&argument));
}

#define REGISTER(fd, ...) \
	registered(fd, (struct flexsc_register){ __VA_ARGS__ })

static void bad_registrations(void)
{
	int fd = device();

	CHECK_EQ(REGISTER(fd, .version = FLEXSC_ABI_VERSION + 1),
		 -EPROTONOSUPPORT);
	CHECK_EQ(REGISTER(fd, .flags = 0x80), -EINVAL);
	CHECK_EQ(REGISTER(fd, .reserved = { 0, 1 }), -EINVAL);
	CHECK_EQ(request(fd, FLEXSC_IOC_REGISTER, 8), -EFAULT);
	/* None of that has left anything behind. */
	CHECK_EQ(REGISTER(fd, .max_entries = 65), 0);
	CHECK_EQ(REGISTER(fd, .flags = 0), -EBUSY);
	close(fd);
}

static void bad_requests(void)
{
	struct flexsc_wait wait = { .flags = 0x10 };
	struct kset set;
	int fd = device();

	/* Without a set. */
	CHECK(request(fd, FLEXSC_IOC_RUN, 0) < 0);
	CHECK(request(fd, FLEXSC_IOC_WAIT, ARG(&wait)) < 0);
	CHECK(request(fd, FLEXSC_IOC_CANCEL, 0) < 0);
	CHECK(request(fd, FLEXSC_IOC_STOP, 0) < 0);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	close(fd);

	CHECK_EQ(kset_init(&set, 64, 1), 0);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_WAIT, ARG(&wait)), -EINVAL);
	wait.flags = 0;
	wait.reserved = 1;
	CHECK_EQ(request(set.fd, FLEXSC_IOC_WAIT, ARG(&wait)), -EINVAL);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_WAIT, 8), -EFAULT);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_STATS, 8), -EFAULT);
	CHECK_EQ(request(set.fd, _IO(FLEXSC_IOC_MAGIC, 200), 0), -ENOTTY);
	CHECK(request(set.fd, FLEXSC_IOC_CANCEL, 1u << 31) < 0);
	CHECK(request(set.fd, FLEXSC_IOC_CANCEL, 64) < 0);
	CHECK(request(set.fd, FLEXSC_IOC_CANCEL, 5) < 0);
	CHECK_EQ(kset_run(&set, 0), 0);
	kset_fini(&set);
}

static void bad_mappings(void)
{
	struct flexsc_register argument = { .version = FLEXSC_ABI_VERSION,
					    .max_entries = 64 };
	int fd = device(), all = PROT_READ | PROT_WRITE;
	size_t size;
	void *map;

	CHECK_EQ(request(fd, FLEXSC_IOC_REGISTER, ARG(&argument)), 0);
	size = argument.map_size;
	CHECK(size >= 4096 && size % 4096 == 0);
	CHECK(mmap(NULL, size, all, MAP_PRIVATE, fd, 0) == MAP_FAILED);
	CHECK(mmap(NULL, size, all, MAP_SHARED, fd, 4096) == MAP_FAILED);
	CHECK(mmap(NULL, size + 4096, all, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK(mmap(NULL, size, all | PROT_EXEC, MAP_SHARED, fd, 0) ==
	      MAP_FAILED);
	map = mmap(NULL, size, all, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	CHECK(mmap(NULL, size, all, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK(mremap(map, size, 2 * size, MREMAP_MAYMOVE) == MAP_FAILED);
	CHECK(mprotect(map, size, all | PROT_EXEC) < 0);
	/* Without its mapping the set is gone for good. */
	CHECK_EQ(munmap(map, size), 0);
	CHECK(mmap(NULL, size, all, MAP_SHARED, fd, 0) == MAP_FAILED);
	close(fd);
}

static void calls_and_results(void)
{
	struct kset set;
	char buffer[16];
	struct stat is, should;
	int64_t fd;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(CALL(&set, SYS_getpid), getpid());
	CHECK_EQ(CALL(&set, SYS_close, 12345), -EBADF);
	CHECK_EQ(CALL(&set, SYS_lseek, 0, 0, 99), lseek(0, 0, 99) ? -errno : 0);
	fd = CALL(&set, SYS_openat, ARG(AT_FDCWD), ARG("/proc/self/stat"), 0);
	CHECK(fd >= 0);
	CHECK_EQ(CALL(&set, SYS_read, fd, ARG(buffer), 3), 3);
	CHECK_EQ(atoi(buffer) > 0, 1);
	CHECK_EQ(CALL(&set, SYS_newfstatat, ARG(AT_FDCWD), ARG("/etc/passwd"),
		      ARG(&is), 0),
		 0);
	CHECK_EQ(stat("/etc/passwd", &should), 0);
	CHECK_EQ(is.st_ino, should.st_ino);
	CHECK_EQ(CALL(&set, SYS_close, fd), 0);
	CHECK_EQ(fcntl((int)fd, F_GETFD), -1);
	/* A result that does not fit into a completion slot. */
	fd = open("/run/wide", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	CHECK_EQ(CALL(&set, SYS_lseek, fd, 1ull << 40, SEEK_SET), 1ll << 40);
	CHECK_EQ(CALL(&set, SYS_lseek, fd, 0x80000000ull, SEEK_SET),
		 0x80000000ll);
	unlink("/run/wide");
	kset_fini(&set);
}

static void refused_numbers(void)
{
	static const unsigned never[] = {
		SYS_fork,   SYS_vfork,	    SYS_clone,
		SYS_clone3, SYS_execve,	    SYS_execveat,
		SYS_exit,   SYS_exit_group, SYS_rt_sigreturn,
	};
	struct kset set;
	uint32_t index;
	int64_t ret;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	for (unsigned i = 0; i < sizeof(never) / sizeof(*never); i++) {
		ret = CALL(&set, never[i], 0, 0, 0, 0, 0, 0);
		if (ret != -EOPNOTSUPP)
			fail(__FILE__, __LINE__, "number %u returned %lld",
			     never[i], (long long)ret);
	}
	/* Numbers of no table, x32, and the module's own of a bad descriptor. */
	for (unsigned nr = 480; nr < 65536; nr += nr < 600 ? 1 : 97) {
		ret = CALL(&set, nr, ARG(-1), 1, 0, 0, 0, 0);
		if (ret == -ENOSYS || ret == -EOPNOTSUPP ||
		    (ret == -EBADF && nr <= FLEXSC_NR_READY_OUT))
			continue;
		fail(__FILE__, __LINE__, "number %u returned %lld", nr,
		     (long long)ret);
	}
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK(!kset_reap(&set, &index, &ret));
	kset_fini(&set);
}

static void entry_states(void)
{
	struct flexsc_stats before, after;
	struct kset set;
	uint32_t index;
	int64_t ret;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	before = kset_stats(&set);
	/* FREE, DONE, nonsense, and an index beyond the entries. */
	kset_publish(&set, 3);
	set.entries[4].status = FLEXSC_DONE;
	kset_publish(&set, 4);
	set.entries[5].status = 0xabcdef;
	kset_publish(&set, 5);
	kset_publish(&set, 64);
	kset_publish(&set, FLEXSC_SLOT_INDEX);
	kset_run(&set, 0);
	CHECK(!kset_reap(&set, &index, &ret));
	after = kset_stats(&set);
	CHECK_EQ(after.set.dropped - before.set.dropped, 5);
	CHECK_EQ(after.calls, before.calls);
	/* CANCEL before it began. */
	set.entries[6].nr = SYS_getppid;
	set.entries[6].status = FLEXSC_CANCEL;
	kset_publish(&set, 6);
	CHECK_EQ(kset_next(&set, &index), -ECANCELED);
	CHECK_EQ(index, 6);
	CHECK_EQ(CALL(&set, SYS_getpid), getpid());
	kset_fini(&set);
}

/* Submitted again while it is under way: the first one is not disturbed. */
/*
 * Submitted again while it is under way: what need not wait is made, what
 * would wait for a descriptor or for a thread is not, and the old call stays.
 */
static void twice(void)
{
	struct timespec nap = { .tv_nsec = 1000 };
	struct kset set;
	uint32_t index;
	char byte;
	int sv[2];

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	POST(&set, 9, SYS_read, sv[0], ARG(&byte), 1);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(set.shared->nr_armed, 1);
	POST(&set, 9, SYS_getppid);
	CHECK_EQ(kset_next(&set, &index), getppid());
	CHECK_EQ(index, 9);
	POST(&set, 9, SYS_read, sv[1], ARG(&byte), 1);
	CHECK_EQ(kset_next(&set, &index), -EBUSY);
	CHECK_EQ(index, 9);
	POST(&set, 9, SYS_nanosleep, ARG(&nap), 0);
	CHECK_EQ(kset_next(&set, &index), -EBUSY);
	CHECK_EQ(index, 9);
	CHECK_EQ(set.shared->nr_armed, 1);
	/* The old one's status is gone with the new ones, but not its call. */
	CHECK_EQ(request(set.fd, FLEXSC_IOC_CANCEL, 9), 0);
	CHECK_EQ(kset_next(&set, &index), -ECANCELED);
	CHECK_EQ(index, 9);
	POST(&set, 9, SYS_read, sv[0], ARG(&byte), 1);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(set.shared->nr_armed, 1);
	CHECK_EQ(write(sv[1], "x", 1), 1);
	CHECK_EQ(kset_next(&set, &index), 1);
	CHECK_EQ(index, 9);
	CHECK_EQ(set.shared->nr_armed, 0);
	kset_fini(&set);
}

static void chain_post(struct kset *set, uint32_t first,
		       const struct call *calls, unsigned nr)
{
	/* Slots last to first, as the header asks. */
	uint64_t tail = set->sq_tail;

	for (unsigned i = nr; i-- > 0;) {
		set->sq_tail = tail + i;
		kset_post(set, first + i, &calls[i]);
	}
	set->sq_tail = tail + nr;
}

static void chains(void)
{
	char buffer[4] = "";
	struct call calls[] = {
		{ SYS_openat,
		  3,
		  FLEXSC_F_LINK,
		  { ARG(AT_FDCWD), ARG("/etc/passwd"), 0 } },
		{ SYS_read,
		  3,
		  FLEXSC_F_LINK | FLEXSC_F_ARG(0),
		  { 1, ARG(buffer), 3 } },
		{ SYS_close, 1, FLEXSC_F_ALWAYS | FLEXSC_F_ARG(0), { 2 } },
	};
	struct kset set;
	uint32_t index;
	int64_t fd;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	chain_post(&set, 0, calls, 3);
	fd = kset_next(&set, &index);
	CHECK(fd >= 0);
	CHECK_EQ(kset_next(&set, &index), 3);
	CHECK_EQ(kset_next(&set, &index), 0);
	CHECK_EQ(index, 2);
	CHECK(!memcmp(buffer, "roo", 3));
	CHECK_EQ(fcntl((int)fd, F_GETFD), -1);
	/* The first one fails: none of the others has its argument. */
	calls[0].args[1] = ARG("/absent");
	chain_post(&set, 3, calls, 3);
	CHECK_EQ(kset_next(&set, &index), -ENOENT);
	CHECK_EQ(kset_next(&set, &index), -ECANCELED);
	CHECK_EQ(kset_next(&set, &index), -ECANCELED);
	kset_fini(&set);
}

/* Distances out of the chain, and chains without an end. */
static void bad_chains(void)
{
	struct call far = { SYS_close, 1, FLEXSC_F_ARG(0), { 1 } };
	struct call linked = { SYS_getppid, 0, FLEXSC_F_LINK, { 0 } };
	struct kset set;
	uint32_t index;
	int64_t ret;
	unsigned nr = 0;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK(kset_call(&set, &far) < 0);
	far.args[0] = UINT64_MAX;
	CHECK(kset_call(&set, &far) < 0);
	far.args[0] = 0;
	CHECK(kset_call(&set, &far) < 0);
	for (unsigned i = 0; i < FLEXSC_MAX_CHAIN + 4; i++)
		kset_post(&set, i, &linked);
	kset_run(&set, 0);
	/* The end may be missing still: something that ends it. */
	linked.flags = 0;
	kset_post(&set, FLEXSC_MAX_CHAIN + 4, &linked);
	kset_run(&set, 0);
	while (kset_reap(&set, &index, &ret))
		nr++;
	CHECK(nr <= FLEXSC_MAX_CHAIN + 5);
	CHECK_EQ(CALL(&set, SYS_getpid), getpid());
	kset_fini(&set);
}

static void cancelling(void)
{
	struct kset set;
	struct lent lent;
	uint32_t index;
	int64_t ret;
	char byte;
	int sv[2];
	struct timespec hour = { .tv_sec = 3600 };

	CHECK_EQ(kset_init(&set, 64, 4), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	POST(&set, 1, SYS_read, sv[0], ARG(&byte), 1);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(set.entries[1].status, FLEXSC_BUSY);
	set.entries[1].status = FLEXSC_CANCEL;
	CHECK_EQ(request(set.fd, FLEXSC_IOC_CANCEL, 1), 0);
	CHECK_EQ(kset_next(&set, &index), -ECANCELED);
	/* In a thread. */
	lend(&lent, &set, 0);
	POST(&set, 2, SYS_nanosleep, ARG(&hour), 0);
	kset_run(&set, 0);
	sleep_ms(100);
	set.entries[2].status = FLEXSC_CANCEL;
	ret = request(set.fd, FLEXSC_IOC_CANCEL, 2);
	CHECK_EQ(ret, 0);
	CHECK_EQ(kset_next(&set, &index), -ECANCELED);
	CHECK_EQ(index, 2);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_CANCEL, 2), -ENOENT);
	/* By notice, acknowledged. */
	POST(&set, 3, SYS_read, sv[0], ARG(&byte), 1);
	CHECK_EQ(kset_run(&set, 0), 0);
	set.entries[3].status = FLEXSC_CANCEL;
	kset_publish(&set, 3 | FLEXSC_SLOT_NOTICE);
	ret = kset_next(&set, &index);
	if (index & FLEXSC_SLOT_NOTICE) {
		CHECK_EQ(kset_next(&set, &index), -ECANCELED);
		CHECK_EQ(index, 3);
	} else {
		CHECK_EQ(ret, -ECANCELED);
		kset_next(&set, &index);
		CHECK_EQ(index, 3 | FLEXSC_SLOT_NOTICE);
	}
	CHECK_EQ(request(set.fd, FLEXSC_IOC_STOP, 0), 0);
	CHECK_EQ(unlend(&lent), -ESHUTDOWN);
	kset_fini(&set);
}

static void closing(void)
{
	struct kset set;
	uint32_t index;
	char byte;
	int sv[2];

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	POST(&set, 1, SYS_read, sv[0], ARG(&byte), 1);
	POST(&set, 2, SYS_read, sv[1], ARG(&byte), 1);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK(request(set.fd, FLEXSC_IOC_CLOSING, (unsigned long)sv[0]) >= 0);
	CHECK_EQ(kset_next(&set, &index), -ECANCELED);
	CHECK_EQ(index, 1);
	CHECK_EQ(set.shared->nr_armed, 1);
	CHECK(request(set.fd, FLEXSC_IOC_CLOSING, 123456) >= 0);
	kset_fini(&set);
}

/* What STOP leaves on the ring is the owner's again. */
static void stopping(void)
{
	struct kset set;
	uint32_t index;
	int64_t ret;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(CALL(&set, SYS_getpid), getpid());
	CHECK_EQ(CALL(&set, SYS_getpid), getpid());
	CHECK_EQ(request(set.fd, FLEXSC_IOC_STOP, 0), 0);
	CHECK_EQ(set.shared->sq_head, 2);
	CHECK_EQ(set.shared->cq_tail, 2);
	POST(&set, 7, SYS_getpid);
	kset_run(&set, 0);
	CHECK(!kset_reap(&set, &index, &ret));
	kset_fini(&set);
}

static void waking(void)
{
	struct kset set;
	uint64_t begin = now_ns();

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_WAKE, 0), 0);
	CHECK(kset_run(&set, UINT64_MAX) >= 0);
	/* It may look once more before it sleeps again. */
	CHECK(kset_run(&set, 50000000) >= 0);
	begin = now_ns();
	CHECK(kset_run(&set, 50000000) >= 0);
	CHECK(now_ns() - begin >= 49000000);
	kset_fini(&set);
}

static void nothing(int number)
{
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval soon = { .it_value = { .tv_usec = 50000 } };
	struct kset set;
	uint32_t index;
	char byte;
	int sv[2];

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	sigaction(SIGALRM, &action, NULL);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	POST(&set, 1, SYS_read, sv[0], ARG(&byte), 1);
	setitimer(ITIMER_REAL, &soon, NULL);
	CHECK_EQ(kset_run(&set, 60000000000ull), -EINTR);
	/* The posted call has not heard of it. */
	CHECK_EQ(set.shared->nr_armed, 1);
	CHECK_EQ(write(sv[1], "x", 1), 1);
	CHECK_EQ(kset_next(&set, &index), 1);
	/* SIGPIPE is not raised. */
	close(sv[0]);
	CHECK_EQ(CALL(&set, SYS_write, sv[1], ARG("x"), 1), -EPIPE);
	kset_fini(&set);
}

static void in_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct kset set;
	uint32_t index;
	char byte;
	int sv[2], epoll = epoll_create1(EPOLL_CLOEXEC);

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, set.fd, &event), 0);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	POST(&set, 1, SYS_read, sv[0], ARG(&byte), 1);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	CHECK_EQ(write(sv[1], "x", 1), 1);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 10000), 1);
	CHECK_EQ(kset_next(&set, &index), 1);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	kset_fini(&set);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 0);
}

/* A set of each size; counts of the module return to where they were. */
static void sizes(void)
{
	struct flexsc_stats before, after;
	struct kset set;
	int fd = device();

	CHECK_EQ(request(fd, FLEXSC_IOC_STATS, ARG(&before)), 0);
	for (uint32_t nr = 64; nr <= 131072; nr *= 2) {
		CHECK_EQ(kset_init(&set, nr, 2), 0);
		CHECK_EQ(set.max_entries, nr);
		for (unsigned i = 0; i < 400; i++)
			CHECK_EQ(CALL(&set, SYS_getpid), getpid());
		set.next_index = nr - 1;
		CHECK_EQ(CALL(&set, SYS_getpid), getpid());
		kset_fini(&set);
	}
	CHECK_EQ(request(fd, FLEXSC_IOC_STATS, ARG(&after)), 0);
	CHECK_EQ(after.sets, before.sets);
	CHECK_EQ(after.calls, before.calls);
	CHECK_EQ(after.threads, before.threads);
	CHECK_EQ(after.pages, before.pages);
}

/* The last close of a file has happened when it says so. */
static void deferred_close(void)
{
	struct kset set;
	char byte;
	int fds[2];

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(CALL(&set, SYS_close, fds[1]), 0);
	CHECK_EQ(CALL(&set, SYS_read, fds[0], ARG(&byte), 1), 0);
	kset_fini(&set);
}

int main(void)
{
	static const struct test_case cases[] = {
		CASE(bad_registrations),
		CASE(bad_requests),
		CASE(bad_mappings),
		CASE(calls_and_results),
		CASE(refused_numbers),

		CASE(entry_states),
		CASE(twice),
		CASE(chains),
		CASE(bad_chains),
		CASE(cancelling),
		CASE(closing),
		CASE(stopping),
		CASE(waking),
		CASE(signals),
		CASE(in_epoll),
		CASE(sizes),
		CASE(deferred_close),
	};

	return run_cases(cases, sizeof(cases) / sizeof(*cases));
}
