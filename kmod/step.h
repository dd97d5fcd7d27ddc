/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bringing a call as far as it gets in this runner, and what follows when it
 * is over.
 */
#ifndef FXK_STEP_H
#define FXK_STEP_H

#include "ring.h"

/* The first eight bytes of an entry, read as one. */
static inline u16 fxk_head_nr(u64 head)
{
	return head >> 32;
}

static inline u8 fxk_head_flags(u64 head)
{
	return head >> 56;
}

/* @what: of the list of calls. A call looks at no more than it has. */
static __always_inline void fxk_arguments(struct pt_regs *regs,
					  const struct flexsc_entry *entry,
					  u16 what)
{
	if (!(what & FXK_FEW))
		return;
	regs->di = READ_ONCE(entry->args[0]);
	regs->si = READ_ONCE(entry->args[1]);
	regs->dx = READ_ONCE(entry->args[2]);
	if (!(what & FXK_MANY))
		return;
	regs->r10 = READ_ONCE(entry->args[3]);
	regs->r8 = READ_ONCE(entry->args[4]);
	regs->r9 = READ_ONCE(entry->args[5]);
}

enum fxk_own {
	FXK_OWN, /* SUBMITTED, is BUSY now */
	FXK_OWN_CANCELLED, /* CANCEL: complete it unexecuted */
	FXK_OWN_NOT, /* was not submitted: drop it */
};

static inline enum fxk_own fxk_own(struct flexsc_entry *entry)
{
	u32 status = cmpxchg(&entry->status, FLEXSC_SUBMITTED, FLEXSC_BUSY);

	if (likely(status == FLEXSC_SUBMITTED))
		return FXK_OWN;
	return status == FLEXSC_CANCEL ? FXK_OWN_CANCELLED : FXK_OWN_NOT;
}

/**
 * fxk_step - carry a call out, or leave it where it can wait
 * @call: owned, and held by this runner; perhaps r->now, which may have moved
 *
 * Return: FXK_DONE: *ret is the result. Else the call is not the caller's any
 * more, and r->error may say that the runner is to stop.
 */
enum fxk_step fxk_step(struct fxk_runner *r, struct fxk_call **call, s64 *ret);

/* The same, and then the rest of its chain. @own: it is still SUBMITTED. */
void fxk_go(struct fxk_runner *r, struct fxk_call *call, bool own);

/* For those that fxk_step() leaves the work to: */

/* Only a thread that may block can carry it out: do so, or queue it. */
enum fxk_step fxk_to_thread(struct fxk_runner *r, struct fxk_call *call,
			    s64 *ret);

/* The next runner goes on with it. */
enum fxk_step fxk_keep(struct fxk_runner *r, struct fxk_call *call, s64 *ret);

/* It ends by request: with what was done so far. */
static inline enum fxk_step fxk_end(struct fxk_call *call, s64 *ret)
{
	*ret = call->done > 0 ? call->done : -ECANCELED;
	return FXK_DONE;
}

/**
 * fxk_interrupted - a call came back with a restart code, or was hurried
 *
 * Return: false: make it again, here; true: *step is what became of it.
 */
bool fxk_interrupted(struct fxk_runner *r, struct fxk_call *call, s64 *ret,
		     enum fxk_step *step);

/* Did the watch interrupt it, whatever it made of that? */
static inline bool fxk_hurried(const struct fxk_runner *r, s64 ret)
{
	return unlikely(ret == -EINTR) && READ_ONCE(r->hurried);
}

#endif /* FXK_STEP_H */
