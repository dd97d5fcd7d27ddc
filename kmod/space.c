// SPDX-License-Identifier: GPL-2.0-only
/* Lists of buffers; see space.h. */
#include "space.h"

#include <linux/net.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <net/sock.h>

#define MAX_LOOKED_AT 64
/* A write of so much to a pipe that can be written at all does not block. */
#define PIPE_ATOMIC 4096u
/* What the kernel's own structures may take, beside as much as the data. */
#define OVERHEAD 8192

struct list {
	const struct iovec __user *vec;
	unsigned long nr;
};

static bool find(const struct fxk_call *call, struct list *list)
{
	struct user_msghdr header;

	if (call->nr == __NR_writev) {
		*list = (struct list){ (void __user *)call->regs.si,
				       call->regs.dx };
		return true;
	}
	if (copy_from_user(&header, (void __user *)call->regs.si,
			   sizeof(header)))
		return false;
	*list = (struct list){ header.msg_iov, header.msg_iovlen };
	return true;
}

/* Bytes; -1: too many buffers to tell, or none that could be read. */
static s64 total(const struct fxk_call *call)
{
	struct iovec one;
	struct list list;
	s64 sum = 0;

	if (call->nr == __NR_sendfile)
		return min_t(u64, call->regs.r10, INT_MAX);
	if (!find(call, &list) || list.nr > MAX_LOOKED_AT)
		return -1;
	for (unsigned long i = 0; i < list.nr; i++) {
		if (copy_from_user(&one, list.vec + i, sizeof(one)) ||
		    one.iov_len > INT_MAX)
			return -1;
		sum += one.iov_len;
	}
	return sum;
}

bool fxk_fits_socket(const struct fxk_call *call, struct socket *sock)
{
	struct sock *sk = sock->sk;
	s64 bytes, used;

	if (sk->sk_type != SOCK_STREAM)
		return call->nr != __NR_sendfile;
	bytes = total(call);
	used = max_t(s64, READ_ONCE(sk->sk_wmem_queued), sk_wmem_alloc_get(sk));
	return bytes >= 0 &&
	       2 * bytes + OVERHEAD <= READ_ONCE(sk->sk_sndbuf) - used;
}

bool fxk_fits_pipe(const struct fxk_call *call)
{
	s64 bytes = total(call);

	return bytes >= 0 && bytes <= PIPE_ATOMIC;
}

bool fxk_more_than(const struct fxk_call *call, s64 bytes)
{
	return total(call) > bytes;
}

s64 fxk_write_rest(const struct fxk_call *call)
{
	struct file *file = call->file ? get_file(call->file) :
					 fget(call->regs.di);
	struct iovec fast[UIO_FASTIOV], *iov = fast;
	struct iov_iter iter;
	struct list list;
	loff_t pos = 0;
	s64 ret;

	if (!file)
		return -EBADF;
	ret = -EFAULT;
	if (!find(call, &list))
		goto put;
	ret = import_iovec(WRITE, list.vec, list.nr, ARRAY_SIZE(fast), &iov,
			   &iter);
	if (ret < 0)
		goto put;
	iov_iter_advance(&iter, call->done);
	ret = vfs_iter_write(file, &iter, &pos, 0);
	kfree(iov);
put:
	fput(file);
	return ret;
}
