/* SPDX-License-Identifier: MIT */
/*
 * Kernel cores through the ABI: threads of WAIT_POLL, of which one has the
 * role and the others stand by. What blocks here is a fault on memory whose
 * content this process has still to give: nobody can end that, as nobody ends
 * the wait for a disk.
 */
#include "cases.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

/* Memory that blocks who touches it, until it is filled. */
struct slow {
	int fd;
	char *at;
};

static void slow_init(struct slow *slow)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	slow->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (slow->fd < 0)
		skip("no userfaultfd here");
	slow->at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_EQ(ioctl(slow->fd, UFFDIO_API, &api), 0);
	area.range.start = ARG(slow->at);
	area.range.len = 4096;
	CHECK_EQ(ioctl(slow->fd, UFFDIO_REGISTER, &area), 0);
}

/* Somebody is in the fault. */
static void slow_await(struct slow *slow)
{
	struct uffd_msg message;

	CHECK_EQ(read(slow->fd, &message, sizeof(message)), sizeof(message));
	CHECK_EQ(message.event, UFFD_EVENT_PAGEFAULT);
}

static void slow_fill(struct slow *slow)
{
	struct uffdio_zeropage zero = { .range = { ARG(slow->at), 4096 } };

	CHECK_EQ(ioctl(slow->fd, UFFDIO_ZEROPAGE, &zero), 0);
}

static void slow_give(struct slow *slow, void *page)
{
	struct uffdio_copy copy = { .dst = ARG(slow->at),
				    .src = ARG(page),
				    .len = 4096 };

	CHECK_EQ(ioctl(slow->fd, UFFDIO_COPY, &copy), 0);
}

/* It is to look, if it sleeps. */
static void kick(struct kset *set)
{
	if (__atomic_exchange_n(&set->shared->engine_sleeping, 0,
				__ATOMIC_SEQ_CST))
		CHECK_EQ(request(set->fd, FLEXSC_IOC_KICK, 0), 0);
}

static void post_kicked(struct kset *set, uint32_t index, unsigned nr)
{
	POST(set, index, nr);
	kick(set);
}

/* Without entering the kernel. */
static int64_t poll_next(struct kset *set, uint32_t *index)
{
	uint64_t end = now_ns() + 60000000000ull;
	int64_t ret;

	while (!kset_reap(set, index, &ret)) {
		CHECK(now_ns() < end);
		sched_yield();
	}
	return ret;
}

static void await_asleep(struct kset *set)
{
	while (!__atomic_load_n(&set->shared->engine_sleeping,
				__ATOMIC_ACQUIRE))
		sleep_ms(1);
}

static void stop(struct kset *set, struct lent *lent, unsigned nr)
{
	request(set->fd, FLEXSC_IOC_STOP, 0);
	for (unsigned i = 0; i < nr; i++)
		CHECK_EQ(unlend(&lent[i]), -ESHUTDOWN);
	kset_fini(set);
}

/* Of several one has the role: as many calls, each carried out once. */
static void one_of_several(void)
{
	struct lent lent[3];
	struct kset set;
	uint32_t index;

	CHECK_EQ(kset_init(&set, 64, 3), 0);
	for (int i = 0; i < 3; i++)
		lend(&lent[i], &set, FLEXSC_WAIT_POLL);
	for (uint32_t i = 0; i < 2000; i++) {
		post_kicked(&set, i % 64, SYS_getpid);
		CHECK_EQ(poll_next(&set, &index), getpid());
		CHECK_EQ(index, i % 64);
	}
	request(set.fd, FLEXSC_IOC_STOP, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(unlend(&lent[i]), -ESHUTDOWN);
	CHECK_EQ(kset_stats(&set).set.entries, 2000);
	kset_fini(&set);
}

/* What one blocks in does not hold up the others' calls, nor they it. */
static void hands_over(void)
{
	struct lent lent[2];
	struct slow slow;
	struct kset set;
	uint32_t index;

	slow_init(&slow);
	CHECK_EQ(kset_init(&set, 64, 2), 0);
	lend(&lent[0], &set, FLEXSC_WAIT_POLL);
	await_asleep(&set);
	lend(&lent[1], &set, FLEXSC_WAIT_POLL);
	while (kset_stats(&set).threads != 2)
		sleep_ms(1);
	sleep_ms(50);
	POST(&set, 1, SYS_uname, ARG(slow.at));
	for (uint32_t i = 2; i < 50; i++)
		post_kicked(&set, i, SYS_getpid);
	slow_await(&slow);
	for (uint32_t i = 2; i < 50; i++) {
		CHECK_EQ(poll_next(&set, &index), getpid());
		CHECK(index != 1);
	}
	CHECK_EQ(kset_stats(&set).set.handed_over, 1);
	slow_fill(&slow);
	CHECK_EQ(poll_next(&set, &index), 0);
	CHECK_EQ(index, 1);
	post_kicked(&set, 2, SYS_getpid);
	CHECK_EQ(poll_next(&set, &index), getpid());
	stop(&set, lent, 2);
}

/* Nobody stands by: then the owner's RUN does it. */
static void owner_helps(void)
{
	struct lent lent;
	struct slow slow;
	struct kset set;
	uint32_t index;
	char byte;
	int sv[2];

	slow_init(&slow);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	CHECK_EQ(kset_init(&set, 64, 1), 0);
	lend(&lent, &set, FLEXSC_WAIT_POLL);
	await_asleep(&set);
	POST(&set, 0, SYS_read, sv[0], ARG(&byte), 1);
	post_kicked(&set, 2, SYS_getpid);
	CHECK_EQ(poll_next(&set, &index), getpid());
	POST(&set, 1, SYS_uname, ARG(slow.at));
	post_kicked(&set, 2, SYS_getpid);
	slow_await(&slow);
	CHECK_EQ(kset_next(&set, &index), getpid());
	CHECK_EQ(index, 2);
	/* And what becomes ready meanwhile. */
	CHECK_EQ(write(sv[1], "x", 1), 1);
	CHECK_EQ(kset_next(&set, &index), 1);
	CHECK_EQ(index, 0);
	slow_fill(&slow);
	CHECK_EQ(kset_next(&set, &index), 0);
	CHECK_EQ(index, 1);
	stop(&set, &lent, 1);
}

/*
 * One blocks in a call that was taken before a close, before it could be armed:
 * it ends as those do that are armed.
 */
static void closed_by_another(void)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct msghdr *header = (struct msghdr *)page;
	struct lent lent[2];
	struct iovec vec;
	struct slow slow;
	struct kset set;
	int64_t ret[3];
	uint32_t index;
	char byte;
	int sv[2];

	slow_init(&slow);
	vec = (struct iovec){ &byte, 1 };
	*header = (struct msghdr){ .msg_iov = &vec, .msg_iovlen = 1 };
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	CHECK_EQ(kset_init(&set, 64, 2), 0);
	for (int i = 0; i < 2; i++)
		lend(&lent[i], &set, FLEXSC_WAIT_POLL);
	while (kset_stats(&set).threads != 2)
		sleep_ms(1);
	await_asleep(&set);
	POST(&set, 1, SYS_recvmsg, sv[0], ARG(slow.at), 0);
	POST(&set, 2, SYS_close, sv[0]);
	kick(&set);
	slow_await(&slow);
	while (__atomic_load_n(&set.shared->sq_head, __ATOMIC_ACQUIRE) < 2)
		sleep_ms(1);
	sleep_ms(10); /* too soon is not seen: that is no failure */
	slow_give(&slow, page);
	for (int i = 0; i < 2; i++) {
		int64_t one = poll_next(&set, &index);

		CHECK(index == 1 || index == 2);
		ret[index] = one;
	}
	CHECK_EQ(ret[1], -ECANCELED);
	CHECK_EQ(ret[2], 0);
	stop(&set, lent, 2);
}

/* The owner helps, and what it or the core took before a close ends before. */
static void closes_in_order(void)
{
	struct lent lent;
	struct kset set;
	uint32_t index;
	char bytes[3];
	int sv[2];

	CHECK_EQ(kset_init(&set, 64, 1), 0);
	lend(&lent, &set, FLEXSC_WAIT_POLL);
	for (int round = 0; round < 1000; round++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
		for (uint32_t i = 0; i < 3; i++)
			POST(&set, i, SYS_read, sv[0], ARG(&bytes[i]), 1);
		POST(&set, 3, SYS_close, sv[0]);
		kick(&set);
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(kset_next(&set, &index), -ECANCELED);
			CHECK(index < 3);
		}
		CHECK_EQ(kset_next(&set, &index), 0);
		CHECK_EQ(index, 3);
		CHECK_EQ(close(sv[1]), 0);
	}
	stop(&set, &lent, 1);
}

/* A call for threads: the owner hears that there is none. */
static void short_of_threads(void)
{
	struct timespec nap = { .tv_nsec = 1000000 };
	struct lent lent[2];
	struct kset set;
	uint32_t index;

	CHECK_EQ(kset_init(&set, 64, 2), 0);
	lend(&lent[0], &set, FLEXSC_WAIT_POLL);
	await_asleep(&set);
	POST(&set, 0, SYS_nanosleep, ARG(&nap), 0);
	post_kicked(&set, 1, SYS_getpid);
	CHECK_EQ(poll_next(&set, &index), getpid());
	CHECK_EQ(set.shared->threads_wanted, 1);
	CHECK_EQ(kset_run(&set, 1000000000), 1);
	CHECK_EQ(set.shared->threads_wanted, 0);
	lend(&lent[1], &set, 0);
	CHECK_EQ(poll_next(&set, &index), 0);
	stop(&set, lent, 2);
}

static unsigned long switches(pid_t tid)
{
	char path[64], line[128];
	unsigned long nr, sum = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "r");
	CHECK(file != NULL);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &nr) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %lu", &nr) == 1)
			sum += nr;
	fclose(file);
	return sum;
}

struct idler {
	struct kset *set;
	pid_t tid;
	long result;
};

static void *be_idle(void *arg)
{
	struct flexsc_wait want = { .flags = FLEXSC_WAIT_POLL,
				    .spin_ns = 1000000 };
	struct idler *idler = arg;

	__atomic_store_n(&idler->tid, (pid_t)syscall(SYS_gettid),
			 __ATOMIC_RELEASE);
	do {
		idler->result =
			request(idler->set->fd, FLEXSC_IOC_WAIT, ARG(&want));
	} while (idler->result == -EINTR);
	return NULL;
}

/* Once it sleeps it is not woken, by whatever, until there is work. */
static void idle_costs_nothing(void)
{
	struct idler idler = { 0 };
	unsigned long before;
	pthread_t thread;
	struct kset set;
	uint32_t index;

	CHECK_EQ(kset_init(&set, 64, 1), 0);
	idler.set = &set;
	CHECK_EQ(pthread_create(&thread, NULL, be_idle, &idler), 0);
	await_asleep(&set);
	post_kicked(&set, 1, SYS_getpid);
	CHECK_EQ(poll_next(&set, &index), getpid());
	await_asleep(&set);
	sleep_ms(50);
	before = switches(idler.tid);
	sleep_ms(1000);
	CHECK_EQ(switches(idler.tid), before);
	CHECK_EQ(set.shared->engine_sleeping, 1);
	request(set.fd, FLEXSC_IOC_STOP, 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(idler.result, -ESHUTDOWN);
	kset_fini(&set);
}

/* They come back, the set goes on. */
static void dismissed(void)
{
	struct lent lent[2];
	struct kset set;
	uint32_t index;

	CHECK_EQ(kset_init(&set, 64, 3), 0);
	for (int i = 0; i < 2; i++)
		lend(&lent[i], &set, FLEXSC_WAIT_POLL);
	while (kset_stats(&set).threads != 2)
		sleep_ms(1);
	await_asleep(&set);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_KICK, 1), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(unlend(&lent[i]), -ECANCELED);
	POST(&set, 1, SYS_getpid);
	CHECK_EQ(kset_next(&set, &index), getpid());
	lend(&lent[0], &set, FLEXSC_WAIT_POLL);
	await_asleep(&set);
	post_kicked(&set, 2, SYS_getpid);
	CHECK_EQ(poll_next(&set, &index), getpid());
	stop(&set, lent, 1);
}

/* Killed while one polls, one stands by and one is stuck; the set is gone. */
static void killed(void)
{
	struct flexsc_stats before, after;
	int fd = open(FLEXSC_DEVICE, O_RDWR | O_CLOEXEC), status;
	pid_t child;

	CHECK_EQ(request(fd, FLEXSC_IOC_STATS, ARG(&before)), 0);
	for (int round = 0; round < 10; round++) {
		child = fork();
		if (!child) {
			struct lent lent[3];
			struct slow slow;
			struct kset set;

			slow_init(&slow);
			CHECK_EQ(kset_init(&set, 64, 3), 0);
			for (int i = 0; i < 3; i++)
				lend(&lent[i], &set, FLEXSC_WAIT_POLL);
			await_asleep(&set);
			POST(&set, 1, SYS_uname, ARG(slow.at));
			for (uint32_t i = 2; i < 60; i++)
				post_kicked(&set, i, SYS_getpid);
			slow_await(&slow);
			if (round & 1)
				_exit(0);
			kill(getpid(), SIGKILL);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK(WIFSIGNALED(status) || !status);
	}
	for (int i = 0; i < 500; i++) {
		CHECK_EQ(request(fd, FLEXSC_IOC_STATS, ARG(&after)), 0);
		if (after.sets == before.sets &&
		    after.threads == before.threads)
			break;
		sleep_ms(10);
	}
	CHECK_EQ(after.sets, before.sets);
	CHECK_EQ(after.threads, before.threads);
}

static void forked(void *arg)
{
	struct kset *set = arg, own;
	struct flexsc_wait want = { .flags = FLEXSC_WAIT_POLL };

	CHECK_EQ(request(set->fd, FLEXSC_IOC_WAIT, ARG(&want)), -EPERM);
	CHECK_EQ(request(set->fd, FLEXSC_IOC_KICK, 1), -EPERM);
	CHECK_EQ(kset_init(&own, 64, 1), 0);
	CHECK_EQ(CALL(&own, SYS_getpid), getpid());
	kset_fini(&own);
}

/* A forked child has nothing of it, and takes nothing away. */
static void with_a_child(void)
{
	struct lent lent;
	struct kset set;
	uint32_t index;

	CHECK_EQ(kset_init(&set, 64, 1), 0);
	lend(&lent, &set, FLEXSC_WAIT_POLL);
	await_asleep(&set);
	in_child(forked, &set);
	post_kicked(&set, 2, SYS_getpid);
	CHECK_EQ(poll_next(&set, &index), getpid());
	stop(&set, &lent, 1);
}

int main(void)
{
	static const struct test_case cases[] = {
		CASE(one_of_several),
		CASE(hands_over),
		CASE(owner_helps),
		CASE(closed_by_another),
		CASE(closes_in_order),
		CASE(short_of_threads),
		CASE(idle_costs_nothing),
		CASE(dismissed),
		CASE(killed),
		CASE(with_a_child),
	};

	return run_cases(cases, sizeof(cases) / sizeof(*cases));
}
