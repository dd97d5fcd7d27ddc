/* SPDX-License-Identifier: MIT */
/* Waiting before a splice instead of in it; see engine/splice.h. */
#include "engine/splice.h"

#include "arch/arch.h"
#include "arch/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

/* Somebody else was faster so many times: then as it was asked for. */
#define TRIES 1000
#define FIRST_PRIVATE 512 /* as in engine/hold.c */

static long fcntl_of(uint64_t fd, int command)
{
	return fx_arch_syscall(SYS_fcntl, (int)fd, command,
			       command == F_DUPFD_CLOEXEC ? FIRST_PRIVATE : 0,
			       0, 0, 0);
}

/* The socket's own limit would be lost by a wait outside of it. */
static bool timed(uint64_t fd)
{
	struct timeval limit = { 0, 0 };
	uint32_t size = sizeof(limit);

	return fx_arch_syscall(SYS_getsockopt, (int)fd, SOL_SOCKET, SO_RCVTIMEO,
			       (long)&limit, (long)&size, 0) == 0 &&
	       (limit.tv_sec || limit.tv_usec);
}

bool fx_splice_locks(const struct flexsc_entry *call)
{
	uint64_t in = call->args[0], out = call->args[2];

	if (call->args[5] & SPLICE_F_NONBLOCK)
		return false;
	if (fcntl_of(in, F_GETPIPE_SZ) >= 0 || fcntl_of(out, F_GETPIPE_SZ) < 0)
		return false;
	if ((fcntl_of(in, F_GETFL) | fcntl_of(out, F_GETFL)) & O_NONBLOCK)
		return false;
	return !timed(in);
}

static int64_t wait_and_splice(const uint64_t *args,
			       int64_t (*call)(void *arg, unsigned int nr,
					       const uint64_t *args),
			       void *arg)
{
	struct pollfd in = { .fd = (int)args[0], .events = POLLIN };
	struct pollfd out = { .fd = (int)args[2], .events = POLLOUT };
	uint64_t in_args[6] = { (uint64_t)(uintptr_t)&in, 1, UINT64_MAX };
	uint64_t out_args[6] = { (uint64_t)(uintptr_t)&out, 1, UINT64_MAX };
	uint64_t now[6] = { args[0], args[1], args[2],
			    args[3], args[4], args[5] | SPLICE_F_NONBLOCK };

	for (unsigned i = 0; i < TRIES; i++) {
		int64_t ret = call(arg, SYS_poll, in_args);

		if (ret > 0)
			ret = call(arg, SYS_poll, out_args);
		if (ret > 0)
			ret = call(arg, SYS_splice, now);
		if (ret != -EAGAIN)
			return ret;
	}
	return call(arg, SYS_splice, args);
}

/* No regular file waits; to close a duplicate would give its locks up. */
static bool is_regular(uint64_t fd)
{
	struct stat st;

	return fstat((int)fd, &st) == 0 && S_ISREG(st.st_mode);
}

int64_t fx_splice_calls(const uint64_t *args,
			int64_t (*call)(void *arg, unsigned int nr,
					const uint64_t *args),
			void *arg)
{
	uint64_t kept[6];
	long in, out;
	int64_t ret;

	memcpy(kept, args, sizeof(kept));
	in = is_regular(args[0]) ? -EINVAL : fcntl_of(args[0], F_DUPFD_CLOEXEC);
	out = fcntl_of(args[2], F_DUPFD_CLOEXEC);
	/* With none left, by the numbers themselves. */
	if (in >= 0)
		kept[0] = (uint64_t)in;
	if (out >= 0)
		kept[2] = (uint64_t)out;
	ret = wait_and_splice(kept, call, arg);
	if (in >= 0)
		fx_close(in);
	if (out >= 0)
		fx_close(out);
	return ret;
}
