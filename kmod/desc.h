/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls on descriptors that can be polled: carried out when they are ready,
 * armed when they are not. File flags are never touched; sockets are asked
 * not to wait by a flag in the kernel's copy of the arguments.
 */
#ifndef FXK_DESC_H
#define FXK_DESC_H

#include "fxk.h"

#include <linux/fdtable.h>

/* fxk_step() for FXK_FD. */
enum fxk_step fxk_fd(struct fxk_runner *r, struct fxk_call **call, bool out,
		     s64 *ret);

/*
 * The call, on the file that it is armed on, whatever its descriptor is now.
 * @nr: of the call, or of its like.
 */
s64 fxk_dispatch_fd(struct fxk_runner *r, struct fxk_call *call,
		    unsigned int nr);

enum fxk_quick {
	FXK_QUICK_NOT, /* fxk_fd() */
	FXK_QUICK_PLAIN, /* make it as it is: its file never waits */
	FXK_QUICK_ASK, /* make its like, which does not wait */
	FXK_QUICK_GONE, /* waits, or took another way: nothing is left to do */
	FXK_QUICK_OVER, /* that was done, to a socket, and is all */
	FXK_QUICK_MADE, /* done, and fxk_quick_done() is to judge */
};

/* Is it a file that never waits, or none? Without a reference. */
static __always_inline bool fxk_never_waits(unsigned int fd)
{
	const struct file_operations *ops = NULL;
	struct file *file;
	bool sure = true;

	/* Which is as good as a section of RCU, and costs less. */
	preempt_disable();
	file = files_lookup_fd_raw(current->files, fd);
	if (file) {
		ops = READ_ONCE(file->f_op);
		sure = ops && !ops->poll;
	}
	preempt_enable();
	return sure;
}

/* Is that worth a look? Else: is fxk_quick()? */
static inline bool fxk_is_of_files(unsigned int nr)
{
	return nr != __NR_recvfrom && nr != __NR_sendto;
}

static inline bool fxk_is_of_bytes(unsigned int nr)
{
	return nr == __NR_recvfrom || nr == __NR_sendto || nr == __NR_read ||
	       nr == __NR_write;
}

/**
 * fxk_quick - the usual ways of the usual calls on sockets
 * @r: r->now has nr and arguments; fxk_is_of_bytes()
 * @index: of its entry
 *
 * Should the descriptor be another file's by the time that the call is made,
 * the watch is there. Return: how; r->was is for fxk_quick_done().
 */
enum fxk_quick fxk_quick(struct fxk_runner *r, u32 index);

/*
 * After the like of it: is *ret its result? If not, the call is as it was, less
 * what was done, and fxk_go() is to follow.
 */
bool fxk_quick_done(struct fxk_call *call, const struct fxk_like *was, s64 ret);

/**
 * fxk_resume - the usual way of a receive that waited
 * @call: held, off its queues
 *
 * Return: *ret is its result; false: fxk_go() is to follow.
 */
bool fxk_resume(struct fxk_runner *r, struct fxk_call *call, s64 *ret);

#endif /* FXK_DESC_H */
