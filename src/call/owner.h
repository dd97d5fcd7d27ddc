/* SPDX-License-Identifier: MIT */
/*
 * One user-side owner: a page set, the engine that serves it, its counters.
 * A loop has one; in FlexSC-Threads a run queue has one. Postings carry a
 * cookie that comes back with the result.
 */
#ifndef FX_CALL_OWNER_H
#define FX_CALL_OWNER_H

#include "call/table.h"
#include "engine/engine.h"
#include "engine/select.h"

struct fx_owner {
	struct fx_set set;
	struct fx_engine *engine;
	struct flexsc_counters *counters;
	bool keeps_files;
	uint64_t flushed; /* submissions that the engine was told of */
	char reason[FX_REASON_SIZE];
};

struct fx_owner_options {
	const char *engine; /* name or "auto" */
	uint32_t max_entries;
	uint32_t max_threads;
	uint64_t spin_ns;
	bool keeps_files; /* see engine/hold.h: closes are announced there */
};

/* Return: 0, -ENOMEM, -EMFILE, -EINVAL (no such engine). */
int fx_owner_init(struct fx_owner *owner,
		  const struct fx_owner_options *options);
void fx_owner_fini(struct fx_owner *owner);

/* In a forked child, before a new fx_owner_init(). */
void fx_owner_abandon(struct fx_owner *owner);

enum fx_post {
	FX_POST_DONE, /* call->ret is the result; no entry was taken */
	FX_POST_TAKEN, /* the result will be reaped */
	FX_POST_FULL, /* no entry: nothing happened */
};

/**
 * fx_owner_can_publish - is fx_owner_publish() all there is to do?
 *
 * If not, or if no entry is free: fx_owner_post().
 */
static inline bool fx_owner_can_publish(const struct fx_owner *owner,
					unsigned nr)
{
	return nr < FX_NR_CALLS &&
	       fx_load_relaxed(&owner->engine->heads[nr].word) &&
	       owner->set.nr_free;
}

/**
 * fx_owner_publish - post one call, the short way
 *
 * Return: its entry.
 */
static inline __attribute__((always_inline)) uint32_t
fx_owner_publish(struct fx_owner *owner, unsigned nr, uint64_t a0, uint64_t a1,
		 uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
		 uint64_t cookie)
{
	struct fx_set *set = &owner->set;
	uint32_t index = set->free[--set->nr_free];

	fx_set_fill(set, index, &owner->engine->heads[nr], a0, a1, a2, a3, a4, a5,
		    cookie);
	fx_set_publish(set, index);
	return index;
}

/**
 * fx_owner_reap - take one completion
 *
 * Return: false if there is none at present.
 */
static inline bool fx_owner_reap(struct fx_owner *owner, struct fx_done *done)
{
	/* First: what the owner itself did was begun before a later close. */
	if (fx_unlikely(owner->engine->local.first)) {
		*done = fx_local_take(&owner->engine->local, &owner->set);
		return true;
	}
	return fx_set_reap(&owner->set, done);
}

/* After postings: an engine that sleeps is woken. */
static inline void fx_owner_flush(struct fx_owner *owner)
{
	uint64_t tail = fx_ring_position(&owner->set.sq_tail);

	if (owner->engine->publishes && tail == owner->flushed)
		return;
	owner->flushed = tail;
	owner->engine->ops->flush(owner->engine);
}

/* A look that costs nothing: is there nothing to do, or to find? */
static inline bool fx_owner_quiet(struct fx_owner *owner)
{
	return fx_ring_position(&owner->set.sq_tail) == owner->flushed &&
	       !owner->engine->local.first &&
	       !fx_set_has_completion(&owner->set) &&
	       (!owner->engine->ops->quiet ||
		owner->engine->ops->quiet(owner->engine));
}

/**
 * fx_owner_post - post one call
 * @call:  number, arguments, flags 0; ret 0
 * @index: the entry, for FX_POST_TAKEN
 */
enum fx_post fx_owner_post(struct fx_owner *owner, struct flexsc_entry *call,
			   uint64_t cookie, uint32_t *index);

/**
 * fx_owner_attempt_chain - the first half of posting a chain
 * @calls: joined by FLEXSC_F_LINK, ret 0
 *
 * Return: FX_POST_DONE if every call->ret is a result; FX_POST_FULL if there
 * are not enough entries: nothing happened; FX_POST_TAKEN if
 * fx_owner_post_chain() is to follow at once.
 */
enum fx_post fx_owner_attempt_chain(struct fx_owner *owner,
				    struct flexsc_entry *calls, unsigned nr);

/* The second half; it cannot fail. @indices: filled with the entries. */
void fx_owner_post_chain(struct fx_owner *owner,
			 const struct flexsc_entry *calls,
			 const uint64_t *cookies, uint32_t *indices,
			 unsigned nr);

/* A call whose descriptor goes away: end what is parked on it first. */
void fx_owner_closing(struct fx_owner *owner, const struct flexsc_entry *call);

static inline const struct fx_call_desc *fx_owner_desc(unsigned int nr)
{
	static const struct fx_call_desc absent = { .fd_arg = -1 };

	return nr < FX_NR_ROWS ? &fx_call_table[nr] : &absent;
}

#endif /* FX_CALL_OWNER_H */
