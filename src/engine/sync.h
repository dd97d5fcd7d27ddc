/* SPDX-License-Identifier: MIT */
/*
 * Engine sync: its state, and the two lists that its entries wait in. For
 * engine/sync.c.
 */
#ifndef FX_ENGINE_SYNC_H
#define FX_ENGINE_SYNC_H

#include "engine/attempt.h"
#include "engine/engine.h"

#include <poll.h>

/* fx_beside.state: the list that an entry is in. */
enum {
	LIST_NONE,
	LIST_WAITING,
	LIST_BLOCKING,
	NR_LISTS
};

/* One descriptor. Key: O. */
struct sync_fd {
	uint32_t nr_waiting[2]; /* by direction: 0 in, 1 out */
	uint32_t slot; /* in the array for poll(2) + 1, while it is made */
	uint8_t ready; /* bit 1 << direction: poll(2) said so */
	uint8_t armed; /* what the epoll set is told of */
};

/* Key: O. */
struct sync_engine {
	struct fx_engine base;
	uint32_t first[NR_LISTS], last[NR_LISTS]; /* index + 1 */
	uint32_t nr_waiting;
	uint32_t nr_timed; /* waiting with a time-out of the socket's own */
	uint32_t idle_looks; /* empty looks in a row, nothing posted since */
	bool ready; /* some descriptor is */
	bool at_once; /* something ended in its posting since the last wait */
	enum fx_try verdict; /* of the attempt before a post */
	bool keeps; /* calls keep their files, see engine/hold.h */
	uint16_t epoch; /* of the descriptor tried last, the same */
	struct sync_fd *fds;
	uint32_t nr_fds;
	struct pollfd *polls;
	uint32_t max_polls;
	int epfd; /* only to be embedded; -1 until then */
};

static inline struct sync_engine *of(struct fx_engine *engine)
{
	return fx_container_of(engine, struct sync_engine, base);
}

static inline struct fx_beside *beside(struct sync_engine *e, uint32_t index)
{
	return &e->base.set->beside[index];
}

static inline const struct fx_call_desc *
desc_of(struct sync_engine *e, const struct flexsc_entry *call)
{
	return fx_engine_desc(&e->base, call->nr);
}

static inline unsigned direction(struct sync_engine *e,
				 const struct flexsc_entry *call)
{
	return desc_of(e, call)->flags & FX_CALL_OUT ? 1 : 0;
}

static inline int call_fd(struct sync_engine *e,
			  const struct flexsc_entry *call)
{
	return (int)call->args[desc_of(e, call)->fd_arg];
}

/* Lists ------------------------------------------------------------------ */

static inline void list_add(struct sync_engine *e, unsigned list,
			    uint32_t index)
{
	struct fx_beside *b = beside(e, index);

	b->state = (uint8_t)list;
	b->next = 0;
	b->prev = e->last[list];
	if (b->prev)
		beside(e, b->prev - 1)->next = index + 1;
	else
		e->first[list] = index + 1;
	e->last[list] = index + 1;
}

static inline void list_remove(struct sync_engine *e, uint32_t index)
{
	struct fx_beside *b = beside(e, index);
	unsigned list = b->state;

	if (b->prev)
		beside(e, b->prev - 1)->next = b->next;
	else
		e->first[list] = b->next;
	if (b->next)
		beside(e, b->next - 1)->prev = b->prev;
	else
		e->last[list] = b->prev;
	b->state = LIST_NONE;
}

#endif /* FX_ENGINE_SYNC_H */
