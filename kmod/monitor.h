/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reference monitor: every entry passes it before it is dispatched.
 * (Design: nothing may be possible through a page that is not possible
 * through the call itself.)
 *
 *  - The number is in the list of calls (calls.c), bounded against
 *    speculation, too.
 *  - The thread that carries it out is one whose calls nobody watches or
 *    filters at the system call entry: fxk_watched().
 *  - It acts as itself; a lent thread acts for others, so its credentials must
 *    be theirs: fxk_same_cred().
 *
 * Everything else (permissions, limits, security modules, namespaces) is
 * asked by the call itself, of the thread that runs it.
 */
#ifndef FXK_MONITOR_H
#define FXK_MONITOR_H

#include "fxk.h"

#include <linux/nospec.h>
#include <linux/thread_info.h>

extern unsigned long fxk_watch_mask;

/* Can be set at any time, by another thread: asked for every entry. */
static inline bool fxk_watched(void)
{
	return READ_ONCE(current_thread_info()->syscall_work) &
	       READ_ONCE(fxk_watch_mask);
}

/* What the list says of a number. */
static inline u16 fxk_call_of(u32 nr)
{
	if (nr >= FXK_NR_ROWS)
		return FXK_ABSENT;
	return fxk_calls[array_index_nospec(nr, FXK_NR_ROWS)];
}

/* May the calling thread use this set at all? 0, -EPERM, -EACCES. */
int fxk_monitor_enter(const struct fxk_ctx *ctx);

/* Would a call by one of them be judged as by the other? */
bool fxk_same_cred(const struct cred *a, const struct cred *b);

#endif /* FXK_MONITOR_H */
