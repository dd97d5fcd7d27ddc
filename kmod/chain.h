/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chains (FLEXSC_F_LINK). What is left of one is a list of calls in the
 * module's memory; the entries are read once, when the chain is taken.
 */
#ifndef FXK_CHAIN_H
#define FXK_CHAIN_H

#include "fxk.h"

/* Must this call be skipped? An argument of it will never be known. */
static inline bool fxk_chain_dead(const struct fxk_call *call)
{
	return call->flags & FLEXSC_F_ARGS;
}

/* Tell the calls behind how one ended. */
void fxk_chain_tell(struct fxk_call *call, s64 ret);

/**
 * fxk_chain_new - the calls of entries that were taken together
 *
 * Return: the first; NULL: no memory, nothing was done.
 */
struct fxk_call *fxk_chain_new(struct fxk_runner *r, const u32 *indices,
			       int nr);

#endif /* FXK_CHAIN_H */
