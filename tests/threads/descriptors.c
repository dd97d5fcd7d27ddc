/* SPDX-License-Identifier: MIT */
/* More threads than syscall threads wait for descriptors, in every way. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "until.h"

#define NR 40
#define ROUNDS 50

static int end[NR][2];
static int wrong;

static int by_poll(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 10000) == 1 && p.revents & POLLIN;
}

static int by_select(int fd)
{
	struct timeval limit = { 10, 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &limit) == 1 &&
	       FD_ISSET(fd, &set);
}

static int by_epoll(int fd)
{
	int set = epoll_create1(EPOLL_CLOEXEC), good;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	good = epoll_wait(set, &event, 1, 10000) == 1 && event.data.fd == fd;
	close(set);
	return good;
}

static void *echo(void *arg)
{
	int fd = end[(long)arg][0];
	char c;

	for (int i = 0; i < ROUNDS; i++) {
		int good = 1;

		switch (((long)arg + i) % 4) {
		case 0:
			good = by_poll(fd);
			break;
		case 1:
			good = by_select(fd);
			break;
		case 2:
			good = by_epoll(fd);
			break;
		default:
			break;
		}
		if (!good || read(fd, &c, 1) != 1 || write(fd, &c, 1) != 1)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void *waits_for_child(void *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		usleep(10000);
		_exit((int)(long)arg);
	}
	if (waitpid(pid, &status, 0) != pid ||
	    WEXITSTATUS(status) != (int)(long)arg)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *locks_file(void *arg)
{
	static int inside;
	int fd = open("/proc/self/exe", O_RDONLY);
	struct flock lock = { .l_type = F_RDLCK };

	fcntl(fd, F_OFD_SETLKW, &lock);
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	close(fd);
	return arg;
}

/* Closed by another thread while it waits: it keeps the file. */
static int kept[2];
static int (*close_it)(int fd);
static volatile pid_t tid; /* of the thread that waits */

static int close_by_stream(int fd)
{
	return fclose(fdopen(fd, "r"));
}

static void *reads_on(void *arg)
{
	char c = 0;

	tid = gettid();
	printf("read %zd %c\n", read(kept[0], &c, 1), c);
	return arg;
}

static void *closes(void *arg)
{
	int other[2];

	close_it(kept[0]);
	socketpair(AF_UNIX, SOCK_STREAM, 0, other);
	write(other[1], "o", 1); /* not for it, though the number is */
	write(kept[1], "k", 1);
	usleep(20000);
	close(other[0]);
	close(other[1]);
	close(kept[1]);
	return arg;
}

static void close_under_reader(int lent, int (*how)(int fd))
{
	pthread_t reader, closer;

	close_it = how;
	socketpair(AF_UNIX, SOCK_STREAM, 0, kept);
	tid = 0;
	pthread_create(&reader, NULL, reads_on, NULL);
	until_waits(&tid, kept[0]);
	if (lent) {
		pthread_create(&closer, NULL, closes, NULL);
		pthread_join(closer, NULL);
	} else {
		closes(NULL);
	}
	pthread_join(reader, NULL);
}

/* Calls with two descriptors keep both. */
#define LONG_FILE (1 << 20)

static int file, pipes[2];
static long (*call_two)(void);

static long by_sendfile(void)
{
	off_t at = 0;
	ssize_t n = sendfile(kept[0], file, &at, LONG_FILE);

	return n == at ? n : -1;
}

static long by_number(void)
{
	return syscall(SYS_sendfile, kept[0], file, NULL, (size_t)LONG_FILE);
}

static long by_splice(void)
{
	return splice(kept[0], NULL, pipes[1], NULL, 100, 0);
}

static long by_splice_out(void)
{
	return splice(pipes[0], NULL, kept[0], NULL, 100, 0);
}

static void *calls_two(void *arg)
{
	(void)arg;
	usleep(1); /* from here on it is on a carrier */
	tid = gettid();
	return (void *)call_two();
}

/* The number is another file's at once. */
static void take_away(int fd, int by_dup)
{
	int other = open("/dev/null", O_RDWR), same;

	if (by_dup) {
		dup2(other, fd);
		close(other);
		return;
	}
	close(fd);
	same = dup(other);
	if (same != fd) {
		dup2(same, fd);
		close(same);
	}
	close(other);
}

static long drain(int fd, long at_most)
{
	static char buf[1 << 16];
	long sum = 0, n;

	while (sum < at_most && (n = read(fd, buf, sizeof(buf))) > 0)
		sum += n;
	return sum;
}

/*
 * Who sends has also filled the socket then. A splice is in the hands of one of
 * the library's threads, which may poll first.
 */
static void until_it_waits(void)
{
	struct pollfd arrived = { .fd = kept[1], .events = POLLIN };
	bool splices = call_two == by_splice || call_two == by_splice_out;

	if (!splices) {
		until_waits(&tid, kept[0]);
		poll(&arrived, 1, -1);
		return;
	}
	while (!some_thread_is_in(SYS_splice,
				  call_two == by_splice ? kept[0] : pipes[0]) &&
	       !some_thread_is_in(SYS_poll, -1))
		usleep(1000);
}

/* @fd: which one goes while the call waits. */
static void two(const char *name, long (*how)(void), int *fd, int by_dup)
{
	pthread_t thread;
	long got;
	void *result;
	int out;

	file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	ftruncate(file, LONG_FILE);
	socketpair(AF_UNIX, SOCK_STREAM, 0, kept);
	pipe(pipes);
	out = dup(pipes[0]);
	call_two = how;
	tid = 0;
	pthread_create(&thread, NULL, calls_two, NULL);
	until_it_waits();
	take_away(*fd, by_dup);
	usleep(20000);
	if (how == by_splice) {
		write(kept[1], "hello", 5);
		got = drain(out, 5);
	} else if (how == by_splice_out) {
		write(pipes[1], "hello", 5);
		got = drain(kept[1], 5);
	} else {
		got = drain(kept[1], LONG_FILE);
	}
	pthread_join(thread, &result);
	printf("%s: %ld, arrived %ld\n", name, (long)result, got);
	close(file);
	close(out);
	for (int i = 0; i < 2; i++) {
		close(kept[i]);
		close(pipes[i]);
	}
}

static void close_one_of_two(void)
{
	for (int by_dup = 0; by_dup < 2; by_dup++) {
		two("sendfile", by_sendfile, &file, by_dup);
		two("sendfile", by_sendfile, &kept[0], by_dup);
		two("by number", by_number, &file, by_dup);
		two("by number", by_number, &kept[0], by_dup);
		two("splice", by_splice, &pipes[1], by_dup);
		two("splice", by_splice, &kept[0], by_dup);
		two("splice out", by_splice_out, &kept[0], by_dup);
		two("splice out", by_splice_out, &pipes[0], by_dup);
	}
}

static void run(const char *name, void *(*start)(void *), void (*drive)(void))
{
	pthread_t thread[NR];

	for (long i = 0; i < NR; i++)
		pthread_create(&thread[i], NULL, start, (void *)i);
	if (drive)
		drive();
	for (int i = 0; i < NR; i++)
		pthread_join(thread[i], NULL);
	printf("%s: %d wrong\n", name, wrong);
}

static void ping(void)
{
	char c = 'x';

	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < NR; k++)
			write(end[k][1], &c, 1);
		for (int k = 0; k < NR; k++)
			read(end[k][1], &c, 1);
	}
}

int main(void)
{
	for (int i = 0; i < NR; i++)
		socketpair(AF_UNIX, SOCK_STREAM, 0, end[i]);
	run("echo", echo, ping);
	run("children", waits_for_child, NULL);
	run("file locks", locks_file, NULL);
	for (int lent = 0; lent < 2; lent++) {
		close_under_reader(lent, close);
		close_under_reader(lent, close_by_stream);
	}
	close_one_of_two();
	return 0;
}
