/* SPDX-License-Identifier: MIT */
/*
 * Calls of flexsc.ko that wait: in no thread if their file can be polled, in
 * a lent one otherwise; what ends them, and what they leave behind.
 */
#include "cases.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void make_pair(int sv[2])
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
}

/* Completions of indices from @first on, each @ret. */
static void expect(struct kset *set, uint32_t first, unsigned nr, int64_t ret)
{
	uint32_t index;

	for (unsigned i = 0; i < nr; i++) {
		CHECK_EQ(kset_next(set, &index), ret);
		CHECK(index >= first && index < first + nr);
	}
}

/* Seven reads sleep, fifty short calls do not wait for them. */
static void seven_and_fifty(void)
{
	struct kset set;
	int sv[7][2];
	char byte[7];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	CHECK_EQ(kset_init(&set, 64, 8), 0);
	for (uint32_t i = 0; i < 7; i++) {
		make_pair(sv[i]);
		POST(&set, i, SYS_read, sv[i][0], ARG(&byte[i]), 1);
	}
	for (uint32_t i = 7; i < 57; i++)
		POST(&set, i, SYS_getppid);
	CHECK(kset_run(&set, 0) >= 0);
	expect(&set, 7, 50, getppid());
	CHECK_EQ(set.shared->nr_armed, 7);
	CHECK_EQ(nr_threads(), 1);
	for (uint32_t i = 0; i < 7; i++)
		CHECK_EQ(write(sv[i][1], "x", 1), 1);
	expect(&set, 0, 7, 1);
	kset_fini(&set);
}

/* The same with calls that only a thread can wait in, and eight of them. */
static void seven_in_threads(void)
{
	struct lent lent[8];
	struct kset set;
	int files[7], held = open("/run/lock7", O_RDWR | O_CREAT, 0600);

	CHECK_EQ(kset_init(&set, 64, 8), 0);
	CHECK_EQ(flock(held, LOCK_EX), 0);
	for (uint32_t i = 0; i < 8; i++)
		lend(&lent[i], &set, 0);
	for (uint32_t i = 0; i < 7; i++) {
		files[i] = open("/run/lock7", O_RDWR);
		POST(&set, i, SYS_flock, files[i], LOCK_SH);
	}
	for (uint32_t i = 7; i < 57; i++)
		POST(&set, i, SYS_getppid);
	kset_run(&set, 0);
	expect(&set, 7, 50, getppid());
	CHECK_EQ(flock(held, LOCK_UN), 0);
	expect(&set, 0, 7, 0);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_STOP, 0), 0);
	for (uint32_t i = 0; i < 8; i++)
		CHECK_EQ(unlend(&lent[i]), -ESHUTDOWN);
	unlink("/run/lock7");
	kset_fini(&set);
}

static void idle_sockets(void)
{
	enum {
		NR = 1000
	};
	struct rlimit files = { 4096, 4096 };
	static char byte[NR];
	static int sv[NR][2];
	struct lent lent[2];
	struct kset set;

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
	CHECK_EQ(kset_init(&set, 1024, 8), 0);
	for (uint32_t i = 0; i < 2; i++)
		lend(&lent[i], &set, 0);
	for (uint32_t i = 0; i < NR; i++) {
		make_pair(sv[i]);
		POST(&set, i, SYS_read, sv[i][0], ARG(&byte[i]), 1);
	}
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(set.shared->nr_armed, NR);
	CHECK_EQ(nr_threads(), 3);
	CHECK_EQ(kset_stats(&set).set.queued, 0);
	for (uint32_t i = 0; i < NR; i++)
		CHECK_EQ(write(sv[i][1], "x", 1), 1);
	expect(&set, 0, NR, 1);
	CHECK_EQ(set.shared->nr_armed, 0);
	request(set.fd, FLEXSC_IOC_STOP, 0);
	unlend(&lent[0]);
	unlend(&lent[1]);
	kset_fini(&set);
}

/* Ended with everything waiting: nothing stays behind in the module. */
static void dropped(void)
{
	struct flexsc_stats before, after;
	struct kset set;
	char byte;
	int sv[2], fd = open(FLEXSC_DEVICE, O_RDWR | O_CLOEXEC);

	CHECK_EQ(request(fd, FLEXSC_IOC_STATS, ARG(&before)), 0);
	for (unsigned round = 0; round < 20; round++) {
		CHECK_EQ(kset_init(&set, 256, 0), 0);
		make_pair(sv);
		for (uint32_t i = 0; i < 200; i++)
			POST(&set, i, SYS_read, sv[i & 1], ARG(&byte), 1);
		CHECK_EQ(kset_run(&set, 0), 0);
		CHECK_EQ(set.shared->nr_armed, 200);
		if (round & 1)
			CHECK_EQ(write(sv[0], "1234", 4), 4);
		kset_fini(&set);
		close(sv[0]);
		close(sv[1]);
	}
	CHECK_EQ(request(fd, FLEXSC_IOC_STATS, ARG(&after)), 0);
	CHECK_EQ(after.sets, before.sets);
	CHECK_EQ(after.calls, before.calls);
	CHECK_EQ(after.pages, before.pages);
}

/* Whole writes, of what was read by nobody when it began. */
static void *read_slowly(void *arg)
{
	int fd = *(int *)arg;
	char buffer[30000];
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		sleep_ms(1);
	return NULL;
}

static void whole_write(int fds[2])
{
	size_t size = 3 << 20;
	char *data = calloc(1, size);
	struct lent lent;
	pthread_t reader;
	struct kset set;

	CHECK_EQ(kset_init(&set, 64, 2), 0);
	lend(&lent, &set, 0);
	CHECK_EQ(pthread_create(&reader, NULL, read_slowly, &fds[0]), 0);
	CHECK_EQ(CALL(&set, SYS_write, fds[1], ARG(data), size), (int64_t)size);
	close(fds[1]);
	pthread_join(reader, NULL);
	request(set.fd, FLEXSC_IOC_STOP, 0);
	unlend(&lent);
	kset_fini(&set);
	free(data);
}

static void whole_write_socket(void)
{
	int sv[2];

	make_pair(sv);
	whole_write(sv);
}

static void whole_write_pipe(void)
{
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	whole_write(fds);
}

static void descriptors_of_all_kinds(void)
{
	struct itimerspec soon = { .it_value = { .tv_nsec = 20000000 } };
	uint64_t one = 1, count = 0;
	struct signalfd_siginfo info;
	struct epoll_event event = { .events = EPOLLIN }, got;
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), event_fd;
	int signals, epoll, sv[2];
	struct kset set;
	uint32_t index;
	sigset_t usr1;

	CHECK_EQ(kset_init(&set, 64, 2), 0);
	CHECK_EQ(timerfd_settime(timer, 0, &soon, NULL), 0);
	CHECK_EQ(CALL(&set, SYS_read, timer, ARG(&count), 8), 8);
	CHECK_EQ(count, 1);

	event_fd = eventfd(0, 0);
	POST(&set, 1, SYS_read, event_fd, ARG(&count), 8);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(write(event_fd, &one, 8), 8);
	CHECK_EQ(kset_next(&set, &index), 8);

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	signals = signalfd(-1, &usr1, 0);
	POST(&set, 2, SYS_read, signals, ARG(&info), sizeof(info));
	CHECK_EQ(kset_run(&set, 0), 0);
	kill(getpid(), SIGUSR1);
	CHECK_EQ(kset_next(&set, &index), sizeof(info));
	CHECK_EQ(info.ssi_signo, SIGUSR1);

	/* An epoll set, waited for as a call like any other. */
	make_pair(sv);
	epoll = epoll_create1(0);
	CHECK_EQ(CALL(&set, SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, sv[0],
		      ARG(&event)),
		 0);
	POST(&set, 3, SYS_epoll_wait, epoll, ARG(&got), 1, ARG(-1));
	kset_run(&set, 0);
	CHECK_EQ(write(sv[1], "x", 1), 1);
	if (set.shared->nr_armed) {
		CHECK_EQ(kset_next(&set, &index), 1);
		CHECK_EQ(got.events, EPOLLIN);
	}
	kset_fini(&set);
}

static void connections(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	struct kset set;
	uint32_t index;
	int64_t made;
	int listener = socket(AF_INET, SOCK_STREAM, 0), client;
	char byte = 0;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(bind(listener, (void *)&at, size), 0);
	CHECK_EQ(getsockname(listener, (void *)&at, &size), 0);
	CHECK_EQ(listen(listener, 5), 0);
	POST(&set, 1, SYS_accept4, listener, 0, 0, SOCK_CLOEXEC);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(set.shared->nr_armed, 1);
	client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(client, (void *)&at, size), 0);
	made = kset_next(&set, &index);
	CHECK(made >= 0);
	POST(&set, 2, SYS_recvfrom, made, ARG(&byte), 1, 0, 0, 0);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(CALL(&set, SYS_sendto, client, ARG("z"), 1, 0, 0, 0) >= 0 ||
			 byte == 'z',
		 1);
	kset_fini(&set);
}

/* Ready for ever, and EAGAIN for ever without waiting; a wait ends at once. */
static void shut_down_datagrams(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct kset set;
	char byte;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(connect(fd, (void *)&at, sizeof(at)), 0);
	CHECK_EQ(shutdown(fd, SHUT_RDWR), 0);
	CHECK_EQ(read(fd, &byte, 1), 0);
	CHECK_EQ(CALL(&set, SYS_read, fd, ARG(&byte), 1), 0);
	CHECK_EQ(CALL(&set, SYS_recvfrom, fd, ARG(&byte), 1, 0, 0, 0), 0);
	kset_fini(&set);
}

/* Its own time-out, and with O_NONBLOCK none at all. */
static void socket_timeouts(void)
{
	struct timeval short_time = { .tv_usec = 100000 };
	struct lent lent;
	struct kset set;
	uint64_t begin;
	char byte;
	int sv[2];

	CHECK_EQ(kset_init(&set, 64, 1), 0);
	lend(&lent, &set, 0);
	make_pair(sv);
	CHECK_EQ(setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &short_time,
			    sizeof(short_time)),
		 0);
	begin = now_ns();
	CHECK_EQ(CALL(&set, SYS_recvfrom, sv[0], ARG(&byte), 1, 0, 0, 0),
		 -EAGAIN);
	/* In ticks of the kernel, the first of which may be nearly over. */
	CHECK(now_ns() - begin >= 80000000);
	CHECK_EQ(fcntl(sv[1], F_SETFL, O_NONBLOCK), 0);
	begin = now_ns();
	CHECK_EQ(CALL(&set, SYS_read, sv[1], ARG(&byte), 1), -EAGAIN);
	CHECK_EQ(fcntl(sv[0], F_GETFL) & O_NONBLOCK, 0);
	request(set.fd, FLEXSC_IOC_STOP, 0);
	unlend(&lent);
	kset_fini(&set);
}

static void on_alarm(int number)
{
}

/* A handler runs, and what sleeps in a thread sleeps on. */
static void restarts(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } }, off = { 0 };
	struct timespec nap = { .tv_nsec = 300000000 };
	struct lent lent;
	struct kset set;
	uint64_t begin;

	CHECK_EQ(kset_init(&set, 64, 2), 0);
	sigaction(SIGALRM, &action, NULL);
	lend(&lent, &set, 0);
	begin = now_ns();
	setitimer(ITIMER_REAL, &often, NULL);
	CHECK_EQ(CALL(&set, SYS_nanosleep, ARG(&nap), 0), 0);
	setitimer(ITIMER_REAL, &off, NULL);
	CHECK(now_ns() - begin >= 280000000);
	request(set.fd, FLEXSC_IOC_STOP, 0);
	unlend(&lent);
	kset_fini(&set);
}

/* Stopped and continued in the middle of waiting. */
static void stopped(void)
{
	struct kset set;
	uint32_t index;
	int sv[2], status;
	char byte;
	pid_t child;

	make_pair(sv);
	child = fork();
	if (!child) {
		CHECK_EQ(kset_init(&set, 64, 0), 0);
		POST(&set, 1, SYS_read, sv[0], ARG(&byte), 1);
		CHECK_EQ(kset_next(&set, &index), 1);
		_exit(0);
	}
	sleep_ms(200);
	kill(child, SIGSTOP);
	CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
	CHECK_EQ(write(sv[1], "x", 1), 1);
	sleep_ms(50);
	kill(child, SIGCONT);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void direct_io(void)
{
	void *block;
	struct lent lent;
	struct kset set;
	int fd = open("/var/tmp/direct", O_RDWR | O_CREAT | O_DIRECT, 0600);

	if (fd < 0)
		skip("no O_DIRECT here");
	CHECK_EQ(posix_memalign(&block, 4096, 4096), 0);
	CHECK_EQ(kset_init(&set, 64, 2), 0);
	lend(&lent, &set, 0);
	memset(block, 'd', 4096);
	CHECK_EQ(CALL(&set, SYS_pwrite64, fd, ARG(block), 4096, 0), 4096);
	memset(block, 0, 4096);
	CHECK_EQ(CALL(&set, SYS_pread64, fd, ARG(block), 4096, 0), 4096);
	CHECK_EQ(((char *)block)[4095], 'd');
	unlink("/var/tmp/direct");
	request(set.fd, FLEXSC_IOC_STOP, 0);
	unlend(&lent);
	kset_fini(&set);
}

/* A thread that polls takes what is posted without any crossing. */
static void polling_thread(void)
{
	struct flexsc_wait idle = { .idle_ns = 50000000 };
	struct lent lent;
	struct kset set;
	uint32_t index;
	int64_t ret;
	uint64_t end, begin = now_ns();

	CHECK_EQ(kset_init(&set, 64, 2), 0);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_WAIT, ARG(&idle)), -ETIME);
	CHECK(now_ns() - begin >= 49000000);
	lend(&lent, &set, FLEXSC_WAIT_POLL);
	for (unsigned i = 0; i < 1000; i++) {
		POST(&set, i % 64, SYS_getppid);
		if (__atomic_exchange_n(&set.shared->engine_sleeping, 0,
					__ATOMIC_SEQ_CST))
			CHECK(request(set.fd, FLEXSC_IOC_KICK, 0) >= 0);
		end = now_ns() + 20000000000ull;
		while (!kset_reap(&set, &index, &ret)) {
			CHECK(now_ns() < end);
			sched_yield();
		}
		CHECK_EQ(index, i % 64);
		CHECK_EQ(ret, getppid());
	}
	request(set.fd, FLEXSC_IOC_STOP, 0);
	CHECK_EQ(unlend(&lent), -ESHUTDOWN);
	kset_fini(&set);
}

/* More threads than were agreed on are sent back. */
static void thread_limit(void)
{
	struct flexsc_wait wait = { .idle_ns = 1000 };
	struct lent lent[2];
	struct kset set;

	CHECK_EQ(kset_init(&set, 64, 2), 0);
	lend(&lent[0], &set, 0);
	lend(&lent[1], &set, 0);
	sleep_ms(200);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_WAIT, ARG(&wait)), -EAGAIN);
	CHECK_EQ(kset_stats(&set).threads, 2);
	request(set.fd, FLEXSC_IOC_STOP, 0);
	unlend(&lent[0]);
	unlend(&lent[1]);
	kset_fini(&set);
}

/* A FIFO without a writer: the open goes to a thread, or holds nothing up. */
static void opened_fifo(void)
{
	struct lent lent;
	struct kset set;
	uint32_t index;
	int64_t fd;

	unlink("/run/fifo");
	CHECK_EQ(mkfifo("/run/fifo", 0600), 0);
	CHECK_EQ(kset_init(&set, 64, 2), 0);
	lend(&lent, &set, 0);
	POST(&set, 1, SYS_openat, ARG(AT_FDCWD), ARG("/run/fifo"), O_RDONLY);
	POST(&set, 2, SYS_getppid);
	CHECK_EQ(kset_next(&set, &index), getppid());
	CHECK_EQ(index, 2);
	fd = open("/run/fifo", O_WRONLY);
	CHECK(fd >= 0);
	CHECK(kset_next(&set, &index) >= 0);
	CHECK_EQ(index, 1);
	unlink("/run/fifo");
	request(set.fd, FLEXSC_IOC_STOP, 0);
	unlend(&lent);
	kset_fini(&set);
}

int main(void)
{
	static const struct test_case cases[] = {
		CASE(seven_and_fifty),
		CASE(seven_in_threads),
		CASE(idle_sockets),
		CASE(dropped),
		CASE(whole_write_socket),
		CASE(whole_write_pipe),
		CASE(descriptors_of_all_kinds),
		CASE(connections),
		CASE(socket_timeouts),
		CASE(shut_down_datagrams),
		CASE(restarts),
		CASE(stopped),
		CASE(direct_io),
		CASE(polling_thread),
		CASE(thread_limit),
		CASE(opened_fifo),
	};

	return run_cases(cases, sizeof(cases) / sizeof(*cases));
}
