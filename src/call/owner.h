/* SPDX-License-Identifier: MIT */
/*
 * One user-side owner: a page set, the engine that serves it, its counters.
 * A loop has one; in FlexSC-Threads a run queue has one. Postings carry a
 * cookie that comes back with the result.
 */
#ifndef FX_CALL_OWNER_H
#define FX_CALL_OWNER_H

#include "base/probe.h"
#include "call/table.h"
#include "engine/engine.h"
#include "engine/select.h"

struct fx_owner {
	struct fx_set set;
	struct fx_engine *engine;
	struct flexsc_counters *counters;
	bool keeps_files;
	uint64_t flushed; /* submissions that the engine was told of */
	/* See struct fx_engine. */
	int64_t heads[FX_NR_CALLS];
	char reason[FX_REASON_SIZE];
};

struct fx_owner_options {
	const char *engine; /* name or "auto" */
	uint32_t max_entries;
	uint32_t max_threads;
	uint64_t spin_ns;
	bool keeps_files; /* see engine/hold.h: closes are announced there */
	bool leaves; /* engine->outside may be set: see enum fx_outside */
};

/* Return: 0, -ENOMEM, -EMFILE, -EINVAL (no such engine). */
int fx_owner_init(struct fx_owner *owner,
		  const struct fx_owner_options *options);
void fx_owner_fini(struct fx_owner *owner);

/*
 * The two halves of beginning. Engine and page set can be ended, when no call
 * is in flight, and begin again; counters go on. If that fails, or if it has
 * been stopped, only the counters are left to free.
 */
int fx_owner_prepare(struct fx_owner *owner,
		     const struct fx_owner_options *options);
void fx_owner_stop(struct fx_owner *owner);
int fx_owner_start(struct fx_owner *owner,
		   const struct fx_owner_options *options);

/* In a forked child, before a new fx_owner_init(). */
void fx_owner_abandon(struct fx_owner *owner);

enum fx_post {
	FX_POST_DONE, /* call->ret is the result; no entry was taken */
	FX_POST_TAKEN, /* the result will be reaped */
	FX_POST_FULL, /* no entry: nothing happened */
};

/**
 * fx_owner_reap - take one completion
 *
 * Return: false if there is none at present.
 */
static inline bool fx_owner_reap(struct fx_owner *owner, struct fx_done *done)
{
	struct fx_set *set = &owner->set;

	if (fx_unlikely(set->unusual)) {
		/* First: what the owner did was begun before a later close. */
		if (fx_local_has(set))
			*done = fx_local_take(set);
		else if (!fx_set_reap_marked(set, done))
			return false;
	} else if (!fx_set_reap_unmarked(set, done)) {
		return false;
	}
	fx_probe2(done, done->cookie, done->ret);
	return true;
}

/* Were there postings since the last time? Then they count as flushed now. */
static inline bool fx_owner_unflushed(struct fx_owner *owner)
{
	uint64_t tail = fx_ring_position(&owner->set.sq_tail);

	if (tail == owner->flushed)
		return false;
	owner->flushed = tail;
	return true;
}

/* After postings: an engine that sleeps is woken. */
static inline void fx_owner_flush(struct fx_owner *owner)
{
	if (fx_owner_unflushed(owner) || !owner->engine->publishes)
		owner->engine->ops->flush(owner->engine);
}

/* A look that costs nothing: is there nothing to do, or to find? */
static inline bool fx_owner_quiet(struct fx_owner *owner)
{
	return fx_ring_position(&owner->set.sq_tail) == owner->flushed &&
	       !fx_local_has(&owner->set) &&
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
 * fx_owner_begin - the first half of posting a call, for who can put it off
 * @call: as for fx_owner_post(); it closes nothing
 * @nr_others, @gathers: see fx_engine_ops.begin
 *
 * Return: FX_BEGUN_NOT: fx_owner_take() is to follow at once, or
 * engine->outside says that the caller makes it.
 */
static inline enum fx_begun fx_owner_begin(struct fx_owner *owner,
					   struct flexsc_entry *call,
					   uint32_t nr_others, bool gathers)
{
	struct fx_engine *engine = owner->engine;
	const struct fx_call_desc *desc;

	if (fx_likely(engine->ops->begin))
		return engine->ops->begin(engine, call, nr_others, gathers);
	desc = fx_engine_desc(engine, call->nr);
	engine->outside = FX_INSIDE;
	return (engine->attempts >> desc->call_class & 1 ||
		desc->flags & FX_CALL_SELF) &&
			       engine->ops->attempt(engine, call) ?
		       FX_BEGUN_DONE :
		       FX_BEGUN_NOT;
}

/**
 * fx_owner_take - the second half
 *
 * Return: FX_POST_TAKEN or FX_POST_FULL.
 */
enum fx_post fx_owner_take(struct fx_owner *owner,
			   const struct flexsc_entry *call, uint64_t cookie,
			   uint32_t *index);

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
