/* SPDX-License-Identifier: MIT */
/*
 * Sockets, pipes, files, threads and children for the tests. All of it is
 * made with plain calls, and whatever fails ends the test.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define NEED(call)                                              \
	({                                                      \
		int64_t ret_ = (call);                          \
		if (ret_ < 0)                                   \
			FAIL("%s: %s", #call, strerror(errno)); \
		ret_;                                           \
	})

void sleep_ms(unsigned int ms)
{
	struct timespec left = { .tv_sec = ms / 1000,
				 .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

pthread_t thread_start(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	int ret = pthread_create(&thread, NULL, fn, arg);

	if (ret)
		FAIL("pthread_create: %s", strerror(ret));
	return thread;
}

void thread_join(pthread_t thread)
{
	int ret = pthread_join(thread, NULL);

	if (ret)
		FAIL("pthread_join: %s", strerror(ret));
}

static unsigned int nr_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned int nr = 0;

	if (!dir)
		FAIL("%s: %s", path, strerror(errno));
	while ((entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	closedir(dir);
	return nr;
}

unsigned int nr_tasks(void)
{
	return nr_entries("/proc/self/task");
}

unsigned int nr_open(void)
{
	return nr_entries("/proc/self/fd") - 1;
}

void wait_asleep(pid_t tid, unsigned int ms)
{
	uint64_t until = now_ns() + ms * MS;
	char path[64], text[400], *end;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	while (now_ns() < until) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		text[len > 0 ? len : 0] = 0;
		end = strrchr(text, ')');
		if (end && end[1] == ' ' && end[2] == 'S')
			return;
		sleep_ms(1);
	}
}

void make_pair(int sv[2])
{
	NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
}

void make_pipe(int fds[2])
{
	NEED(pipe2(fds, O_CLOEXEC));
}

int make_listener(uint16_t *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(0x7f000001) };
	socklen_t len = sizeof(addr);
	int fd = (int)NEED(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

	NEED(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	NEED(listen(fd, 1024));
	NEED(getsockname(fd, (struct sockaddr *)&addr, &len));
	*port = ntohs(addr.sin_port);
	return fd;
}

int connect_to(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(0x7f000001) };
	int fd = (int)NEED(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

	NEED(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

void make_tcp_pair(int sv[2])
{
	int one = 1;
	uint16_t port;
	int listener = make_listener(&port);

	sv[1] = connect_to(port);
	sv[0] = (int)NEED(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	for (int i = 0; i < 2; i++)
		NEED(setsockopt(sv[i], IPPROTO_TCP, TCP_NODELAY, &one,
				sizeof(one)));
	close(listener);
}

uint8_t pattern(uint64_t offset)
{
	return (uint8_t)((offset * 2654435761u) >> 13);
}

void fill(uint8_t *buf, uint64_t offset, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = pattern(offset + i);
}

bool filled(const uint8_t *buf, uint64_t offset, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (buf[i] != pattern(offset + i))
			return false;
	}
	return true;
}

int make_file(const char *path, size_t size_bytes)
{
	int fd = (int)NEED(
		open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	uint8_t buf[4096];

	for (size_t at = 0; at < size_bytes; at += sizeof(buf)) {
		size_t len = size_bytes - at;

		if (len > sizeof(buf))
			len = sizeof(buf);
		fill(buf, at, len);
		CHECK_EQ(pwrite(fd, buf, len, (off_t)at), len);
	}
	return fd;
}

int fill_up(int fd)
{
	static const uint8_t buf[4096];
	int flags = (int)NEED(fcntl(fd, F_GETFL)), total = 0, before;
	ssize_t ret;

	NEED(fcntl(fd, F_SETFL, flags | O_NONBLOCK));
	/* Of TCP the other side may take some more, later. */
	do {
		before = total;
		while ((ret = write(fd, buf, sizeof(buf))) > 0)
			total += (int)ret;
		CHECK_EQ(errno, EAGAIN);
		while ((ret = write(fd, buf, 1)) > 0)
			total += (int)ret;
		sleep_ms(slowness() > 1 ? 300 : 5);
	} while (total != before);
	NEED(fcntl(fd, F_SETFL, flags));
	return total;
}

pid_t fork_or_fail(void)
{
	return (pid_t)NEED(fork());
}

void reap_child(pid_t pid, int status)
{
	int seen;

	CHECK_EQ(NEED(waitpid(pid, &seen, 0)), pid);
	if (WIFSIGNALED(seen))
		FAIL("a child was killed by signal %d", WTERMSIG(seen));
	CHECK_EQ(WEXITSTATUS(seen), status);
}
