// SPDX-License-Identifier: GPL-2.0-only
/* Chains: the same rules as src/engine/chain.h has for user space. */
#include "chain.h"

#include "call.h"
#include "step.h"
#include "trace.h"

static unsigned long *argument(struct pt_regs *regs, unsigned int i)
{
	switch (i) {
	case 0:
		return &regs->di;
	case 1:
		return &regs->si;
	case 2:
		return &regs->dx;
	case 3:
		return &regs->r10;
	case 4:
		return &regs->r8;
	default:
		return &regs->r9;
	}
}

static void tell(struct fxk_call *later, u64 distance, s64 ret)
{
	for (unsigned int i = 0; i < 6; i++) {
		unsigned long *arg = argument(&later->regs, i);

		if (!(later->flags & FLEXSC_F_ARG(i)) || *arg != distance)
			continue;
		*arg = ret;
		later->flags &= ~FLEXSC_F_ARG(i);
	}
}

void fxk_chain_tell(struct fxk_call *call, s64 ret)
{
	struct fxk_call *later = call->next;
	u64 distance = 1;

	for (; later; later = later->next, distance++) {
		if (!IS_ERR_VALUE((unsigned long)ret)) {
			tell(later, distance, ret);
		} else if (!(later->flags & FLEXSC_F_ALWAYS)) {
			later->flags |= FLEXSC_F_ARG(0);
			later->regs.di = 0; /* no call is at distance 0 */
		}
	}
}

struct fxk_call *fxk_chain_new(struct fxk_runner *r, const u32 *indices,
			       int nr)
{
	struct fxk_ctx *ctx = r->ctx;
	struct fxk_call *first = NULL, **end = &first, *call;

	for (int i = 0; i < nr; i++) {
		struct flexsc_entry *entry = fxk_entry(ctx, indices[i]);
		u64 head = READ_ONCE(*(u64 *)entry);

		call = fxk_call_new(r, indices[i], fxk_head_nr(head),
				    fxk_head_flags(head));
		if (!call)
			goto undo;
		fxk_arguments(&call->regs, entry, FXK_FEW | FXK_MANY);
		trace_flexsc_start(ctx, call->index, call->nr);
		*end = call;
		end = &call->next;
	}
	return first;
undo:
	while ((call = first)) {
		first = call->next;
		fxk_call_put(r, call);
	}
	return NULL;
}
