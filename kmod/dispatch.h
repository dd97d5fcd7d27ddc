/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call itself, as the calling thread's own; and what surrounds it in a
 * real system call that must be seen to here: deferred work, signals raised
 * by the call, and codes that ask for the call to be made again.
 */
#ifndef FXK_DISPATCH_H
#define FXK_DISPATCH_H

#include "fxk.h"
#include "sock.h"
#include "symbols.h"

/* Codes that no call may end with: it is to be made again, or was interrupted. */
static inline bool fxk_is_restart(s64 ret)
{
	return unlikely(ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK &&
			ret != -ENOIOCTLCMD);
}

/*
 * The flag may be set after the work that it tells of was done: then it
 * alone would interrupt whatever is to wait, for ever.
 */
static inline bool fxk_has_work(void)
{
	return READ_ONCE(current->task_works) ||
	       test_thread_flag(TIF_NOTIFY_SIGNAL);
}

/* Deferred work of this task, and requests to interrupt it. */
void fxk_do_work(struct fxk_runner *r);

/*
 * SIGPIPE and SIGXFSZ are not raised by posted calls: from the first call on
 * that they can come of they are blocked, and what came of it is taken away
 * when the runner ends, or before somebody could see it.
 */
void fxk_quiet_begin(struct fxk_runner *r);
void fxk_quiet_end(struct fxk_runner *r);

static inline void fxk_quiet(struct fxk_runner *r, u16 what)
{
	if (what & FXK_LOUD && unlikely(!r->quiet))
		fxk_quiet_begin(r);
}

/**
 * fxk_dispatch - make a call
 * @regs: its arguments
 * @nr:   in the list of calls; the monitor was asked
 *
 * Order: what the call deferred is done when this returns.
 */
static __always_inline s64 fxk_dispatch(struct fxk_runner *r,
					const struct pt_regs *regs,
					unsigned int nr)
{
	s64 ret;

	WRITE_ONCE(r->seq, r->seq + 1);
	ret = static_call(fxk_x64_sys_call)(regs, nr);
	if (unlikely(fxk_has_work()))
		fxk_do_work(r);
	return ret;
}

/* The same for fxk_is_socket_call(); @sock: of its descriptor. */
static inline s64 fxk_dispatch_socket(struct fxk_runner *r,
				      const struct fxk_call *call,
				      struct socket *sock)
{
	s64 ret;

	WRITE_ONCE(r->seq, r->seq + 1);
	ret = fxk_socket_call(call, sock);
	if (unlikely(fxk_has_work()))
		fxk_do_work(r);
	return ret;
}

#endif /* FXK_DISPATCH_H */
