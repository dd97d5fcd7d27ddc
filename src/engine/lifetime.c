/* SPDX-License-Identifier: MIT */
/*
 * What system calls do to descriptors: which ones make a new file stand
 * behind a number, and of what kind it is. The records are engine/park.c's.
 */
#include "engine/hold.h"
#include "engine/park.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

void fx_park_before(struct fx_park *park, const struct fx_call_desc *desc,
		    const struct flexsc_entry *call)
{
	/* Others that close may fail; the owner looked at them beforehand. */
	if (call->nr == SYS_close)
		fx_park_reset(park, (int)call->args[desc->fd_arg],
			      FX_KIND_UNKNOWN, false);
}

/* Of a call that succeeded: its memory can be read. */
static uint64_t open_flags(const struct flexsc_entry *call)
{
	const struct open_how *how = (void *)(uintptr_t)call->args[2];

	return call->nr == SYS_openat2 ? how->flags :
	       call->nr == SYS_openat  ? call->args[2] :
					 call->args[1];
}

void fx_park_after(struct fx_park *park, const struct fx_call_desc *desc,
		   const struct flexsc_entry *call, int64_t ret)
{
	enum fx_kind kind = FX_KIND_UNKNOWN;
	uint64_t flags;

	if (!(desc->flags & FX_CALL_NEWFD) || ret < 0)
		return;
	if (call->nr == SYS_dup2 && call->args[0] == call->args[1])
		return; /* nothing new */
	if (park->keeps && ret < FX_HOLD_FDS)
		fx_hold_renew(fx_hold_word((int)ret));
	switch (call->nr) {
	case SYS_open:
	case SYS_openat:
	case SYS_openat2:
		flags = open_flags(call);
		if (flags & O_DIRECT)
			break; /* to be looked at */
		kind = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ?
			       FX_KIND_REGULAR :
			       FX_KIND_FILE;
		break;
	case SYS_creat:
		kind = FX_KIND_FILE;
		break;
	case SYS_memfd_create:
		kind = FX_KIND_REGULAR;
		break;
	case SYS_accept:
	case SYS_accept4:
		fx_park_accepted(park, (int)call->args[0], (int)ret);
		return;
	case SYS_socket:
		kind = FX_KIND_SOCKET;
		break;
	default:
		break;
	}
	fx_park_reset(park, (int)ret, kind, call->nr == SYS_socket);
}
