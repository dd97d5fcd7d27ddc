/* SPDX-License-Identifier: MIT */
/* Arguments moved on by what was done; see engine/rest.h. */
#include "engine/rest.h"

#include <sys/syscall.h>

static void move_list(struct fx_rest *rest, uint64_t done)
{
	size_t n;

	fx_iovec_from_list(&rest->list,
			   (void *)(uintptr_t)rest->call.args[1],
			   rest->call.args[2]);
	rest->call.args[1] =
		(uint64_t)(uintptr_t)fx_iovec_from(&rest->list, done, &n);
	rest->call.args[2] = n;
}

const struct flexsc_entry *fx_rest_of(struct fx_rest *rest,
				      const struct flexsc_entry *call)
{
	uint64_t done = (uint64_t)call->ret;

	rest->call = fx_call_copy(call);
	switch (call->nr) {
	case SYS_pread64:
	case SYS_pwrite64:
		rest->call.args[3] += done;
		/* fall through */
	case SYS_read:
	case SYS_write:
	case SYS_recvfrom:
	case SYS_sendto:
		rest->call.args[1] += done;
		rest->call.args[2] -= done;
		break;
	case SYS_preadv:
	case SYS_preadv2:
	case SYS_pwritev:
	case SYS_pwritev2:
		/* offset -1 of the last ones is the file position, which has moved */
		if ((int64_t)rest->call.args[3] >= 0)
			rest->call.args[3] += done;
		/* fall through */
	case SYS_readv:
	case SYS_writev:
		move_list(rest, done);
		break;
	case SYS_sendfile:
		rest->call.args[3] -= done; /* the kernel moved the offset */
		break;
	case SYS_connect: /* 1 is "in progress", not a count */
	default:
		break;
	}
	return &rest->call;
}

bool fx_rest_more(const struct flexsc_entry *call, int64_t done)
{
	struct fx_iovec v;

	switch (call->nr) {
	case SYS_readv:
	case SYS_writev:
	case SYS_preadv:
	case SYS_pwritev:
	case SYS_preadv2:
	case SYS_pwritev2:
		fx_iovec_from_list(&v, (void *)(uintptr_t)call->args[1],
				   call->args[2]);
		return (uint64_t)done < fx_iovec_total(&v);
	default:
		return false;
	}
}
