/* SPDX-License-Identifier: MIT */
/*
 * Calls on regular files, names and directories: each is made plainly and
 * posted, and the outcomes must be the same.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>

static void note_file(int fd)
{
	uint8_t buf[4096];
	struct stat st;
	ssize_t len;

	note("size", fstat(fd, &st) ? -errno : st.st_size);
	len = pread(fd, buf, sizeof(buf), 0);
	note("bytes", len);
	if (len > 0)
		note_bytes("bytes", buf, (size_t)len);
}

static void read_write(void)
{
	int fd = (int)DO_NEW(open, "file", O_RDWR | O_CREAT, 0600);
	uint8_t in[1000], out[1000];

	fill(out, 0, sizeof(out));
	DO(write, fd, out, sizeof(out));
	DO(pwrite, fd, out, 10, 500);
	DO(pwrite, fd, out, 10, 3000);
	note_file(fd);
	DO(lseek, fd, 490, SEEK_SET);
	memset(in, 0, sizeof(in));
	DO(read, fd, in, 100);
	note_bytes("read", in, sizeof(in));
	DO(pread, fd, in, sizeof(in), 2500);
	note_bytes("pread", in, sizeof(in));
	DO(lseek, fd, 0, SEEK_CUR);
	DO(read, fd, in, sizeof(in));
	DO(lseek, fd, 0, SEEK_END);
	DO(read, fd, in, sizeof(in)); /* end of file */
	DO(pread, fd, in, sizeof(in), 1 << 30);
	DO(pread, fd, in, sizeof(in), -1);
	DO(lseek, fd, -1, SEEK_SET);
	DO(fsync, fd);
	DO(fdatasync, fd);
	DO(close, fd);
	DO(read, fd, in, sizeof(in));
}

static void modes(void)
{
	struct stat st;

	close(make_file("file", 0));
	CHECK_EQ(symlink("file", "link"), 0);
	DO(fchmodat, AT_FDCWD, "link", 0640, 0);
	DO(fchmodat, AT_FDCWD, "absent", 0640, 0);
	CHECK_EQ(stat("file", &st), 0);
	note("mode", st.st_mode);
	if (CALL(fchmodat, AT_FDCWD, "file", 0600, AT_SYMLINK_NOFOLLOW) ==
	    -ENOSYS)
		return; /* Linux 6.6 is the first to know of flags */
	DO(fchmodat, AT_FDCWD, "file", 0604, AT_SYMLINK_NOFOLLOW);
	DO(fchmodat, AT_FDCWD, "link", 0604, AT_SYMLINK_NOFOLLOW);
	DO(fchmodat, AT_FDCWD, "file", 0600, 0x10000000);
	CHECK_EQ(stat("file", &st), 0);
	note("mode", st.st_mode);
}

static void vectors(void)
{
	uint8_t buf[300];
	struct iovec iov[4] = {
		{ .iov_base = buf, .iov_len = 1 },
		{ .iov_base = buf + 100, .iov_len = 99 },
		{ .iov_base = NULL, .iov_len = 0 },
		{ .iov_base = buf + 200, .iov_len = 3 },
	};
	int fd = (int)DO_NEW(open, "file", O_RDWR | O_CREAT, 0600);

	fill(buf, 7, sizeof(buf));
	DO(writev, fd, iov, 4);
	DO(pwritev, fd, iov, 2, 50);
	DO(pwritev2, fd, iov, 4, -1, 0);
	DO(pwritev2, fd, iov, 1, 0, RWF_DSYNC);
	note_file(fd);
	memset(buf, 0, sizeof(buf));
	DO(preadv, fd, iov, 4, 20);
	note_bytes("preadv", buf, sizeof(buf));
	DO(lseek, fd, 3, SEEK_SET);
	DO(readv, fd, iov, 4);
	DO(preadv2, fd, iov, 2, -1, 0);
	note_bytes("preadv2", buf, sizeof(buf));
	DO(preadv2, fd, iov, 2, 0, 1 << 30);
	DO(readv, fd, iov, 0);
	DO_NR(SYS_readv, fd, (long)iov, -1);
	DO_NR(SYS_writev, fd, (long)iov, 1025);
	DO(close, fd);
}

static void sizes(void)
{
	int fd = (int)DO_NEW(open, "file", O_RDWR | O_CREAT, 0600);
	int other = (int)DO_NEW(open, "other", O_RDWR | O_CREAT, 0600);
	off_t from = 10, to = 5;
	uint8_t buf[100];

	fill(buf, 0, sizeof(buf));
	DO(ftruncate, fd, 5000);
	DO(pwrite, fd, buf, sizeof(buf), 0);
	note_file(fd);
	DO(truncate, "file", 50);
	note_file(fd);
	DO(truncate, "absent", 50);
	DO(ftruncate, fd, -1);
	DO(fallocate, fd, 0, 0, 3000);
	DO(fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, 9000);
	note_file(fd);
	DO(copy_file_range, fd, &from, other, &to, 60, 0);
	note("from", from);
	note("to", to);
	note_file(other);
	from = 2;
	DO(sendfile, other, fd, &from, 33);
	note("from", from);
	note_file(other);
	DO(readahead, fd, 0, 1000);
	DO(sync_file_range, fd, 0, 100, SYNC_FILE_RANGE_WRITE);
	DO(syncfs, fd);
	DO(close, fd);
	DO(close, other);
}

static void open_one(const char *path, int flags)
{
	int fd = (int)DO_NEW(open, path, flags, 0640);
	struct stat st;

	note("F_GETFL", fcntl(fd, F_GETFL));
	note("F_GETFD", fcntl(fd, F_GETFD));
	note("write", plain_result(write(fd, "x", 1)));
	note("mode", fstat(fd, &st) ? 0 : st.st_mode);
	if (fd >= 0)
		DO(close, fd);
}

static void open_flags(void)
{
	static const int flags[] = {
		O_RDONLY,
		O_WRONLY,
		O_RDWR,
		O_RDWR | O_APPEND,
		O_RDWR | O_TRUNC,
		O_RDWR | O_CREAT,
		O_RDWR | O_CREAT | O_EXCL,
		O_RDWR | O_CREAT | O_TRUNC,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		O_RDONLY | O_DIRECTORY,
		O_RDONLY | O_NOFOLLOW,
		O_RDONLY | O_CLOEXEC,
		O_RDONLY | O_NONBLOCK,
		O_WRONLY | O_SYNC,
		O_WRONLY | O_DSYNC,
		O_RDONLY | O_NOATIME,
		O_PATH,
		O_PATH | O_NOFOLLOW,
		O_RDWR | O_TMPFILE,
		O_RDWR | O_NOCTTY,
	};
	static const char *const paths[] = { "file", "absent",	 "folder",
					     "link", "dangling", "file/x",
					     "",     "/" };

	note("mkdir", mkdir("folder", 0700));
	note("symlink", symlink("file", "link"));
	note("symlink", symlink("nowhere", "dangling"));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		int fd = make_file("file", 10);

		for (size_t j = 0; j < ARRAY_SIZE(paths); j++) {
			if (strcmp(paths[j], "/") || !(flags[i] & O_TMPFILE))
				open_one(paths[j], flags[i]);
			unlink("absent");
			unlink("nowhere");
		}
		close(fd);
	}
}

static void open_variants(void)
{
	int folder, fd;

	umask(022);
	fd = (int)DO_NEW(creat, "new", 0666);
	note_file(fd);
	DO(close, fd);
	DO_NEW(creat, "missing/new", 0600);
	DO(mkdir, "folder", 0755);
	folder = (int)DO_NEW(openat, AT_FDCWD, "folder", O_RDONLY | O_DIRECTORY,
			     0);
	fd = (int)DO_NEW(openat, folder, "inside", O_CREAT | O_WRONLY, 0600);
	DO(write, fd, "abc", 3);
	DO(close, fd);
	fd = (int)DO_NEW(open, "folder/inside", O_RDONLY, 0);
	note_file(fd);
	DO_NEW(openat, fd, "beneath", O_RDONLY, 0);
	DO_NEW(openat, 12345, "inside", O_RDONLY, 0);
	DO(close, fd);
	DO(close, folder);
	fd = (int)DO_NEW(memfd_create, "name", 0);
	DO(write, fd, "abc", 3);
	note_file(fd);
	DO(close, fd);
}

/* What does not change from one folder to the next. */
static void note_stat(const struct stat *st)
{
	note("mode", st->st_mode);
	note("size", st->st_size);
	note("nlink", st->st_nlink);
	note("uid", st->st_uid);
	note("blksize", st->st_blksize);
}

static void stats(void)
{
	int fd = make_file("file", 12345);
	struct statfs fs;
	struct statx stx;
	struct stat st;

	memset(&st, 0, sizeof(st));
	note("symlink", symlink("file", "link"));
	DO(stat, "link", &st);
	note_stat(&st);
	DO(lstat, "link", &st);
	note_stat(&st);
	DO(fstat, fd, &st);
	note_stat(&st);
	DO(fstatat, AT_FDCWD, "link", &st, AT_SYMLINK_NOFOLLOW);
	note_stat(&st);
	DO(fstatat, fd, "", &st, AT_EMPTY_PATH);
	note_stat(&st);
	DO(fstatat, fd, "x", &st, 0);
	DO(stat, "absent", &st);
	DO(stat, "file/x", &st);
	DO(fstat, -1, &st);
	memset(&stx, 0, sizeof(stx));
	DO(statx, AT_FDCWD, "file", 0, STATX_BASIC_STATS, &stx);
	note("stx_size", (int64_t)stx.stx_size);
	DO(statx, AT_FDCWD, "absent", 0, STATX_BASIC_STATS, &stx);
	DO(access, "file", R_OK | W_OK);
	DO(access, "absent", F_OK);
	DO_NR(SYS_faccessat2, AT_FDCWD, (long)"link", R_OK,
	      AT_SYMLINK_NOFOLLOW);
	DO(statfs, ".", &fs);
	note("f_type", fs.f_type);
	DO(fstatfs, fd, &fs);
	note("f_bsize", fs.f_bsize);
	close(fd);
}

static void names(void)
{
	char target[100] = "";

	close(make_file("a", 10));
	DO(rename, "a", "b");
	DO(rename, "a", "c");
	DO(link, "b", "c");
	DO(link, "b", "c");
	DO(symlink, "b", "s");
	DO(symlink, "b", "s");
	DO(readlink, "s", target, sizeof(target));
	note_bytes("target", target, sizeof(target));
	DO(readlink, "b", target, sizeof(target));
	DO(mkdir, "d", 0700);
	DO(mkdir, "d", 0700);
	DO(mkdirat, AT_FDCWD, "d/e", 0700);
	DO(rmdir, "d");
	DO(unlinkat, AT_FDCWD, "d/e", AT_REMOVEDIR);
	DO(rename, "b", "d/b");
	DO(renameat2, AT_FDCWD, "c", AT_FDCWD, "d/b", 1 /* NOREPLACE */);
	DO(renameat, AT_FDCWD, "c", AT_FDCWD, "d/b");
	DO(unlink, "d");
	DO(unlink, "absent");
	DO(unlink, "d/b");
	DO(rmdir, "d");
	DO(mknod, "fifo", S_IFIFO | 0600, 0);
	DO(unlink, "fifo");
	DO(unlink, "s");
}

static void attributes(void)
{
	struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	int fd = make_file("file", 10);
	char value[20] = "";
	struct stat st;

	DO(chmod, "file", 0604);
	DO(fchmod, fd, 0640);
	DO_NR(SYS_fchmodat, AT_FDCWD, (long)"absent", 0600);
	DO(chown, "file", getuid(), getgid());
	DO(fchown, fd, (uid_t)-1, (gid_t)-1);
	DO(lchown, "absent", 0, 0);
	DO(utimensat, AT_FDCWD, "file", times, 0);
	note("fstat", fstat(fd, &st));
	note("mtime", st.st_mtim.tv_sec);
	note("mode", st.st_mode);
	DO(futimens, fd, times);
	DO(setxattr, "file", "user.x", "abc", 3, 0);
	DO(getxattr, "file", "user.x", value, sizeof(value));
	DO(fgetxattr, fd, "user.absent", value, sizeof(value));
	DO(listxattr, "file", value, sizeof(value));
	DO(removexattr, "file", "user.x");
	close(fd);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void directories(void)
{
	char buf[2000], name[20], *found[200];
	unsigned int nr = 0;
	int64_t len;
	int fd;

	DO(mkdir, "many", 0700);
	for (int i = 0; i < 150; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		close(make_file(name, 0));
	}
	fd = (int)DO_NEW(open, "many", O_RDONLY | O_DIRECTORY, 0);
	while ((len = EITHER(getdents64, fd, buf, sizeof(buf))) > 0) {
		for (int64_t at = 0; at < len;) {
			struct dirent64 *entry = (void *)(buf + at);

			CHECK(nr < ARRAY_SIZE(found));
			found[nr++] = strdup(entry->d_name);
			at += entry->d_reclen;
		}
	}
	note("getdents64", len);
	note("entries", nr);
	qsort(found, nr, sizeof(found[0]), by_name);
	for (unsigned int i = 0; i < nr; i++) {
		note_bytes("name", found[i], strlen(found[i]));
		free(found[i]);
	}
	DO(lseek, fd, 0, SEEK_SET);
	DO(getdents64, fd, buf, 1); /* too small for an entry */
	DO(read, fd, buf, sizeof(buf));
	DO(fchdir, fd);
	DO(access, "149", F_OK);
	DO(chdir, "..");
	DO(chdir, "absent");
	note("access", access("many", F_OK));
	DO_NR(SYS_getcwd, (long)buf, 1);
	note("getcwd",
	     either_nr(SYS_getcwd, (long[6]){ (long)buf, sizeof(buf) }) > 0);
	DO(close, fd);
}

/* Many files open, written and read at once: nothing gets mixed up. */
static void many_files(void)
{
	enum {
		NR = 200,
		SIZE = 5000
	};
	static uint8_t out[NR][SIZE], in[NR][SIZE];
	static struct op ops[NR];
	int fds[NR];
	char name[20];

	for (int i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		fds[i] = make_file(name, 0);
		fill(out[i], (uint64_t)i * 1000003, SIZE);
		POST(pwrite, &ops[i], fds[i], out[i], SIZE, i);
	}
	RUN_UNTIL(nr_ops_done, NR);
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(ops[i].ev.ret, SIZE);
		POST(pread, &ops[i], fds[i], in[i], SIZE, i);
	}
	RUN_UNTIL(nr_ops_done, 2 * NR);
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(ops[i].ev.ret, SIZE);
		CHECK(!memcmp(in[i], out[i], SIZE));
		POST(close, &ops[i], fds[i]);
	}
	RUN_UNTIL(nr_ops_done, 3 * NR);
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(ops[i].ev.ret, 0);
		CHECK_EQ(fcntl(fds[i], F_GETFD), -1);
	}
}

/* Files in memory refuse RWF_NOWAIT; each read by a thread is for nothing. */
static void memory_file(void)
{
	enum {
		NR = 40,
		SIZE = 100
	};
	static unsigned char out[SIZE], in[NR][SIZE];
	static struct op ops[NR];
	unsigned int before;
	int fd = memfd_create("file", 0);

	if (strcmp(engine, "poll"))
		skip("of what engine poll makes itself");
	fill(out, 1, SIZE);
	CHECK_EQ(write(fd, out, SIZE), SIZE);
	CHECK_EQ(CALL(post, SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
	before = nr_tasks();
	for (int i = 0; i < NR; i++)
		POST(pread, &ops[i], fd, in[i], SIZE, 0);
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(WAIT(&ops[i]), SIZE);
		CHECK(!memcmp(in[i], out, SIZE));
	}
	CHECK_IN(nr_tasks(), 1, before + 1); /* who interrupts what lasts */
	CHECK_EQ(lseek(fd, 10, SEEK_SET), 10);
	CHECK_EQ(CALL(read, fd, in[0], SIZE), SIZE - 10);
	CHECK(!memcmp(in[0], out + 10, SIZE - 10));
	close(fd);
}

static const struct test tests[] = {
	{ "read_write", read_write, TEST_BOTH },
	{ "modes", modes, TEST_BOTH },
	{ "vectors", vectors, TEST_BOTH },
	{ "sizes", sizes, TEST_BOTH },
	{ "open_flags", open_flags, TEST_BOTH },
	{ "open_variants", open_variants, TEST_BOTH },
	{ "stats", stats, TEST_BOTH },
	{ "names", names, TEST_BOTH },
	{ "attributes", attributes, TEST_BOTH },
	{ "directories", directories, TEST_BOTH },
	{ "many_files", many_files, 0 },
	{ "memory_file", memory_file, 0 },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
