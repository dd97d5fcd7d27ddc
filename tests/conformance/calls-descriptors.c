/* SPDX-License-Identifier: MIT */
/*
 * Calls on pipes, terminals, event and timer descriptors, and those that wait
 * for several descriptors: made plainly and posted, with the same outcomes.
 * Sockets have a file of their own.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <termios.h>

/* Writes to a descriptor after a while. */
struct later {
	int fd;
	unsigned int ms;
	const void *bytes;
	size_t len;
};

static void *write_later(void *arg)
{
	const struct later *later = arg;

	sleep_ms(later->ms);
	CHECK_EQ(write(later->fd, later->bytes, later->len), later->len);
	return NULL;
}

static void pipes(void)
{
	struct later later = { .ms = 30, .bytes = "later", .len = 5 };
	pthread_t thread;
	char buf[100];
	int fds[2];

	DO(pipe2, fds, O_CLOEXEC);
	note("F_GETFD", fcntl(fds[0], F_GETFD));
	DO(write, fds[1], "abcdef", 6);
	DO(read, fds[0], buf, 4);
	DO(read, fds[0], buf, sizeof(buf));
	DO(read, fds[1], buf, 1);
	DO(write, fds[0], buf, 1);
	DO(pread, fds[0], buf, 1, 0);
	DO(lseek, fds[0], 0, SEEK_SET);
	DO(fcntl, fds[1], F_SETPIPE_SZ, 65536);
	later.fd = fds[1];
	thread = thread_start(write_later, &later);
	DO(read, fds[0], buf, sizeof(buf)); /* waits */
	note_bytes("later", buf, 5);
	thread_join(thread);
	DO(ioctl, fds[0], FIONREAD, buf);
	DO(close, fds[1]);
	DO(read, fds[0], buf, sizeof(buf));
	DO(close, fds[0]);
	DO(pipe, fds);
	DO(close, fds[0]);
	DO(close, fds[1]);
}

static void splices(void)
{
	int a[2], b[2], fd = make_file("file", 100000);
	uint8_t buf[1000];
	off_t offset = 50;

	make_pipe(a);
	make_pipe(b);
	DO(splice, fd, &offset, a[1], NULL, 700, 0);
	note("offset", offset);
	DO(tee, a[0], b[1], 500, 0);
	DO(read, b[0], buf, sizeof(buf));
	CHECK(filled(buf, 50, 500));
	DO(splice, a[0], NULL, b[1], NULL, 600, 0);
	DO(read, b[0], buf, sizeof(buf));
	DO(splice, fd, NULL, fd, NULL, 10, 0);
	DO(splice, a[0], NULL, b[1], NULL, 600, SPLICE_F_NONBLOCK);
	DO(splice, a[0], NULL, b[1], NULL, 600, SPLICE_F_NONBLOCK);
	DO(vmsplice, a[1], (&(struct iovec){ .iov_base = buf, .iov_len = 9 }),
	   1, 0);
	DO(sendfile, b[1], fd, NULL, 999);
	DO(read, b[0], buf, sizeof(buf));
	close(fd);
}

static void terminal(void)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 }, seen = { 0 };
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	struct later later = {
		.fd = master, .ms = 30, .bytes = "typed\n", .len = 6
	};
	struct termios raw;
	pthread_t thread;
	char buf[100];

	if (master < 0 || grantpt(master) || unlockpt(master))
		skip("no pseudo terminals: %s", strerror(errno));
	slave = (int)DO_NEW(open, ptsname(master), O_RDWR | O_NOCTTY, 0);
	CHECK(slave >= 0);
	thread = thread_start(write_later, &later);
	DO(read, slave, buf, sizeof(buf)); /* a line */
	note_bytes("line", buf, 6);
	thread_join(thread);
	DO(read, master, buf, sizeof(buf)); /* its echo */
	CHECK_EQ(tcgetattr(slave, &raw), 0);
	cfmakeraw(&raw);
	CHECK_EQ(tcsetattr(slave, TCSANOW, &raw), 0);
	DO(write, slave, "shown\n", 6);
	DO(read, master, buf, sizeof(buf));
	note_bytes("shown", buf, 6);
	DO(write, master, "k", 1);
	DO(read, slave, buf, sizeof(buf));
	DO(ioctl, slave, TIOCSWINSZ, &size);
	DO(ioctl, slave, TIOCGWINSZ, &seen);
	note("row", seen.ws_row);
	DO(close, slave);
	DO(read, master, buf, sizeof(buf));
	DO(close, master);
}

static void eventfds(void)
{
	uint64_t value = 5, seen = 0;
	struct later later = { .ms = 30, .bytes = &value, .len = 8 };
	pthread_t thread;
	int fd, sem;

	fd = (int)DO_NEW(eventfd, 3, EFD_CLOEXEC);
	DO(read, fd, &seen, 8);
	note("seen", (int64_t)seen);
	DO(read, fd, &seen, 7);
	later.fd = fd;
	thread = thread_start(write_later, &later);
	DO(read, fd, &seen, 8); /* waits */
	note("seen", (int64_t)seen);
	thread_join(thread);
	value = UINT64_MAX;
	DO(write, fd, &value, 8);
	DO(write, fd, &value, 4);
	DO(close, fd);
	sem = (int)DO_NEW(eventfd, 2, EFD_SEMAPHORE | EFD_NONBLOCK);
	for (int i = 0; i < 3; i++)
		DO(read, sem, &seen, 8);
	note("seen", (int64_t)seen);
	value = UINT64_MAX - 1;
	DO(write, sem, &value, 8);
	DO(write, sem, &value, 8);
	DO(close, sem);
}

static void timerfds(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 30 * 1000000 }, left;
	uint64_t begin = now_ns(), expired = 0;
	int fd = (int)DO_NEW(timerfd_create, CLOCK_MONOTONIC, 0);

	DO(timerfd_settime, fd, 0, &soon, NULL);
	DO(timerfd_gettime, fd, &left);
	DO(read, fd, &expired, 8);
	note("expired", (int64_t)expired);
	CHECK(now_ns() - begin >= 30 * MS);
	DO(timerfd_gettime, fd, &left);
	note("left", left.it_value.tv_nsec);
	DO(write, fd, &expired, 8);
	DO(timerfd_settime, -1, 0, &soon, NULL);
	soon.it_value.tv_nsec = 1000000000;
	DO(timerfd_settime, fd, 0, &soon, NULL);
	DO(close, fd);
}

static void signal_and_inotify(void)
{
	struct signalfd_siginfo info;
	struct inotify_event *event;
	char buf[1000];
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	fd = (int)DO_NEW(signalfd, -1, &set, SFD_CLOEXEC);
	DO(kill, getpid(), SIGUSR1);
	DO(read, fd, &info, sizeof(info));
	note("ssi_signo", info.ssi_signo);
	DO(close, fd);
	fd = (int)DO_NEW(inotify_init1, IN_CLOEXEC);
	DO(inotify_add_watch, fd, ".", IN_CREATE);
	close(make_file("seen", 0));
	DO(read, fd, buf, sizeof(buf));
	event = (struct inotify_event *)buf;
	note_bytes("name", event->name, strlen(event->name));
	DO(inotify_rm_watch, fd, 77);
	DO(close, fd);
}

static void duplicates(void)
{
	int fd = make_file("file", 10), copy;

	copy = (int)DO_NEW(dup, fd);
	note("F_GETFL", fcntl(copy, F_GETFL));
	DO(close, copy);
	DO(dup2, fd, 700);
	DO(dup2, fd, fd);
	DO(dup2, 701, fd);
	DO(dup3, fd, 701, O_CLOEXEC);
	note("F_GETFD", fcntl(701, F_GETFD));
	DO(dup3, fd, fd, 0);
	DO(fcntl, fd, F_DUPFD, 710);
	DO(fcntl, fd, F_DUPFD_CLOEXEC, 720);
	DO(fcntl, fd, F_GETFL, 0);
	DO(fcntl, fd, F_SETFL, O_APPEND);
	DO(fcntl, fd, F_GETFL, 0);
	DO(fcntl, fd, F_SETFD, FD_CLOEXEC);
	DO(fcntl, fd, 12345, 0);
	DO_NR(SYS_close_range, 700, 720, 0);
	note("F_GETFD", fcntl(701, F_GETFD));
	DO(dup, 701);
	DO(close, 701);
	DO(close, fd);
	DO(close, fd);
	DO(close, -1);
}

static void polls(void)
{
	struct later later = { .ms = 30, .bytes = "x", .len = 1 };
	struct timespec soon = { .tv_nsec = 20 * 1000000 };
	struct timeval soon_us = { .tv_usec = 20000 };
	struct pollfd fds[3];
	pthread_t thread;
	uint64_t begin;
	fd_set set;
	int sv[2];

	make_pair(sv);
	fds[0] = (struct pollfd){ .fd = sv[0], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = sv[1], .events = POLLOUT };
	fds[2] = (struct pollfd){ .fd = 12345, .events = POLLOUT };
	DO(poll, fds, 3, -1);
	for (int i = 0; i < 3; i++)
		note("revents", fds[i].revents);
	DO(poll, fds, 1, 0);
	begin = now_ns();
	DO(poll, fds, 1, 20);
	DO_NR(SYS_ppoll, (long)fds, 1, (long)&soon, 0, 0);
	FD_ZERO(&set);
	FD_SET(sv[0], &set);
	DO(select, sv[0] + 1, &set, NULL, NULL, &soon_us);
	CHECK_IN(now_ns() - begin, 59 * MS, 900 * slowness() * MS);
	later.fd = sv[1];
	thread = thread_start(write_later, &later);
	DO(poll, fds, 1, 5000); /* waits */
	note("revents", fds[0].revents);
	thread_join(thread);
	FD_SET(sv[0], &set);
	DO(select, sv[0] + 1, &set, NULL, NULL, NULL);
	note("isset", FD_ISSET(sv[0], &set));
	DO(poll, NULL, 0, 1);
	DO_NR(SYS_poll, (long)fds, 1 << 30, 1);
}

static void epolls(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 77 },
			   out[4];
	struct later later = { .ms = 30, .bytes = "x", .len = 1 };
	int set = (int)DO_NEW(epoll_create1, EPOLL_CLOEXEC), sv[2];
	struct timespec soon = { .tv_nsec = 1000000 };
	pthread_t thread;

	make_pair(sv);
	DO(epoll_ctl, set, EPOLL_CTL_ADD, sv[0], &event);
	DO(epoll_ctl, set, EPOLL_CTL_ADD, sv[0], &event);
	DO(epoll_ctl, set, EPOLL_CTL_MOD, sv[1], &event);
	DO(epoll_ctl, set, EPOLL_CTL_ADD, set, &event);
	DO(epoll_wait, set, out, 4, 0);
	DO(epoll_wait, set, out, 4, 20);
	DO_NR(SYS_epoll_pwait2, set, (long)out, 4, (long)&soon, 0, 0);
	later.fd = sv[1];
	thread = thread_start(write_later, &later);
	DO(epoll_wait, set, out, 4, -1); /* waits */
	note("data", (int64_t)out[0].data.u64);
	thread_join(thread);
	DO(epoll_wait, set, out, 4, -1);
	DO(epoll_wait, set, out, 0, -1);
	DO(epoll_wait, sv[0], out, 4, -1);
	DO(epoll_ctl, set, EPOLL_CTL_DEL, sv[0], NULL);
	DO(epoll_wait, set, out, 4, 0);
	DO(close, set);
}

/* A fifo: its opening waits for the other side. */
static void fifo(void)
{
	struct op opened = { 0 };
	int64_t in, out;
	char buf[10];

	CHECK_EQ(mknod("fifo", S_IFIFO | 0600, 0), 0);
	POST(open, &opened, "fifo", O_RDONLY, 0);
	run_ms(50);
	CHECK_EQ(opened.nr_done, 0);
	out = CALL(open, "fifo", O_WRONLY, 0);
	CHECK(out >= 0);
	in = WAIT(&opened);
	CHECK(in >= 0);
	CHECK_EQ(CALL(write, (int)out, "abc", 3), 3);
	CHECK_EQ(CALL(read, (int)in, buf, sizeof(buf)), 3);
	CHECK_EQ(CALL(close, (int)out), 0);
	CHECK_EQ(CALL(read, (int)in, buf, sizeof(buf)), 0);
	CHECK_EQ(CALL(close, (int)in), 0);
	/* creat(2) opens for writing, and waits for a reader. */
	POST(post, &opened, SYS_creat, (long)"fifo", 0600, 0, 0, 0, 0);
	run_ms(50);
	CHECK_EQ(opened.nr_done, 0);
	in = CALL(open, "fifo", O_RDONLY, 0);
	CHECK(in >= 0);
	out = WAIT(&opened);
	CHECK(out >= 0);
	CHECK_EQ(CALL(close, (int)out), 0);
	CHECK_EQ(CALL(close, (int)in), 0);
}

static const struct test tests[] = {
	{ "pipes", pipes, TEST_BOTH },
	{ "splices", splices, TEST_BOTH },
	{ "terminal", terminal, TEST_BOTH },
	{ "eventfds", eventfds, TEST_BOTH },
	{ "timerfds", timerfds, TEST_BOTH },
	{ "signal_and_inotify", signal_and_inotify, TEST_BOTH },
	{ "duplicates", duplicates, TEST_BOTH },
	{ "polls", polls, TEST_BOTH },
	{ "epolls", epolls, TEST_BOTH },
	{ "fifo", fifo, TEST_BESIDE },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
