/* SPDX-License-Identifier: MIT */
/*
 * engine/uring_prep.c: does it have an operation for every call that the
 * table of system calls says it has; does it refuse arguments that mean
 * something else to io_uring; and does what it prepares do the same as the
 * call itself? TAP; 77 where there is no io_uring.
 */
#include "call/table.h"
#include "engine/uring_prep.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAKE 454
#define NR_FUTEX_WAIT 455
#define FUTEX2_U32_PRIVATE (2 | 128)

static const struct fx_uring_ops all_ops = { .has = UINT64_MAX };
static unsigned int nr_tests, nr_failed;

static void report(const char *name, bool ok)
{
	printf("%s %u - %s\n", ok ? "ok" : "not ok", ++nr_tests, name);
	nr_failed += !ok;
}

static bool fits(const struct fx_uring_ops *ops, unsigned int nr,
		 const long *args)
{
	struct flexsc_entry call = { .nr = (uint16_t)nr };
	struct io_uring_sqe sqe;

	for (unsigned i = 0; i < 6; i++)
		call.args[i] = (uint64_t)args[i];
	return fx_uring_prep(ops, &sqe, &call);
}

/* The table -------------------------------------------------------------- */

/* One of these fits every call that has an operation. */
static const long harmless[][6] = {
	{ 1, 1, 1, 1, 0, 0 },
	{ 1, 0, 1, 0, 1, 0 },
	{ 1, 1, 0, 0, 0, 0 },
};

static void test_table(void)
{
	bool ok = true;

	for (unsigned int nr = 0; nr < FX_NR_CALLS; nr++) {
		bool says = fx_call_table[nr].flags & FX_CALL_URING;
		bool does = false;

		for (unsigned i = 0; i < FX_ARRAY_SIZE(harmless); i++)
			does |= fits(&all_ops, nr, harmless[i]);
		if (says == does)
			continue;
		printf("# %u %s: the table says %s\n", nr,
		       fx_call_table[nr].name ? fx_call_table[nr].name : "",
		       says ? "yes" : "no");
		ok = false;
	}
	report("the table and the operations agree", ok);
}

static void test_refusals(void)
{
	static const struct {
		unsigned int nr;
		long args[6];
	} calls[] = {
		{ SYS_getpid, { 0 } },
		{ FX_NR_CALLS - 1, { 0 } },
		{ SYS_pread64, { 0, 1, 1, -1 } },
		{ SYS_pwrite64, { 0, 1, 1, -1 } },
		{ SYS_preadv, { 0, 1, 1, -1 } },
		{ SYS_preadv2, { 0, 1, 1, -2 } },
		{ SYS_preadv2, { 0, 1, 1, 0, 0, RWF_HIPRI } },
		{ SYS_readv, { 0, 1, 1025 } },
		{ SYS_readv, { 0, 1, -1 } },
		{ SYS_ftruncate, { 0, -1 } },
		{ SYS_madvise, { 0, 1L << 32, 0 } },
		{ SYS_fadvise64, { 0, 0, 1L << 31, 0 } },
		{ SYS_sync_file_range, { 0, 0, -1, 0 } },
		{ SYS_splice, { 0, 1, 1, 0, 1, 0 } },
		{ SYS_splice, { 0, 0, 1, 1, 1, 0 } },
		{ SYS_splice, { 0, 0, 1, 0, 1, 1L << 31 } },
		{ SYS_sendto, { 0, 1, 1, 0, 1, 16 } },
		{ SYS_recvfrom, { 0, 1, 1, 0, 1, 1 } },
		{ SYS_recvfrom, { 0, 1, 0, 0, 0, 0 } },
		{ SYS_waitid, { P_PID, 1, 1, WEXITED, 1 } },
		{ SYS_waitid, { P_PIDFD, 1, 1, WEXITED, 0 } },
		{ SYS_waitid, { P_PID, 1, 1, WEXITED | __WNOTHREAD, 0 } },
		{ NR_FUTEX_WAIT, { 1, 0, 1, 0, 1, 0 } },
		{ NR_FUTEX_WAITV, { 1, 1, 0, 1, 0 } },
		{ NR_FUTEX_WAITV, { 1, 1, 1, 0, 0 } },
	};
	static const struct fx_uring_ops no_ops = { 0 };
	bool ok = true;

	for (unsigned i = 0; i < FX_ARRAY_SIZE(calls); i++) {
		if (!fits(&all_ops, calls[i].nr, calls[i].args))
			continue;
		printf("# case %u, number %u: fits\n", i, calls[i].nr);
		ok = false;
	}
	report("what would mean something else does not fit", ok);
	report("what the kernel lacks does not fit",
	       !fits(&no_ops, SYS_read, harmless[0]) &&
		       fits(&all_ops, SYS_read, harmless[0]));
}

/* Length and numbers are cut as the kernel cuts those of the call. */
static void test_cuts(void)
{
	struct flexsc_entry call = { .nr = SYS_read,
				     .args = { 7, 8, UINT64_MAX } };
	struct io_uring_sqe sqe;

	report("a length is cut where the call cuts it",
	       fx_uring_prep(&all_ops, &sqe, &call) && sqe.len == 0x7ffff000 &&
		       sqe.fd == 7 && sqe.addr == 8 && sqe.off == UINT64_MAX &&
		       sqe.user_data == 0);
	call = (struct flexsc_entry){ .nr = SYS_shutdown,
				      .args = { 0x100000005, 0xf00000001 } };
	report("of an int only the low half counts",
	       fx_uring_prep(&all_ops, &sqe, &call) && sqe.fd == 5 &&
		       sqe.len == 1);
	call = (struct flexsc_entry){ .nr = SYS_open };
	report("an open is not tried with O_NONBLOCK",
	       fx_uring_prep(&all_ops, &sqe, &call) &&
		       (sqe.flags & IOSQE_ASYNC));
}

/* Doing the same --------------------------------------------------------- */

#define MAX_OUTCOMES 200

static struct io_uring ring;
static struct fx_uring_ops ring_ops;
static bool by_ring;
static unsigned int nr_by_ring;
static struct {
	unsigned int line;
	long value;
} outcomes[2][MAX_OUTCOMES];
static unsigned int nr_outcomes[2];

static long note(unsigned int line, long value)
{
	unsigned int i = nr_outcomes[by_ring]++;

	if (i < MAX_OUTCOMES) {
		outcomes[by_ring][i].line = line;
		outcomes[by_ring][i].value = value;
	}
	return value;
}

static long carry_out(unsigned int nr, const long *args)
{
	struct flexsc_entry call = { .nr = (uint16_t)nr };
	struct io_uring_sqe op, *sqe;
	struct io_uring_cqe *cqe;
	long ret;

	for (unsigned i = 0; i < 6; i++)
		call.args[i] = (uint64_t)args[i];
	if (by_ring && fx_uring_prep(&ring_ops, &op, &call)) {
		sqe = io_uring_get_sqe(&ring);
		*sqe = op;
		io_uring_submit_and_wait(&ring, 1);
		if (io_uring_wait_cqe(&ring, &cqe))
			return -EIO;
		ret = cqe->res;
		io_uring_cqe_seen(&ring, cqe);
		nr_by_ring++;
		return ret;
	}
	ret = syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
	return ret < 0 ? -errno : ret;
}

#define DO(nr, ...) \
	note(__LINE__, carry_out(nr, (const long[6]){ __VA_ARGS__ }))
#define NOTE(value) note(__LINE__, value)
#define P(pointer) ((long)(uintptr_t)(pointer))

/* The first file of a fresh folder, open. */
static long new_file(void)
{
	struct stat st;
	long fd = DO(SYS_open, P("a"), O_RDWR | O_CREAT, 0640);

	NOTE(fstat((int)fd, &st) ? -1 : (long)st.st_mode);
	return fd;
}

static void transfers(void)
{
	char buf[100] = "0123456789", more[100];
	struct iovec iov[2] = { { buf, 3 }, { buf + 5, 4 } };
	long fd = new_file();

	DO(SYS_write, fd, P(buf), 10);
	DO(SYS_writev, fd, P(iov), 2);
	DO(SYS_pwrite64, fd, P("xyz"), 3, 5);
	DO(SYS_pwritev, fd, P(iov), 2, 8, 0);
	DO(SYS_pwritev2, fd, P(iov), 1, -1, 0, 0);
	DO(SYS_pwritev2, fd, P(iov), 1, -1, 0, RWF_APPEND);
	DO(SYS_pread64, fd, P(more), 100, 2);
	NOTE(more[3]);
	DO(SYS_pread64, fd, P(more), 100, 1000);
	NOTE(lseek((int)fd, 1, SEEK_SET));
	DO(SYS_read, fd, P(more), 4);
	NOTE(more[3]);
	DO(SYS_read, fd, P(more), 0);
	DO(SYS_read, fd, P(1), 4);
	DO(SYS_readv, fd, P(iov), 2);
	DO(SYS_readv, fd, P(1), 2);
	DO(SYS_preadv, fd, P(iov), 2, 1, 0);
	DO(SYS_preadv2, fd, P(iov), 2, -1, 0, 0);
	DO(SYS_preadv2, fd, P(iov), 2, 0, 0, 0x10000);
	NOTE(lseek((int)fd, 0, SEEK_CUR));
	DO(SYS_close, fd);
	DO(SYS_close, fd);
	DO(SYS_read, fd, P(buf), 1);
}

static void files(void)
{
	struct open_how how = { .flags = O_RDWR };
	char buf[100], more[100];
	struct statx stx;
	long fd = new_file(), page = sysconf(_SC_PAGESIZE);
	char *map;

	DO(SYS_fsync, fd);
	DO(SYS_fdatasync, fd);
	DO(SYS_sync_file_range, fd, 0, 10, SYNC_FILE_RANGE_WRITE);
	DO(SYS_sync_file_range, fd, 0, 10, 100);
	DO(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, 8192);
	DO(SYS_fallocate, fd, 0, 0, 5000);
	DO(SYS_fallocate, fd, 0, -1, 5000);
	DO(SYS_ftruncate, fd, 4000);
	NOTE(lseek((int)fd, 0, SEEK_END));
	DO(SYS_fadvise64, fd, 0, 100, POSIX_FADV_RANDOM);
	DO(SYS_fadvise64, fd, 0, 100, 99);
	map = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	map[0] = 1;
	DO(SYS_madvise, P(map), page, MADV_DONTNEED);
	NOTE(map[0]);
	DO(SYS_madvise, P(map) + 1, page, MADV_DONTNEED);
	munmap(map, (size_t)page);
	DO(SYS_fsetxattr, fd, P("user.x"), P("value"), 5, 0);
	DO(SYS_fsetxattr, fd, P("user.x"), P("value"), 5, 1);
	DO(SYS_fgetxattr, fd, P("user.x"), P(more), 100);
	DO(SYS_setxattr, P("a"), P("user.y"), P("val"), 3, 0);
	DO(SYS_getxattr, P("a"), P("user.y"), P(more), 100);
	DO(SYS_getxattr, P("none"), P("user.y"), P(more), 100);
	DO(SYS_statx, AT_FDCWD, P("a"), 0, STATX_SIZE, P(&stx));
	NOTE((long)stx.stx_size);
	DO(SYS_statx, fd, P(""), AT_EMPTY_PATH, STATX_SIZE, P(&stx));
	DO(SYS_statx, AT_FDCWD, P("a"), 0, STATX_SIZE, P(1));
	DO(SYS_close, fd);
	DO(SYS_close, fd);
	DO(SYS_read, fd, P(buf), 1);
	fd = DO(SYS_openat2, AT_FDCWD, P("a"), P(&how), sizeof(how));
	DO(SYS_openat2, AT_FDCWD, P("a"), P(&how), 3);
	DO(SYS_close, fd);
	fd = DO(SYS_creat, P("b"), 0600);
	DO(SYS_read, fd, P(buf), 1);
	DO(SYS_close, fd);
	DO(SYS_open, P("none"), O_RDONLY, 0);
	DO(SYS_open, P(1), O_RDONLY, 0);
	fd = DO(SYS_openat, AT_FDCWD, P("."), O_RDONLY | O_DIRECTORY, 0);
	DO(SYS_read, fd, P(buf), 1);
	DO(SYS_close, fd);
}

static void paths(void)
{
	long dir;

	DO(SYS_mkdir, P("dir"), 0750);
	DO(SYS_mkdir, P("dir"), 0750);
	dir = DO(SYS_open, P("dir"), O_RDONLY, 0);
	DO(SYS_mkdirat, dir, P("sub"), 0700);
	DO(SYS_symlink, P("../a"), P("dir/link"));
	DO(SYS_symlinkat, P("x"), dir, P("link2"));
	DO(SYS_link, P("a"), P("dir/hard"));
	DO(SYS_linkat, dir, P("hard"), dir, P("hard2"), 0);
	DO(SYS_linkat, dir, P("none"), dir, P("hard3"), 0);
	DO(SYS_rename, P("b"), P("dir/b"));
	DO(SYS_renameat, dir, P("b"), dir, P("c"));
	DO(SYS_renameat2, dir, P("c"), dir, P("hard"), 1);
	DO(SYS_renameat2, dir, P("c"), dir, P("hard"), 2);
	DO(SYS_renameat, dir, P("none"), dir, P("c"));
	DO(SYS_unlinkat, dir, P("sub"), 0);
	DO(SYS_unlinkat, dir, P("sub"), AT_REMOVEDIR);
	DO(SYS_unlinkat, dir, P("link"), 0x10000);
	DO(SYS_unlink, P("dir/link"));
	DO(SYS_unlink, P("dir/link2"));
	DO(SYS_unlink, P("dir/hard"));
	DO(SYS_unlink, P("dir/hard2"));
	DO(SYS_rmdir, P("dir"));
	DO(SYS_unlink, P("dir/c"));
	DO(SYS_rmdir, P("dir"));
	DO(SYS_rmdir, P("a"));
	DO(SYS_close, dir);
}

static void sockets(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(addr);
	char buf[100] = "message";
	struct iovec iov = { buf, 10 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	long listener, out, in, refused;

	listener = DO(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	DO(SYS_socket, AF_INET, 99, 0);
	DO(SYS_bind, listener, P(&addr), sizeof(addr));
	DO(SYS_bind, listener, P(&addr), sizeof(addr));
	DO(SYS_listen, listener, 5);
	getsockname((int)listener, (struct sockaddr *)&addr, &len);
	out = DO(SYS_socket, AF_INET, SOCK_STREAM, 0);
	DO(SYS_connect, out, P(&addr), sizeof(addr));
	DO(SYS_connect, out, P(&addr), sizeof(addr));
	in = DO(SYS_accept4, listener, P(&addr), P(&len), SOCK_CLOEXEC);
	NOTE(fcntl((int)in, F_GETFD));
	NOTE(len);
	DO(SYS_sendto, out, P(buf), 7, 0, 0, 0);
	DO(SYS_recvfrom, in, P(buf), 100, MSG_PEEK, 0, 0);
	DO(SYS_recvfrom, in, P(buf), 3, 0, 0, 0);
	DO(SYS_recvmsg, in, P(&msg), 0);
	DO(SYS_sendmsg, in, P(&msg), 0);
	DO(SYS_recvfrom, out, P(buf), 10, MSG_WAITALL, 0, 0);
	DO(SYS_recvfrom, out, P(buf), 10, MSG_DONTWAIT, 0, 0);
	DO(SYS_sendto, out, P(1), 7, 0, 0, 0);
	DO(SYS_shutdown, out, SHUT_WR);
	DO(SYS_recvfrom, in, P(buf), 10, 0, 0, 0);
	DO(SYS_sendto, out, P(buf), 7, MSG_NOSIGNAL, 0, 0);
	DO(SYS_shutdown, out, 77);
	DO(SYS_close, listener);
	refused = DO(SYS_socket, AF_INET, SOCK_STREAM, 0);
	DO(SYS_connect, refused, P(&addr), 3);
	DO(SYS_close, refused);
	DO(SYS_close, in);
	DO(SYS_close, out);
}

static void others(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} waiter = { 0 };
	siginfo_t info = { 0 };
	uint32_t word = 1;
	int a[2], b[2], set = epoll_create1(0);
	char buf[10];
	pid_t child;

	NOTE(pipe(a) | pipe(b));
	NOTE(write(a[1], "abcdef", 6));
	DO(SYS_tee, a[0], b[1], 4, 0);
	DO(SYS_splice, a[0], 0, b[1], 0, 3, 0);
	DO(SYS_splice, a[0], 0, b[1], 0, 100, 0x100);
	NOTE(read(b[0], buf, sizeof(buf)));
	DO(SYS_epoll_ctl, set, EPOLL_CTL_ADD, a[0], P(&event));
	DO(SYS_epoll_ctl, set, EPOLL_CTL_ADD, a[0], P(&event));
	DO(SYS_epoll_ctl, set, EPOLL_CTL_DEL, a[0], 0);
	child = fork();
	if (child == 0)
		_exit(42);
	DO(SYS_waitid, P_PID, child, P(&info), WEXITED, 0);
	NOTE(info.si_status);
	DO(SYS_waitid, P_PID, child, P(&info), WEXITED, 0);
	DO(SYS_waitid, P_ALL, 0, P(&info), 0, 0);
	DO(NR_FUTEX_WAIT, P(&word), 0, 0xffffffff, FUTEX2_U32_PRIVATE, 0, 0);
	DO(NR_FUTEX_WAIT, P(&word), 0, 0xffffffff, 77, 0, 0);
	DO(NR_FUTEX_WAKE, P(&word), 0xffffffff, 1, FUTEX2_U32_PRIVATE);
	waiter.uaddr = (uint64_t)(uintptr_t)&word;
	waiter.flags = FUTEX2_U32_PRIVATE;
	DO(NR_FUTEX_WAITV, P(&waiter), 1, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		DO(SYS_close, a[i]);
		DO(SYS_close, b[i]);
	}
	DO(SYS_close, set);
}

static void compare(const char *name, void (*scene)(void))
{
	char folder[] = "/tmp/uring-prep-XXXXXX";
	bool ok = true;

	nr_outcomes[0] = nr_outcomes[1] = 0;
	for (int way = 0; way < 2; way++) {
		by_ring = way;
		if (!mkdtemp(folder) || chdir(folder))
			exit(1);
		if (scene == paths) { /* which the scene finds and leaves */
			close(creat("a", 0600));
			close(creat("b", 0600));
		}
		scene();
		unlink("a");
		unlink("b");
		if (chdir("/") || rmdir(folder))
			ok = false;
		memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
	}
	for (unsigned i = 0; i < nr_outcomes[0]; i++) {
		if (outcomes[0][i].value == outcomes[1][i].value)
			continue;
		printf("# line %u: %ld plainly, %ld by the ring\n",
		       outcomes[0][i].line, outcomes[0][i].value,
		       outcomes[1][i].value);
		ok = false;
	}
	report(name, ok && nr_outcomes[0] == nr_outcomes[1]);
}

int main(void)
{
	int bad = io_uring_queue_init(8, &ring, 0);

	if (!bad)
		bad = fx_uring_probe(&ring_ops, &ring);
	if (bad) {
		printf("1..0 # SKIP io_uring: %s\n", strerror(-bad));
		return 77;
	}
	signal(SIGPIPE, SIG_IGN);
	test_table();
	test_refusals();
	test_cuts();
	compare("transfers", transfers);
	compare("files", files);
	compare("paths", paths);
	compare("sockets", sockets);
	compare("other calls", others);
	printf("# %u operations\n", nr_by_ring);
	printf("1..%u\n", nr_tests);
	io_uring_queue_exit(&ring);
	return nr_failed != 0;
}
