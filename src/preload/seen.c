/* SPDX-License-Identifier: MIT */
/* Whose call it is; see preload/seen.h. */
#include "preload/seen.h"

#include "arch/arch.h"
#include "call/seen.h"
#include "threads/thread.h"

#include <errno.h>

/* As the program knows it; a child of vfork() runs as its parent's thread. */
static int who(void)
{
	const struct fx_thread *me = fx_thread_self();

	return me && !me->vforked ?
		       me->tid :
		       (int)fx_arch_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

uint64_t fx_seen_enter(unsigned nr, const long args[6])
{
	return fx_seen_begin(nr, who(), 0, (const uint64_t *)args, 0);
}

void fx_seen_leave(unsigned nr, const long args[6], uint64_t begun_ns, long ret)
{
	fx_seen_end(nr, who(), 0, (const uint64_t *)args, begun_ns,
		    ret == -1 ? -errno : ret);
}

void fx_seen_last(int status)
{
	fx_seen_exit(SYS_exit_group, who(), status);
}
