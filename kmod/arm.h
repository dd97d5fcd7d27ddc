/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls that wait on the wait queues of their file, and hold no thread.
 * (The stated ideal of libflexsc-atc11.txt, 4.2: a call that would block does
 * not take a syscall thread with it.)
 */
#ifndef FXK_ARM_H
#define FXK_ARM_H

#include "fxk.h"

enum fxk_arm {
	FXK_ARM_GONE, /* armed: somebody else goes on with it */
	FXK_ARM_READY, /* became ready meanwhile: try again */
	FXK_ARM_THREAD, /* has more queues than a call has places */
};

/**
 * fxk_arm - wait until @file is ready for what the call waits for
 * @call: away; its events are set
 *
 * Context: process. Unless FXK_ARM_GONE, the call is still the caller's.
 */
enum fxk_arm fxk_arm(struct fxk_runner *r, struct fxk_call *call,
		     struct file *file);

/* Leave the wait queues. By who holds the call, ctx->lock not held. */
void fxk_disarm(struct fxk_call *call);

/* Under ctx->lock: an armed call leaves the lists of the armed, and its stay. */
void fxk_unlist(struct fxk_call *call);

/*
 * Under ctx->lock: what a call waits for may have come. Return: it is ready,
 * and fxk_tell_runner() is to follow; false: that is only noted.
 */
bool fxk_woken(struct fxk_call *call);

/* Is its descriptor still the file that it is armed on? Context: any of ours. */
bool fxk_is_open(const struct fxk_call *call);

/* Under ctx->lock: a call can go on; fxk_tell_runner() follows. */
void fxk_make_ready(struct fxk_ctx *ctx, struct fxk_call *call);

/*
 * There is something to go on with: for who polls, else for the owner. Context:
 * any. @nested: our own wait queue may be held.
 */
void fxk_tell_runner(struct fxk_ctx *ctx, bool nested);

/* Who holds a call leaves it to the next runner, which is told. */
void fxk_put_back(struct fxk_call *call);

#endif /* FXK_ARM_H */
