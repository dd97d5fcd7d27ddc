/* SPDX-License-Identifier: MIT */
/*
 * What no call may fall over: bad pointers, bad numbers, bad descriptors, and
 * the library's functions used at the wrong time. The answer is an error in
 * the right place, and everything else goes on.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

static void *no_access; /* a page that nobody may touch */

/* Addresses that are bad in different ways; the last one never changes. */
static const long *bad_addresses(void)
{
	static long bad[5];

	if (!no_access)
		no_access = mmap(NULL, 4096, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bad[0] = 8;
	bad[1] = (long)no_access;
	bad[2] = (long)0xffff888000000000;
	bad[3] = 0x0800000000000000;
	bad[4] = -1;
	return bad;
}

enum {
	NR_BAD = 5
};

/* A socket with data, an empty pipe and so on: anew each time, because a
 * failed call may consume what was there. */
struct scene {
	int in[2], out[2], datagram[2], file, set, event;
};

static void scene_init(struct scene *s)
{
	static uint64_t one = 1;

	make_pair(s->in);
	CHECK_EQ(write(s->in[1], "abcdefghij", 10), 10);
	make_pipe(s->out);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, s->datagram), 0);
	CHECK_EQ(write(s->datagram[1], "abcdefghij", 10), 10);
	s->file = make_file("file", 1000);
	s->event = eventfd(1, 0);
	s->set = epoll_create1(0);
	epoll_ctl(s->set, EPOLL_CTL_ADD, s->event,
		  &(struct epoll_event){ .events = EPOLLIN });
	CHECK_EQ(write(s->event, &one, 8), 8);
}

static void scene_fini(struct scene *s)
{
	char left[20] = "";
	const int *fds = (const int *)s;

	note("left", recv(s->in[0], left, sizeof(left), MSG_DONTWAIT));
	note_bytes("left", left, sizeof(left));
	for (size_t i = 0; i < sizeof(*s) / sizeof(int); i++)
		close(fds[i]);
}

static void bad_buffers(long bad)
{
	struct scene s;

	scene_init(&s);
	DO_NR(SYS_read, s.in[0], bad, 10);
	DO_NR(SYS_read, s.file, bad, 10);
	DO_NR(SYS_read, s.event, bad, 8);
	DO_NR(SYS_pread64, s.file, bad, 10, 0);
	DO_NR(SYS_write, s.out[1], bad, 10);
	DO_NR(SYS_write, s.in[0], bad, 10);
	DO_NR(SYS_write, s.file, bad, 10);
	DO_NR(SYS_write, s.event, bad, 8);
	DO_NR(SYS_pwrite64, s.file, bad, 10, 0);
	DO_NR(SYS_recvfrom, s.in[0], bad, 10, 0, 0, 0);
	DO_NR(SYS_sendto, s.in[0], bad, 10, 0, 0, 0);
	DO_NR(SYS_sendto, s.datagram[0], bad, 10, 0, 0, 0);
	DO_NR(SYS_getrandom, bad, 10, 0);
	DO_NR(SYS_getdents64, s.file, bad, 100);
	DO_NR(SYS_epoll_wait, s.set, bad, 1, 0);
	DO_NR(SYS_epoll_ctl, s.set, EPOLL_CTL_MOD, s.event, bad);
	DO_NR(SYS_sendfile, s.out[1], s.file, bad, 10);
	DO_NR(SYS_splice, s.file, bad, s.out[1], 0, 10, 0);
	DO_NR(SYS_copy_file_range, s.file, bad, s.file, 0, 10, 0);
	scene_fini(&s);
}

static void bad_vectors(long bad)
{
	char good[4] = "";
	struct iovec iov[2] = { { good, 4 }, { (void *)bad, 6 } };
	struct iovec last = { (void *)bad, 6 };
	struct scene s;

	scene_init(&s);
	DO_NR(SYS_readv, s.in[0], bad, 2);
	DO_NR(SYS_readv, s.in[0], (long)&last, 1);
	DO_NR(SYS_readv, s.file, (long)iov, 2);
	DO_NR(SYS_writev, s.out[1], bad, 2);
	DO_NR(SYS_writev, s.out[1], (long)&last, 1);
	DO_NR(SYS_writev, s.in[0], (long)&last, 1);
	DO_NR(SYS_preadv, s.file, bad, 1, 0, 0);
	DO_NR(SYS_pwritev2, s.file, bad, 1, 0, 0, 0);
	iov[0].iov_len = SIZE_MAX / 2 + 1;
	DO_NR(SYS_readv, s.in[0], (long)iov, 1);
	DO_NR(SYS_writev, s.in[0], (long)iov, 1);
	iov[0].iov_len = 4;
	DO_NR(SYS_readv, s.in[0], (long)iov, 1025);
	DO_NR(SYS_readv, s.in[0], (long)iov, -1);
	DO_NR(SYS_vmsplice, s.out[1], bad, 1, 0);
	scene_fini(&s);
}

static void bad_messages(long bad)
{
	char good[4] = "";
	struct iovec iov = { good, 4 }, worse = { (void *)bad, 4 };
	struct msghdr msgs[4] = { 0 };
	struct mmsghdr many = { 0 };
	struct scene s;

	for (int i = 0; i < 4; i++) {
		msgs[i].msg_iov = &iov;
		msgs[i].msg_iovlen = 1;
	}
	msgs[0].msg_iov = (void *)bad;
	msgs[1].msg_iov = &worse;
	msgs[2].msg_name = (void *)bad;
	msgs[2].msg_namelen = 100;
	msgs[3].msg_control = (void *)bad;
	msgs[3].msg_controllen = 100;
	scene_init(&s);
	DO_NR(SYS_recvmsg, s.in[0], bad, 0);
	DO_NR(SYS_sendmsg, s.in[0], bad, 0);
	DO_NR(SYS_recvmmsg, s.in[0], bad, 1, 0, 0);
	DO_NR(SYS_sendmmsg, s.in[0], bad, 1, 0);
	for (int i = 0; i < 4; i++) {
		many.msg_hdr = msgs[i];
		DO_NR(SYS_sendmsg, s.datagram[0], (long)&msgs[i], 0);
		DO_NR(SYS_sendmmsg, s.datagram[0], (long)&many, 1, 0);
		DO_NR(SYS_recvmsg, s.datagram[0], (long)&msgs[i], MSG_DONTWAIT);
		CHECK_EQ(write(s.datagram[1], "abcdefghij", 10), 10);
		DO_NR(SYS_recvmmsg, s.datagram[0], (long)&many, 1, MSG_DONTWAIT,
		      0);
	}
	scene_fini(&s);
}

static void bad_names(long bad)
{
	struct stat st;
	uint16_t port;
	int listener = make_listener(&port), client, one = 1;

	DO_NR(SYS_open, bad, O_RDONLY, 0);
	DO_NR(SYS_openat, AT_FDCWD, bad, O_RDWR | O_CREAT, 0600);
	DO_NR(SYS_stat, bad, (long)&st);
	DO_NR(SYS_stat, (long)"/", bad);
	DO_NR(SYS_fstat, listener, bad);
	DO_NR(SYS_statx, AT_FDCWD, (long)"/", 0, 0xfff, bad);
	DO_NR(SYS_rename, bad, (long)"x");
	DO_NR(SYS_unlink, bad);
	DO_NR(SYS_mkdir, bad, 0700);
	DO_NR(SYS_readlink, (long)"/proc/self/exe", bad, 10);
	DO_NR(SYS_pipe2, bad, 0);
	DO_NR(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, bad);
	client = connect_to(port);
	DO_NR(SYS_accept, listener, bad, (long)&one);
	close(client);
	client = connect_to(port);
	DO_NR(SYS_accept4, listener, (long)&st, bad, 0);
	DO_NR(SYS_connect, client, bad, 16);
	DO_NR(SYS_bind, client, bad, 16);
	DO_NR(SYS_getsockname, client, bad, (long)&one);
	DO_NR(SYS_setsockopt, client, SOL_SOCKET, SO_REUSEADDR, bad, 4);
	DO_NR(SYS_getsockopt, client, SOL_SOCKET, SO_TYPE, bad, (long)&one);
	DO_NR(SYS_poll, bad, 1, 0);
	DO_NR(SYS_ppoll, bad, 1, bad, 0, 0);
	DO_NR(SYS_nanosleep, bad, 0);
	DO_NR(SYS_futex, bad, FUTEX_WAIT, 0, 0, 0, 0);
	DO_NR(SYS_futex, (long)&one, FUTEX_WAIT, 1, bad, 0, 0);
	DO_NR(SYS_uname, bad);
	DO_NR(SYS_wait4, -1, bad, 1, 0);
	DO_NR(SYS_timerfd_settime, listener, 0, bad, 0);
	close(client);
	close(listener);
}

static void bad_pointers(void)
{
	for (int i = 0; i < NR_BAD; i++) {
		bad_buffers(bad_addresses()[i]);
		bad_vectors(bad_addresses()[i]);
		bad_messages(bad_addresses()[i]);
		bad_names(bad_addresses()[i]);
	}
}

/* Parked with a bad pointer: found out only when data arrives. */
static void bad_pointers_parked(void)
{
	struct op ops[4] = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	POST(post, &ops[0], SYS_read, sv[0], 8, 10, 0, 0, 0);
	run_ms(5);
	CHECK_EQ(ops[0].nr_done, 0);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&ops[0]), -EFAULT);
	CHECK_EQ(CALL(read, sv[0], buf, sizeof(buf)), 3);
	/* Its memory goes while it is parked. */
	bad_addresses();
	CHECK_EQ(mprotect(no_access, 4096, PROT_READ | PROT_WRITE), 0);
	POST(read, &ops[1], sv[0], no_access, 10);
	run_ms(5);
	CHECK_EQ(munmap(no_access, 4096), 0);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&ops[1]), -EFAULT);
}

static int64_t post_nr(unsigned int nr)
{
	return CALL(post, nr, -1, -1, -1, -1, -1, -1);
}

static void unknown_numbers(void)
{
	static const unsigned int numbers[] = {
		511,   400,   600,   337,      423, 512,      1023,
		65535, 65536, 65575, 1u << 20, 134, INT32_MAX
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		CHECK_EQ(post_nr(numbers[i]), -ENOSYS);
	}
	/* The x32 call of the same low bits must not be made: exit, write. */
	CHECK_EQ(post_nr(0x40000000 | SYS_exit_group), -ENOSYS);
	CHECK_EQ(CALL(post, 0x40000000 | SYS_write, 1, (long)"x", 1, 0, 0, 0),
		 -ENOSYS);
	CHECK_EQ(post_nr(UINT32_MAX), -ENOSYS);
	CHECK_EQ(flexsc_post(NULL, 511, 0, 0, 0, 0, 0, 0), 0);
	run_ms(5);
}

static void refused_numbers(void)
{
	static const unsigned int numbers[] = {
		SYS_fork,     SYS_vfork,	SYS_clone,  SYS_clone3,
		SYS_execve,   SYS_execveat,	SYS_exit,   SYS_exit_group,
		SYS_pause,    SYS_rt_sigreturn, SYS_ptrace, SYS_setuid,
		SYS_seccomp,  SYS_unshare,	SYS_setns,  SYS_rt_sigsuspend,
		SYS_setgroups
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const char *why = flexsc_refusal(numbers[i]);

		if (!why)
			FAIL("no reason for %u", numbers[i]);
		CHECK(strlen(why) > 20);
		CHECK_EQ(post_nr(numbers[i]), -EOPNOTSUPP);
	}
	CHECK(flexsc_refusal(SYS_read) == NULL);
	CHECK(flexsc_refusal(SYS_gettid) == NULL);
	CHECK(flexsc_refusal(SYS_nanosleep) == NULL);
	CHECK_EQ(CALL(getrandom, (char[4]){ 0 }, 4, 0), 4);
}

static void closed_descriptors(void)
{
	static const unsigned int first_fd[] = {
		SYS_read,	 SYS_write,	 SYS_readv,	SYS_writev,
		SYS_pread64,	 SYS_pwrite64,	 SYS_recvfrom,	SYS_sendto,
		SYS_recvmsg,	 SYS_sendmsg,	 SYS_accept,	SYS_accept4,
		SYS_connect,	 SYS_bind,	 SYS_listen,	SYS_shutdown,
		SYS_fstat,	 SYS_fsync,	 SYS_fdatasync, SYS_ftruncate,
		SYS_lseek,	 SYS_getdents64, SYS_ioctl,	SYS_fcntl,
		SYS_flock,	 SYS_dup,	 SYS_close,	SYS_sendfile,
		SYS_epoll_wait,	 SYS_recvmmsg,	 SYS_sendmmsg,	SYS_fchmod,
		SYS_getsockname, SYS_getsockopt, SYS_preadv2,	SYS_pwritev2
	};
	static const int fds[] = { -1, 9999, 1 << 20, INT32_MAX, INT32_MIN };
	static long space[64];
	long p = (long)space;

	for (size_t j = 0; j < ARRAY_SIZE(fds); j++) {
		for (size_t i = 0; i < ARRAY_SIZE(first_fd); i++) {
			note("number", first_fd[i]);
			DO_NR(first_fd[i], fds[j], p, 1, 0, 0, 0);
		}
		DO_NR(SYS_sendfile, 1, fds[j], 0, 1);
		DO_NR(SYS_dup2, fds[j], 50);
		DO_NR(SYS_openat, fds[j], (long)"x", O_RDONLY);
		DO_NR(SYS_epoll_ctl, fds[j], EPOLL_CTL_ADD, 0, p);
		DO_NR(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, fds[j], 0);
	}
}

/* The right kind of descriptor for another call. */
static void wrong_descriptors(void)
{
	int file = make_file("file", 10), folder = open(".", O_RDONLY), sv[2];
	int handle = open("file", O_PATH), event = eventfd(0, 0);
	struct scene s;
	char buf[100];

	make_pair(sv);
	scene_init(&s);
	DO(recv, file, buf, 1, 0);
	DO(send, event, buf, 1, 0);
	DO(accept, file, NULL, NULL);
	DO(accept, sv[0], NULL, NULL);
	DO(read, folder, buf, 1);
	DO(write, folder, buf, 1);
	DO(read, handle, buf, 1);
	DO(write, handle, buf, 1);
	DO(read, s.set, buf, 1);
	DO(write, s.set, buf, 1);
	DO(pread, sv[0], buf, 1, 0);
	DO(listen, file, 1);
	DO(connect, file, (struct sockaddr *)buf, 16);
	DO(epoll_wait, file, (struct epoll_event *)buf, 1, 0);
	DO(getdents64, file, buf, 100);
	DO(fsync, sv[0]);
	DO(ftruncate, sv[0], 1);
	DO(lseek, sv[0], 0, SEEK_SET);
	DO(sendfile, folder, file, NULL, 1);
	DO(sendfile, sv[0], folder, NULL, 1);
	scene_fini(&s);
}

/* The library's own functions ------------------------------------------- */

static void posted_twice(void)
{
	struct op op = { 0 }, timer = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	CHECK(flexsc_pending(&op.ev));
	CHECK_EQ(flexsc_read(&op.ev, sv[0], buf, 1), -EBUSY);
	CHECK_EQ(flexsc_timer(&op.ev, 1), -EBUSY);
	CHECK_EQ(flexsc_loop_send(loop, &op.ev), -EBUSY);
	run_ms(5);
	CHECK_EQ(flexsc_post(&op.ev, SYS_getpid, 0, 0, 0, 0, 0, 0), -EBUSY);
	CHECK_EQ(op.nr_done, 0);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
	run_ms(5);
	CHECK_EQ(op.nr_done, 1);
	POST(timer, &timer, 10 * MS);
	CHECK_EQ(flexsc_timer(&timer.ev, 1), -EBUSY);
	CHECK_EQ(flexsc_read(&timer.ev, sv[0], buf, 1), -EBUSY);
	CHECK_EQ(WAIT(&timer), 0);
	/* Complete, but not yet told of. */
	POST(post, &op, SYS_getpid, 0, 0, 0, 0, 0, 0);
	CHECK_EQ(flexsc_post(&op.ev, SYS_getppid, 0, 0, 0, 0, 0, 0), -EBUSY);
	CHECK(flexsc_pending(&op.ev));
	CHECK_EQ(flexsc_loop_outstanding(loop), 1);
	CHECK_EQ(WAIT(&op), getpid());
	CHECK_EQ(flexsc_loop_outstanding(loop), 0);
}

static void freed_while_busy(void)
{
	struct op op = { 0 };
	char buf[10];
	int sv[2];

	make_pair(sv);
	POST(read, &op, sv[0], buf, sizeof(buf));
	CHECK_EQ(flexsc_loop_free(loop), -EBUSY);
	run_ms(5);
	CHECK_EQ(flexsc_loop_free(loop), -EBUSY);
	CHECK(flexsc_loop_current() == loop);
	CHECK_EQ(write(sv[1], "abc", 3), 3);
	CHECK_EQ(WAIT(&op), 3);
	POST(timer, &op, 5 * MS);
	CHECK_EQ(flexsc_loop_free(loop), -EBUSY);
	CHECK_EQ(WAIT(&op), 0);
}

static void nested(struct flexsc_event *ev)
{
	bool *ran = ev->data;

	CHECK_EQ(flexsc_loop_poll(loop, 0), -EBUSY);
	CHECK_EQ(flexsc_loop_run(loop), -EBUSY);
	CHECK_EQ(flexsc_loop_free(loop), -EBUSY);
	CHECK_EQ(flexsc_loop_shutdown(loop), -EBUSY);
	*ran = true;
}

static void nested_poll(void)
{
	bool ran = false;
	struct flexsc_event ev = { .handler = nested, .data = &ran };

	CHECK_EQ(flexsc_post(&ev, SYS_getpid, 0, 0, 0, 0, 0, 0), 0);
	while (!ran)
		run_ms(1);
	ran = false;
	CHECK_EQ(flexsc_timer(&ev, 1), 0);
	while (!ran)
		run_ms(1);
}

static void without_loop(void)
{
	struct flexsc_event ev = { 0 };
	char buf[10];

	CHECK(flexsc_loop_current() == NULL);
	CHECK_EQ(flexsc_read(&ev, 0, buf, 1), -EINVAL);
	CHECK_EQ(flexsc_post(NULL, SYS_getpid, 0, 0, 0, 0, 0, 0), -EINVAL);
	CHECK_EQ(flexsc_timer(&ev, 1), -EINVAL);
	CHECK_EQ(flexsc_chain_begin(), -EINVAL);
	CHECK_EQ(flexsc_cancel(&ev), -ENOENT);
	CHECK(!flexsc_pending(&ev));
	flexsc_forget(5);
	loop = new_loop(0, 0);
	CHECK_EQ(flexsc_cancel(&ev), -ENOENT);
	flexsc_forget(-1);
	flexsc_forget(INT32_MAX);
	end_loop(loop);
	CHECK_EQ(flexsc_read(&ev, 0, buf, 1), -EINVAL);
	loop = NULL;
}

static void bad_options(void)
{
	struct flexsc_options options = { .size = sizeof(options),
					  .engine = "absent" };
	struct flexsc_loop *made = NULL;

	CHECK_EQ(flexsc_loop_new(&made, &options), -EINVAL);
	CHECK(made == NULL);
	options.engine = engine;
	options.max_entries = 1u << 30; /* more than the most: the most */
	options.max_threads = 100000;
	if (flexsc_loop_new(&made, &options))
		CHECK(made == NULL);
	else
		end_loop(made);
	/* Of an older program: what it does not know is left at the default. */
	options = (struct flexsc_options){ .size = sizeof(options),
					   .engine = "sync",
					   .max_entries = 1 };
	options.size = offsetof(struct flexsc_options, max_entries);
	CHECK_EQ(flexsc_loop_new(&made, &options), 0);
	CHECK(!strcmp(flexsc_loop_engine(made), "sync"));
	end_loop(made);
	/* Of a newer one: what this library does not know is left alone. */
	options.size = sizeof(options) + 8;
	CHECK_EQ(flexsc_loop_new(&made, &options), 0);
	end_loop(made);
	/* Forgotten: better told of than all options ignored. */
	options.size = 0;
	CHECK_EQ(flexsc_loop_new(&made, &options), -EINVAL);
	setenv("FLEXSC_ENGINE", "sync", 1);
	CHECK_EQ(flexsc_loop_new(&made, NULL), 0);
	CHECK(!strcmp(flexsc_loop_engine(made), "sync"));
	CHECK(strlen(flexsc_loop_engine_reason(made)) > 5);
	end_loop(made);
	setenv("FLEXSC_ENGINE", "absent", 1);
	CHECK_EQ(flexsc_loop_new(&made, NULL), -EINVAL);
}

static const struct test tests[] = {
	{ "bad_pointers", bad_pointers, TEST_BOTH },
	{ "bad_pointers_parked", bad_pointers_parked, 0 },
	{ "unknown_numbers", unknown_numbers, 0 },
	{ "refused_numbers", refused_numbers, 0 },
	{ "closed_descriptors", closed_descriptors, TEST_BOTH },
	{ "wrong_descriptors", wrong_descriptors, TEST_BOTH },
	{ "posted_twice", posted_twice, 0 },
	{ "freed_while_busy", freed_while_busy, 0 },
	{ "nested_poll", nested_poll, 0 },
	{ "without_loop", without_loop, TEST_NO_LOOP },
	{ "bad_options", bad_options, TEST_NO_LOOP },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
