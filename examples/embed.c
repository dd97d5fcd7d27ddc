/* SPDX-License-Identifier: MIT */
/*
 * A loop inside another one. The program has its own epoll loop, here with a
 * timer and the standard input; FlexSC is one more descriptor in it, and reads
 * files in the background. libuv, GLib and others take the descriptor alike.
 *
 *	embed FILE...
 *
 * Prints a checksum of each file, ticks meanwhile, and ends when all are read
 * or when a line is typed.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <flexsc.h>

struct job {
	struct flexsc_event ev;
	const char *path;
	int fd;
	uint32_t sum;
	unsigned char buf[65536];
};

static void job_read(struct flexsc_event *ev)
{
	struct job *job = ev->data;

	for (int64_t i = 0; i < ev->ret; i++)
		job->sum = job->sum * 31 + job->buf[i];
	if (ev->ret > 0) {
		flexsc_read(ev, job->fd, job->buf, sizeof(job->buf));
		return;
	}
	if (ev->ret == 0)
		printf("%08x %s\n", job->sum, job->path);
	else
		printf("%s: %s\n", job->path, strerror((int)-ev->ret));
	flexsc_close(NULL, job->fd);
	free(job);
}

static void job_opened(struct flexsc_event *ev)
{
	struct job *job = ev->data;

	if (ev->ret < 0) {
		printf("%s: %s\n", job->path, strerror((int)-ev->ret));
		free(job);
		return;
	}
	job->fd = (int)ev->ret;
	ev->handler = job_read;
	flexsc_read(ev, job->fd, job->buf, sizeof(job->buf));
}

static void job_start(const char *path)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return;
	job->path = path;
	job->ev.handler = job_opened;
	job->ev.data = job;
	flexsc_open(&job->ev, path, O_RDONLY | O_CLOEXEC, 0);
}

static int watch(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv)
{
	struct itimerspec every = { .it_interval.tv_nsec = 100000000,
				    .it_value.tv_nsec = 100000000 };
	struct flexsc_loop *loop;
	int set = epoll_create1(EPOLL_CLOEXEC), fd, tick;
	bool going = true;
	uint64_t count;
	char line[100];

	if (flexsc_loop_new(&loop, NULL) || (fd = flexsc_loop_fd(loop)) < 0)
		return 1;
	tick = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	timerfd_settime(tick, 0, &every, NULL);
	watch(set, fd);
	watch(set, tick);
	watch(set, STDIN_FILENO); /* fails for a file: never mind */
	for (int i = 1; i < argc; i++)
		job_start(argv[i]);
	while (going && flexsc_loop_outstanding(loop)) {
		struct epoll_event event;

		if (epoll_wait(set, &event, 1, -1) != 1)
			continue;
		if (event.data.fd == fd)
			flexsc_loop_poll(loop, 0);
		else if (event.data.fd == tick)
			printf("tick %llu\n",
			       read(tick, &count, 8) == 8 ?
				       (unsigned long long)count :
				       0);
		else if (read(STDIN_FILENO, line, sizeof(line)) > 0)
			going = false;
		else
			epoll_ctl(set, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
	}
	flexsc_loop_shutdown(loop);
	return flexsc_loop_free(loop) ? 1 : 0;
}
