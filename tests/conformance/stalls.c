/* SPDX-License-Identifier: MIT */
/*
 * Calls that look as if they could not block, and do: the loop goes on beside
 * them all the same. Most of these were found by tests/fuzz-calls.c.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <termios.h>

/* The loop is not held up by what is outstanding: it does something else. */
static void loop_goes_on(void)
{
	uint64_t begin = now_ns();
	char name[4096];

	CHECK(CALL(getcwd, name, sizeof(name)) > 0);
	run_ms(1);
	CHECK_IN(now_ns() - begin, 0, 1000 * MS * slowness());
}

/* Some room makes it ready for writing, but this number does not fit in. */
static void eventfd_is_full(void)
{
	int fd = eventfd(1, EFD_CLOEXEC);
	uint64_t most = UINT64_MAX - 1, value = 0;
	struct op op = { 0 };

	POST(write, &op, fd, &most, sizeof(most));
	loop_goes_on();
	run_ms(30);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(CALL(read, fd, &value, sizeof(value)), sizeof(value));
	CHECK_EQ(value, 1);
	CHECK_EQ(WAIT(&op), sizeof(most));
	CHECK_EQ(CALL(read, fd, &value, sizeof(value)), sizeof(value));
	CHECK_EQ(value, most);
	/* The same, cancelled. */
	CHECK_EQ(CALL(write, fd, &most, sizeof(most)), sizeof(most));
	POST(write, &op, fd, &most, sizeof(most));
	loop_goes_on();
	CHECK_EQ(flexsc_cancel(&op.ev), 0);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	CHECK_EQ(CALL(read, fd, &value, sizeof(value)), sizeof(value));
	CHECK_EQ(value, most);
	close(fd);
}

/* Waits for an event, and only then finds that it does not fit in. */
static void inotify_without_room(void)
{
	int fd = (int)CALL(inotify_init1, IN_CLOEXEC);
	struct op op = { 0 };
	char event[1000];

	CHECK(fd >= 0);
	CHECK(CALL(inotify_add_watch, fd, ".", IN_CREATE) >= 0);
	POST(read, &op, fd, event, 0);
	loop_goes_on();
	run_ms(30);
	CHECK_EQ(op.nr_done, 0);
	close(make_file("file", 0));
	CHECK_EQ(WAIT(&op), -EINVAL);
	CHECK(CALL(read, fd, event, sizeof(event)) > 0);
	close(fd);
}

/* Waits for its input with the pipe locked, if it is let to. */
static void splice_locks_its_pipe(void)
{
	struct op op = { 0 }, reading = { 0 };
	int sv[2], fds[2];
	char buf[10];

	make_pair(sv);
	make_pipe(fds);
	POST(splice, &op, sv[0], NULL, fds[1], NULL, 100, 0);
	run_ms(20); /* it is in the middle of it */
	POST(read, &reading, fds[0], buf, sizeof(buf));
	loop_goes_on();
	CHECK_EQ(CALL(write, fds[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&reading), 3);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(write(sv[1], "defg", 4), 4);
	CHECK_EQ(WAIT(&op), 4);
	CHECK_EQ(CALL(read, fds[0], buf, sizeof(buf)), 4);
	CHECK_EQ(memcmp(buf, "defg", 4), 0);
	/* Cancelled, nothing is lost; and the end of the input is seen. */
	POST(splice, &op, sv[0], NULL, fds[1], NULL, 100, 0);
	run_ms(20);
	CHECK_EQ(flexsc_cancel(&op.ev), 0);
	CHECK_EQ(WAIT(&op), -ECANCELED);
	CHECK_EQ(write(sv[1], "hij", 3), 3);
	CHECK_EQ(CALL(splice, sv[0], NULL, fds[1], NULL, 100, 0), 3);
	close(sv[1]);
	CHECK_EQ(CALL(splice, sv[0], NULL, fds[1], NULL, 100, 0), 0);
	CHECK_EQ(CALL(read, fds[0], buf, sizeof(buf)), 3);
	close(sv[0]);
	close(fds[0]);
	close(fds[1]);
}

/* A terminal that nobody types anything into and nobody changes. */
static int open_terminal(int *master)
{
	struct termios raw;
	int fd = -1;

	*master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*master >= 0 && !grantpt(*master) && !unlockpt(*master))
		fd = open(ptsname(*master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		skip("no pseudo-terminals here");
	tcgetattr(fd, &raw);
	cfmakeraw(&raw);
	tcsetattr(fd, TCSANOW, &raw);
	return fd;
}

struct screen {
	int fd;
	size_t size;
};

static void *look(void *arg)
{
	struct screen *s = arg;
	uint8_t buf[3000];

	for (size_t at = 0; at < s->size;) {
		ssize_t n = read(s->fd, buf, sizeof(buf));

		CHECK(n > 0);
		CHECK(filled(buf, at, (size_t)n));
		at += (size_t)n;
	}
	return NULL;
}

/* Ready for writing as long as there is any room. */
static void terminal_is_full(void)
{
	struct screen screen = { .size = 300000 };
	int fd = open_terminal(&screen.fd);
	uint8_t *bytes = malloc(screen.size);
	struct op op = { 0 };
	pthread_t thread;

	fill(bytes, 0, screen.size);
	POST(write, &op, fd, bytes, screen.size);
	loop_goes_on();
	run_ms(30);
	CHECK_EQ(op.nr_done, 0);
	thread = thread_start(look, &screen);
	CHECK_EQ(WAIT(&op), screen.size);
	thread_join(thread);
	/* What was written before the end is the result. */
	POST(write, &op, fd, bytes, screen.size);
	loop_goes_on();
	run_ms(30);
	CHECK_EQ(flexsc_cancel(&op.ev), 0);
	CHECK_IN(WAIT(&op), 1, screen.size - 1);
	free(bytes);
	close(fd);
	close(screen.fd);
}

/* A regular file took writes under this number; now it is a full pipe. */
static void file_became_pipe(void)
{
	int file = (int)CALL(open, "file", O_RDWR | O_CREAT | O_EXCL, 0600);
	struct iovec iov = { .iov_base = (char[]){ "abc" }, .iov_len = 3 };
	int fds[2], size;
	struct op op = { 0 };
	uint8_t *bytes;

	CHECK_EQ(CALL(write, file, "abc", 3), 3);
	CHECK_EQ(CALL(writev, file, &iov, 1), 3);
	make_pipe(fds);
	size = fill_up(fds[1]);
	CHECK_EQ(dup2(fds[1], file), file);
	bytes = malloc((size_t)size);
	POST(write, &op, file, bytes, 5000);
	loop_goes_on();
	run_ms(30);
	CHECK_EQ(op.nr_done, 0);
	/* Room for a part of it. */
	CHECK_EQ(CALL(read, fds[0], bytes, 4096), 4096);
	loop_goes_on();
	CHECK_EQ(CALL(read, fds[0], bytes, size - 4096), size - 4096);
	CHECK_EQ(WAIT(&op), 5000);
	free(bytes);
	close(file);
	close(fds[0]);
	close(fds[1]);
}

/* Memory whose first use waits, in the kernel, until somebody fills it. */
static struct stat *unfilled_page(int *uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .range = { .len = 4096 },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	reg.range.start = (uintptr_t)page;
	if (*uffd < 0 || ioctl(*uffd, UFFDIO_API, &api) ||
	    ioctl(*uffd, UFFDIO_REGISTER, &reg))
		skip("no userfaultfd for faults in the kernel here");
	return page;
}

/* As a network file system that is gone: no signal ends it, but somebody. */
static void syscall_thread_is_stuck(void)
{
	enum {
		NR_STUCK = 3
	};
	struct op stuck[NR_STUCK] = { 0 }, parked = { 0 };
	struct stat *page[NR_STUCK], st;
	int uffd[NR_STUCK], fds[2];
	char buf[10];

	if (strcmp(engine, "uthread"))
		skip("another engine's calls are made by the loop's thread");
	make_pipe(fds);
	close(make_file("file", 7));
	POST(read, &parked, fds[0], buf, sizeof(buf));
	run_ms(5);
	for (int i = 0; i < NR_STUCK; i++) {
		page[i] = unfilled_page(&uffd[i]);
		POST(stat, &stuck[i], "file", page[i]);
		flexsc_loop_poll(loop, 0);
		sleep_ms(30 * slowness()); /* the loop must not help with it */
		/* What was parked, what comes now, and a close. */
		CHECK_EQ(write(fds[1], "abc", 3), 3);
		CHECK_EQ(WAIT(&parked), 3);
		CHECK_EQ(CALL(stat, "file", &st), 0);
		CHECK_EQ(CALL(close, dup(fds[0])), 0);
		POST(read, &parked, fds[0], buf, sizeof(buf));
		loop_goes_on();
		CHECK_EQ(stuck[i].nr_done, 0);
	}
	for (int i = 0; i < NR_STUCK; i++) {
		struct uffdio_zeropage zero = { .range = { .len = 4096 } };

		zero.range.start = (uintptr_t)page[i];
		CHECK_EQ(ioctl(uffd[i], UFFDIO_ZEROPAGE, &zero), 0);
		CHECK_EQ(WAIT(&stuck[i]), 0);
		CHECK_EQ(page[i]->st_size, 7);
	}
	CHECK_EQ(write(fds[1], "abcd", 4), 4);
	CHECK_EQ(WAIT(&parked), 4);
}

static const struct test tests[] = {
	{ "file_became_pipe", file_became_pipe, TEST_BESIDE },
	{ "eventfd_is_full", eventfd_is_full, TEST_BESIDE },
	{ "inotify_without_room", inotify_without_room, TEST_BESIDE },
	{ "splice_locks_its_pipe", splice_locks_its_pipe, TEST_BESIDE },
	{ "syscall_thread_is_stuck", syscall_thread_is_stuck, TEST_BESIDE },
	{ "terminal_is_full", terminal_is_full, TEST_BESIDE },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
