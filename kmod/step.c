// SPDX-License-Identifier: GPL-2.0-only
/*
 * One call after the other. Where it may run follows from its class; calls on
 * descriptors are desc.c's.
 */
#include "step.h"

#include "arm.h"
#include "call.h"
#include "cancel.h"
#include "chain.h"
#include "close.h"
#include "ctx.h"
#include "desc.h"
#include "dispatch.h"
#include "monitor.h"
#include "stats.h"
#include "thread.h"

#include <linux/fcntl.h>
#include <linux/futex.h>
#include <uapi/linux/wait.h>

enum fxk_step fxk_keep(struct fxk_runner *r, struct fxk_call *call, s64 *ret)
{
	struct fxk_call *away = fxk_call_away(r, call);

	if (IS_ERR(away)) {
		*ret = PTR_ERR(away);
		return FXK_DONE;
	}
	fxk_put_back(away);
	return FXK_SIGNAL;
}

enum fxk_step fxk_to_thread(struct fxk_runner *r, struct fxk_call *call,
			    s64 *ret)
{
	struct fxk_call *away;

	call->thread = true;
	if (r->may_block)
		return fxk_block(r, call, ret);
	away = fxk_call_away(r, call);
	if (IS_ERR(away)) {
		*ret = PTR_ERR(away);
		return FXK_DONE;
	}
	fxk_queue(r->ctx, away);
	return FXK_GONE;
}

bool fxk_interrupted(struct fxk_runner *r, struct fxk_call *call, s64 *ret,
		     enum fxk_step *step)
{
	if (fxk_cancel_wanted(r->ctx, call->index)) {
		*step = fxk_end(call, ret);
		return true;
	}
	if (test_thread_flag(TIF_SIGPENDING)) {
		r->error = -EINTR;
		*step = fxk_keep(r, call, ret);
		return true;
	}
	if (READ_ONCE(r->hurried)) {
		WRITE_ONCE(r->hurried, false);
		*step = fxk_to_thread(r, call, ret);
		return true;
	}
	return false;
}

/* What is expected to end soon: here, and if it does not, in a thread. */
static enum fxk_step soon(struct fxk_runner *r, struct fxk_call *call, u16 what,
			  s64 *ret)
{
	enum fxk_step step;
	int closed = -1;

	if (call->thread)
		return fxk_to_thread(r, call, ret);
	if (what & FXK_CLOSES)
		closed = fxk_close_begin(r, call);
	fxk_quiet(r, what);
	do {
		*ret = fxk_dispatch(r, &call->regs, call->nr);
		if (closed >= 0)
			fxk_close_end(r, closed);
		if (likely(!fxk_is_restart(*ret) && !fxk_hurried(r, *ret)))
			return FXK_DONE;
	} while (!fxk_interrupted(r, call, ret, &step));
	return step;
}

/* Calls that may wait for ever, but not with these arguments. */
static bool ends_soon(const struct fxk_call *call)
{
	const struct pt_regs *regs = &call->regs;

	switch (call->nr) {
	case __NR_fcntl:
		return regs->si != F_SETLKW && regs->si != F_OFD_SETLKW;
	case __NR_futex:
		switch (regs->si & FUTEX_CMD_MASK) {
		case FUTEX_WAKE:
		case FUTEX_REQUEUE:
		case FUTEX_CMP_REQUEUE:
		case FUTEX_WAKE_OP:
		case FUTEX_WAKE_BITSET:
			return true;
		default:
			return false;
		}
	case __NR_poll:
		return !(int)regs->dx;
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
		return !(int)regs->r10;
	case __NR_wait4:
		return regs->dx & WNOHANG;
	default:
		return false;
	}
}

enum fxk_step fxk_step(struct fxk_runner *r, struct fxk_call **at, s64 *ret)
{
	struct fxk_call *call = *at;
	u16 what = fxk_call_of(call->nr);

	if (READ_ONCE(call->cancelled) ||
	    (call->away && fxk_cancel_wanted(r->ctx, call->index)))
		return fxk_end(call, ret);
	if (fxk_watched()) {
		r->error = -EACCES;
		return fxk_keep(r, call, ret);
	}
	switch ((enum fxk_class)(what & FXK_CLASS)) {
	case FXK_NEVER:
	case FXK_DISK:
		return soon(r, call, what, ret);
	case FXK_FD:
		if (call->thread)
			return fxk_to_thread(r, call, ret);
		fxk_quiet(r, what);
		return fxk_fd(r, at, what & FXK_OUT, ret);
	case FXK_WAIT:
		if (call->nr == __NR_splice && !call->thread)
			return fxk_fd(r, at, false, ret);
		if (ends_soon(call))
			return soon(r, call, what, ret);
		return fxk_to_thread(r, call, ret);
	case FXK_NONE:
		*ret = -EOPNOTSUPP;
		break;
	default:
		*ret = -ENOSYS;
	}
	fxk_count(r->ctx, refused);
	return FXK_DONE;
}

/* Complete it, after telling those behind. Return: the rest of its chain. */
static struct fxk_call *over(struct fxk_runner *r, struct fxk_call *call,
			     s64 ret)
{
	struct fxk_call *next = call->next;
	u32 index = call->index;

	fxk_chain_tell(call, ret);
	if (call->cancelled || ret == -ECANCELED)
		fxk_count(r->ctx, cancelled);
	/* First: once it is complete the owner may use the entry again. */
	if (call->heap)
		fxk_call_put(r, call);
	WRITE_ONCE(r->current_entry, FXK_BETWEEN);
	fxk_complete(r, index, ret);
	return next;
}

/* It was not submitted: no completion. */
static struct fxk_call *skip(struct fxk_runner *r, struct fxk_call *call)
{
	struct fxk_call *next = call->next;

	fxk_count(r->ctx, dropped);
	if (call->heap)
		fxk_call_put(r, call);
	return next;
}

void fxk_go(struct fxk_runner *r, struct fxk_call *call, bool own)
{
	s64 ret;

	for (; call; own = true) {
		enum fxk_own owned = FXK_OWN;

		WRITE_ONCE(r->current_entry, call->index);
		if (own)
			owned = fxk_own(fxk_entry(r->ctx, call->index));
		if (owned == FXK_OWN_NOT) {
			call = skip(r, call);
			continue;
		}
		ret = -ECANCELED;
		if (owned == FXK_OWN && !fxk_chain_dead(call) &&
		    fxk_step(r, &call, &ret) != FXK_DONE)
			break;
		call = over(r, call, ret);
	}
	WRITE_ONCE(r->current_entry, FXK_NO_ENTRY);
}
