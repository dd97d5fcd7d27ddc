/* SPDX-License-Identifier: MIT */
/* Posted calls as observers see them; see loop/seen.h. */
#include "loop/seen.h"

#include "base/pages.h"
#include "call/seen.h"

static int who(const struct flexsc_loop *loop)
{
	return (int)loop->owner.counters->tid;
}

/* Not 0: the thread does not wait for it. */
static uint64_t id_of(const struct flexsc_event *ev)
{
	return ev ? (uintptr_t)ev : 1;
}

uint64_t fx_loop_seen_begin(struct flexsc_loop *loop,
			    const struct flexsc_event *ev,
			    const struct flexsc_entry *call)
{
	unsigned results = 0;

	for (unsigned i = 0; i < 6; i++)
		if (call->flags & FLEXSC_F_ARG(i))
			results |= 1u << i;
	return fx_seen_begin(call->nr, who(loop), id_of(ev),
			     (const uint64_t *)call->args, results);
}

void fx_loop_seen_taken(struct flexsc_loop *loop, uint32_t index,
			uint64_t begun_ns)
{
	if (!begun_ns)
		return;
	if (!loop->began) {
		loop->began_size =
			loop->owner.set.max_entries * sizeof(*loop->began);
		loop->began = fx_pages_resize(NULL, 0, loop->began_size);
	}
	if (loop->began)
		loop->began[index] =
			(struct fx_loop_began){ begun_ns, fx_trace_lapses() };
}

void fx_loop_seen_end(struct flexsc_loop *loop, const struct flexsc_event *ev,
		      const struct flexsc_entry *call, uint64_t begun_ns,
		      int64_t ret)
{
	fx_seen_end(call->nr, who(loop), id_of(ev),
		    (const uint64_t *)call->args, begun_ns, ret);
}

void fx_loop_seen_reaped(struct flexsc_loop *loop,
			 const struct flexsc_event *ev, int64_t ret)
{
	const struct flexsc_entry *call =
		fx_set_entry(&loop->owner.set, ev->index_);
	uint64_t begun_ns = 0;

	if (loop->began && loop->began[ev->index_].lapses == fx_trace_lapses())
		begun_ns = loop->began[ev->index_].ns;
	if (loop->began)
		loop->began[ev->index_].ns = 0;
	fx_loop_seen_end(loop, ev, call, begun_ns, ret);
}

void fx_loop_seen_cancel(struct flexsc_loop *loop,
			 const struct flexsc_event *ev)
{
	fx_seen_cancel(fx_set_entry(&loop->owner.set, ev->index_)->nr,
		       who(loop), id_of(ev));
}

void fx_loop_seen_fini(struct flexsc_loop *loop)
{
	fx_pages_free(loop->began, loop->began_size);
}
