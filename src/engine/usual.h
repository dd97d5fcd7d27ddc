/* SPDX-License-Identifier: MIT */
/*
 * The usual transfers: one buffer in or out of a socket, a file into one.
 * They are most of what a server does, so engine/try.c makes them without
 * the detours of engine/attempt.c, which takes all that is not usual.
 */
#ifndef FX_ENGINE_USUAL_H
#define FX_ENGINE_USUAL_H

#include "arch/arch.h"
#include "engine/quiet.h"

#include <sys/socket.h>
#include <sys/syscall.h>

/**
 * fx_usual - could this be done so, if its descriptor is known as a socket?
 * @credit: bytes of send space known to be free
 */
static inline bool fx_usual(const struct flexsc_entry *call, uint32_t credit)
{
	switch (call->nr) {
	case SYS_read:
	case SYS_write:
		return !call->ret && call->args[2];
	case SYS_recvfrom:
	case SYS_sendto:
		return !call->ret && call->args[2] && !call->args[4] &&
		       !((int)call->args[3] &
			 ~(MSG_NOSIGNAL | MSG_MORE | MSG_DONTWAIT));
	case SYS_sendfile:
		return !call->ret && call->args[3] <= credit &&
		       fx_call_pipe_ignored();
	default:
		return false;
	}
}

/* How much it asks for. */
static inline uint64_t fx_usual_size(const struct flexsc_entry *call)
{
	return call->args[call->nr == SYS_sendfile ? 3 : 2];
}

/* The call: its result, or -EAGAIN where it would wait. */
static inline long fx_usual_call(const struct flexsc_entry *call, bool out)
{
	const __u64 *a = call->args;
	long nr = SYS_sendfile, flags = (long)a[3];

	if (call->nr != SYS_sendfile) {
		nr = out ? SYS_sendto : SYS_recvfrom;
		flags = MSG_DONTWAIT | (out ? MSG_NOSIGNAL : 0);
		if (call->nr == nr)
			flags |= (int)a[3];
	}
	return fx_arch_syscall(nr, (long)a[0], (long)a[1], (long)a[2], flags, 0,
			       0);
}

#endif /* FX_ENGINE_USUAL_H */
