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
	char reason[FX_REASON_SIZE];
};

struct fx_owner_options {
	const char *engine; /* name or "auto" */
	uint32_t max_entries;
	uint32_t max_threads;
	uint64_t spin_ns;
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
 * fx_owner_post - post one call
 * @call:  number, arguments, flags 0; ret 0
 * @index: the entry, for FX_POST_TAKEN
 */
enum fx_post fx_owner_post(struct fx_owner *owner, struct flexsc_entry *call,
			   uint64_t cookie, uint32_t *index);

/**
 * fx_owner_post_chain - post calls joined by FLEXSC_F_LINK
 * @calls: ret 0
 *
 * Return: FX_POST_DONE if every call->ret is a result; FX_POST_FULL if there
 * are not enough entries: nothing happened.
 */
enum fx_post fx_owner_post_chain(struct fx_owner *owner,
				 struct flexsc_entry *calls,
				 const uint64_t *cookies, uint32_t *indices,
				 unsigned nr);

/* A call whose descriptor goes away: end what is parked on it first. */
void fx_owner_closing(struct fx_owner *owner, const struct flexsc_entry *call);

static inline const struct fx_call_desc *fx_owner_desc(unsigned int nr)
{
	static const struct fx_call_desc absent = { .fd_arg = -1 };

	return nr < FX_NR_CALLS ? &fx_call_table[nr] : &absent;
}

#endif /* FX_CALL_OWNER_H */
