/* SPDX-License-Identifier: MIT */
/*
 * The one place that knows the layout of io_uring operations: a table says
 * where each argument of a call goes and what it must look like there. The
 * column uring of call/syscalls.tbl names the same operations; the unit test
 * compares the two. Nothing is submitted here.
 */
#include "engine/uring_prep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* What a read or write moves at most (MAX_RW_COUNT of the kernel). */
#define MOST_BYTES 0x7ffff000u

/* Operations and calls younger than the headers of Debian 12. */
enum {
	OP_WAITID = 50,
	OP_FUTEX_WAIT = 51,
	OP_FUTEX_WAKE = 52,
	OP_FUTEX_WAITV = 53,
	OP_FTRUNCATE = 55,
	OP_BIND = 56,
	OP_LISTEN = 57,
};

enum {
	NR_FUTEX_WAITV = 449,
	NR_FUTEX_WAKE = 454,
	NR_FUTEX_WAIT = 455,
};

/* Where an argument goes, and what it must be to fit. */
enum place {
	NOWHERE, /* the kernel would not look at it */
	NIL, /* must be 0 */
	FD,
	ADDR, /* a pointer or another 64-bit value, as it is */
	OFF,
	ADDR3,
	INT, /* an int, to len */
	OFF_INT, /* an int, to off */
	FLAGS,
	SPLICE_FLAGS, /* bit 31 means something else to io_uring */
	IN, /* splice_fd_in, which waitid uses too */
	BYTES, /* a length: cut where the call itself cuts it */
	SOME_BYTES, /* the same, not 0 */
	SIZE, /* a length that is not cut: must fit */
	VECS, /* a number of buffers */
	POSITION, /* must not be negative: -1 would be the file position */
	ANYWHERE, /* -1 is the file position in both worlds */
};

struct form {
	uint8_t op; /* 0 is IORING_OP_NOP: no operation */
	uint8_t to[6];
	bool cwd; /* paths start from the working directory */
	bool blocks; /* to be done by a thread of the kernel from the start */
	uint32_t len, flags;
	uint64_t addr, off;
};

#define EVERYWHERE UINT64_MAX
#define CWD (uint32_t) AT_FDCWD
/* A blocking send takes everything, and no signal is to be raised. */
#define SENDING (MSG_NOSIGNAL | MSG_WAITALL)

static const struct form forms[] = {
	[SYS_read] = { IORING_OP_READ, { FD, ADDR, BYTES }, .off = EVERYWHERE },
	[SYS_write] = { IORING_OP_WRITE,
			{ FD, ADDR, BYTES },
			.off = EVERYWHERE },
	[SYS_readv] = { IORING_OP_READV, { FD, ADDR, VECS }, .off = EVERYWHERE },
	[SYS_writev] = { IORING_OP_WRITEV,
			 { FD, ADDR, VECS },
			 .off = EVERYWHERE },
	[SYS_pread64] = { IORING_OP_READ, { FD, ADDR, BYTES, POSITION } },
	[SYS_pwrite64] = { IORING_OP_WRITE, { FD, ADDR, BYTES, POSITION } },
	[SYS_preadv] = { IORING_OP_READV,
			 { FD, ADDR, VECS, POSITION, NOWHERE } },
	[SYS_pwritev] = { IORING_OP_WRITEV,
			  { FD, ADDR, VECS, POSITION, NOWHERE } },
	[SYS_preadv2] = { IORING_OP_READV,
			  { FD, ADDR, VECS, ANYWHERE, NOWHERE, FLAGS } },
	[SYS_pwritev2] = { IORING_OP_WRITEV,
			   { FD, ADDR, VECS, ANYWHERE, NOWHERE, FLAGS } },
	[SYS_fsync] = { IORING_OP_FSYNC, { FD } },
	[SYS_fdatasync] = { IORING_OP_FSYNC,
			    { FD },
			    .flags = IORING_FSYNC_DATASYNC },
	[SYS_sync_file_range] = { IORING_OP_SYNC_FILE_RANGE,
				  { FD, OFF, SIZE, FLAGS } },
	[SYS_fallocate] = { IORING_OP_FALLOCATE, { FD, INT, OFF, ADDR } },
	[SYS_ftruncate] = { OP_FTRUNCATE, { FD, POSITION } },
	[SYS_fadvise64] = { IORING_OP_FADVISE, { FD, OFF, SIZE, FLAGS } },
	[SYS_madvise] = { IORING_OP_MADVISE, { ADDR, SIZE, FLAGS } },
	[SYS_splice] = { IORING_OP_SPLICE,
			 { IN, NIL, FD, NIL, SIZE, SPLICE_FLAGS },
			 .addr = EVERYWHERE,
			 .off = EVERYWHERE },
	[SYS_tee] = { IORING_OP_TEE, { IN, FD, SIZE, SPLICE_FLAGS } },

	/*
	 * Tried first, as io_uring usually does, an open is tried with
	 * O_NONBLOCK: a FIFO would not wait for its other end.
	 */
	[SYS_open] = { IORING_OP_OPENAT,
		       { ADDR, FLAGS, INT },
		       .cwd = true,
		       .blocks = true },
	[SYS_creat] = { IORING_OP_OPENAT,
			{ ADDR, INT },
			.cwd = true,
			.blocks = true,
			.flags = O_CREAT | O_WRONLY | O_TRUNC },
	[SYS_openat] = { IORING_OP_OPENAT,
			 { FD, ADDR, FLAGS, INT },
			 .blocks = true },
	[SYS_openat2] = { IORING_OP_OPENAT2,
			  { FD, ADDR, OFF, SIZE },
			  .blocks = true },
	[SYS_close] = { IORING_OP_CLOSE, { FD } },
	[SYS_statx] = { IORING_OP_STATX, { FD, ADDR, FLAGS, INT, OFF } },
	[SYS_mkdir] = { IORING_OP_MKDIRAT, { ADDR, INT }, .cwd = true },
	[SYS_mkdirat] = { IORING_OP_MKDIRAT, { FD, ADDR, INT } },
	[SYS_rmdir] = { IORING_OP_UNLINKAT,
			{ ADDR },
			.cwd = true,
			.flags = AT_REMOVEDIR },
	[SYS_unlink] = { IORING_OP_UNLINKAT, { ADDR }, .cwd = true },
	[SYS_unlinkat] = { IORING_OP_UNLINKAT, { FD, ADDR, FLAGS } },
	[SYS_rename] = { IORING_OP_RENAMEAT,
			 { ADDR, OFF },
			 .cwd = true,
			 .len = CWD },
	[SYS_renameat] = { IORING_OP_RENAMEAT, { FD, ADDR, INT, OFF } },
	[SYS_renameat2] = { IORING_OP_RENAMEAT, { FD, ADDR, INT, OFF, FLAGS } },
	[SYS_link] = { IORING_OP_LINKAT,
		       { ADDR, OFF },
		       .cwd = true,
		       .len = CWD },
	[SYS_linkat] = { IORING_OP_LINKAT, { FD, ADDR, INT, OFF, FLAGS } },
	[SYS_symlink] = { IORING_OP_SYMLINKAT, { ADDR, OFF }, .cwd = true },
	[SYS_symlinkat] = { IORING_OP_SYMLINKAT, { ADDR, FD, OFF } },
	[SYS_setxattr] = { IORING_OP_SETXATTR,
			   { ADDR3, ADDR, OFF, SIZE, FLAGS } },
	[SYS_fsetxattr] = { IORING_OP_FSETXATTR,
			    { FD, ADDR, OFF, SIZE, FLAGS } },
	[SYS_getxattr] = { IORING_OP_GETXATTR, { ADDR3, ADDR, OFF, SIZE } },
	[SYS_fgetxattr] = { IORING_OP_FGETXATTR, { FD, ADDR, OFF, SIZE } },

	[SYS_socket] = { IORING_OP_SOCKET, { FD, OFF_INT, INT } },
	[SYS_bind] = { OP_BIND, { FD, ADDR, OFF_INT } },
	[SYS_listen] = { OP_LISTEN, { FD, INT } },
	[SYS_connect] = { IORING_OP_CONNECT, { FD, ADDR, OFF_INT } },
	[SYS_accept] = { IORING_OP_ACCEPT, { FD, ADDR, OFF } },
	[SYS_accept4] = { IORING_OP_ACCEPT, { FD, ADDR, OFF, FLAGS } },
	[SYS_shutdown] = { IORING_OP_SHUTDOWN, { FD, INT } },
	[SYS_sendto] = { IORING_OP_SEND,
			 { FD, ADDR, BYTES, FLAGS, NIL, NOWHERE },
			 .flags = SENDING },
	[SYS_sendmsg] = { IORING_OP_SENDMSG,
			  { FD, ADDR, FLAGS },
			  .len = 1,
			  .flags = SENDING },
	[SYS_recvfrom] = { IORING_OP_RECV,
			   { FD, ADDR, SOME_BYTES, FLAGS, NIL, NOWHERE } },
	[SYS_recvmsg] = { IORING_OP_RECVMSG, { FD, ADDR, FLAGS }, .len = 1 },

	[SYS_epoll_ctl] = { IORING_OP_EPOLL_CTL, { FD, INT, OFF_INT, ADDR } },
	[SYS_waitid] = { OP_WAITID, { INT, FD, OFF, IN, NIL } },
	[NR_FUTEX_WAIT] = { OP_FUTEX_WAIT,
			    { ADDR, OFF, ADDR3, FD, NIL, NOWHERE } },
	[NR_FUTEX_WAITV] = { OP_FUTEX_WAITV, { ADDR, INT, NIL, NIL, NOWHERE } },
	[NR_FUTEX_WAKE] = { OP_FUTEX_WAKE, { ADDR, ADDR3, OFF_INT, FD } },
};

int fx_uring_probe(struct fx_uring_ops *ops, struct io_uring *ring)
{
	size_t size = sizeof(struct io_uring_probe) +
		      256 * sizeof(struct io_uring_probe_op);
	struct io_uring_probe *probe = calloc(1, size);
	int bad;

	ops->has = 0;
	if (!probe)
		return -ENOMEM;
	bad = io_uring_register_probe(ring, probe, 256);
	for (unsigned i = 0; !bad && i < probe->ops_len && i < 64; i++)
		if (probe->ops[i].flags & IO_URING_OP_SUPPORTED)
			ops->has |= UINT64_C(1) << probe->ops[i].op;
	free(probe);
	return bad;
}

/* Arguments that mean something else, or more, to the operation. */
static bool same_meaning(const struct flexsc_entry *call)
{
	const __u64 *a = call->args;

	switch (call->nr) {
	case SYS_preadv2:
	case SYS_pwritev2:
		/* A polled read is an error on a ring that does not poll. */
		return !(a[5] & RWF_HIPRI);
	case SYS_waitid:
		/* Children of a thread, and what O_NONBLOCK makes of it. */
		return !(a[3] & __WNOTHREAD) && (int)a[0] != P_PIDFD;
	case NR_FUTEX_WAITV:
		return (int)a[1] > 0;
	default:
		return true;
	}
}

/* Put one argument in its place; false if it does not fit. */
static bool place(struct io_uring_sqe *sqe, enum place to, uint64_t value)
{
	switch (to) {
	case NOWHERE:
		return true;
	case NIL:
		return value == 0;
	case FD:
		sqe->fd = (int32_t)value;
		return true;
	case ADDR:
		sqe->addr = value;
		return true;
	case OFF:
		sqe->off = value;
		return true;
	case ADDR3:
		sqe->addr3 = value;
		return true;
	case INT:
		sqe->len = (uint32_t)value;
		return true;
	case OFF_INT:
		sqe->off = (uint32_t)value;
		return true;
	case FLAGS:
		sqe->rw_flags |= (int)value;
		return true;
	case SPLICE_FLAGS:
		sqe->splice_flags = (uint32_t)value;
		return (int32_t)value >= 0;
	case IN:
		sqe->splice_fd_in = (int32_t)value;
		return true;
	case SOME_BYTES:
	case BYTES:
		sqe->len = value < MOST_BYTES ? (uint32_t)value : MOST_BYTES;
		return value || to == BYTES;
	case SIZE:
		sqe->len = (uint32_t)value;
		return value <= INT_MAX;
	case VECS:
		sqe->len = (uint32_t)value;
		return value <= IOV_MAX;
	case POSITION:
		sqe->off = value;
		return (int64_t)value >= 0;
	case ANYWHERE:
		sqe->off = value;
		return (int64_t)value >= -1;
	}
	return false;
}

bool fx_uring_prep(const struct fx_uring_ops *ops, struct io_uring_sqe *sqe,
		   const struct flexsc_entry *call)
{
	struct io_uring_sqe out;
	const struct form *form;

	if (call->nr >= FX_ARRAY_SIZE(forms))
		return false;
	form = &forms[call->nr];
	if (!form->op || !(ops->has >> form->op & 1) || !same_meaning(call))
		return false;
	memset(&out, 0, sizeof(out));
	out.opcode = form->op;
	out.flags = form->blocks ? IOSQE_ASYNC : 0;
	out.fd = form->cwd ? AT_FDCWD : 0;
	out.addr = form->addr;
	out.off = form->off;
	out.len = form->len;
	out.rw_flags = (int)form->flags;
	for (unsigned i = 0; i < 6; i++)
		if (!place(&out, form->to[i], call->args[i]))
			return false;
	*sqe = out;
	return true;
}
