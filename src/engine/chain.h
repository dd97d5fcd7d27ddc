/* SPDX-License-Identifier: MIT */
/*
 * Chains, as they are carried out. The state of a chain is nowhere but in the
 * calls still to come: results are written into their arguments as soon as
 * they are known, and a call that must not run any more keeps an argument
 * that will never be known. So what is left of a chain is again a chain, and
 * can be parked or handed to another thread at any point.
 */
#ifndef FX_ENGINE_CHAIN_H
#define FX_ENGINE_CHAIN_H

#include "base/atomic.h"
#include "base/types.h"

#include <errno.h>
#include <linux/flexsc.h>

/* Must this call be skipped? An argument of it is not known and never will. */
static inline bool fx_chain_dead(const struct flexsc_entry *call)
{
	return (call->flags & FLEXSC_F_ARGS) != 0;
}

/* Tell one later call, @distance behind it, how a call ended. */
static inline void fx_chain_tell(struct flexsc_entry *later, uint64_t distance,
				 int64_t ret)
{
	bool failed = fx_is_error(ret);
	unsigned missing = failed ? 0 : later->flags & FLEXSC_F_ARGS;

	for (; missing; missing &= missing - 1) {
		int i = __builtin_ctz(missing);

		if (later->args[i] != distance)
			continue;
		later->args[i] = (uint64_t)ret;
		fx_store_relaxed(&later->flags,
				 (uint8_t)(later->flags & ~FLEXSC_F_ARG(i)));
	}
	if (failed && !(later->flags & FLEXSC_F_ALWAYS)) {
		fx_store_relaxed(&later->flags,
				 (uint8_t)(later->flags | FLEXSC_F_ARG(0)));
		later->args[0] = 0; /* no call is at distance 0 */
	}
}

#endif /* FX_ENGINE_CHAIN_H */
