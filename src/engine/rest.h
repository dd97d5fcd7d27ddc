/* SPDX-License-Identifier: MIT */
/*
 * What is left of a call of which a part is done, as a call of its own: for a
 * thread that takes over where the non-blocking attempts stopped.
 */
#ifndef FX_ENGINE_REST_H
#define FX_ENGINE_REST_H

#include "engine/iovec.h"

#include <linux/flexsc.h>

/* A copy to change; of the status somebody else may be making a cancel. */
static inline struct flexsc_entry fx_call_copy(const struct flexsc_entry *call)
{
	struct flexsc_entry copy = { .nr = call->nr,
				     .nr_args = call->nr_args,
				     .flags = call->flags,
				     .ret = call->ret };

	for (unsigned i = 0; i < 6; i++)
		copy.args[i] = call->args[i];
	return copy;
}

struct fx_rest {
	struct flexsc_entry call;
	struct fx_iovec list;
};

/* @call->ret bytes are done, more than 0; returns &rest->call. */
const struct flexsc_entry *fx_rest_of(struct fx_rest *rest,
				      const struct flexsc_entry *call);

/*
 * Is there more to do after @done bytes? Only lists of buffers end early: the
 * rest of one holds FX_IOVEC_WINDOW buffers at most.
 */
bool fx_rest_more(const struct flexsc_entry *call, int64_t done);

#endif /* FX_ENGINE_REST_H */
