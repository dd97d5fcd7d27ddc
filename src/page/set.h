/* SPDX-License-Identifier: MIT */
/*
 * Page sets: claiming entries, publishing them, taking them over, completing
 * them, reaping them. States and rings are described in <linux/flexsc.h>.
 *
 * Three parties:
 *  - the owner claims, publishes, cancels and reaps; one thread at a time;
 *  - consumers (syscall threads, and the owner when it helps) take
 *    submissions and complete them;
 *  - whoever sleeps announces it and looks once more; the other side looks at
 *    the flag after publications. Between the two lies, for engine_sleeping,
 *    fx_barrier_heavy() on the sleeper's side and fx_barrier_light() on the
 *    owner's; for owner_sleeping a full fence on both.
 *
 * Neither post nor reap has a locked instruction or a full fence.
 */
#ifndef FX_PAGE_SET_H
#define FX_PAGE_SET_H

#include "base/barrier.h"
#include "base/types.h"
#include "page/ring.h"

#define FX_NO_ENTRY UINT32_MAX

/*
 * What the owner knows of an entry whose call is to end early; zero of others.
 * On no line that an engine touches, like the cookies.
 */
struct fx_slot {
	uint32_t notices; /* records to come beside one on the completion ring */
	uint32_t cancelled; /* a cancel was asked for */
};

/*
 * What the engine that owns an entry knows of it, under its own lock; written
 * only once the entry was taken over.
 */
struct fx_beside {
	uint32_t chain; /* next entry of the chain + 1 */
	uint32_t next, prev; /* the queue it is in, index + 1 */
	uint32_t older, newer; /* queue by time of parking, index + 1 */
	uint32_t stamp; /* when it was parked, in the engine's unit */
	uint32_t fd; /* descriptor it is parked on */
	uint32_t held; /* descriptor that it holds + 1; see engine/hold.h */
	uint32_t posted; /* where on the submission ring, low half */
	uint8_t queue; /* which queue by time; 0 none */
	uint8_t state; /* the engine's own */
};

/* What the owner reaps. */
struct fx_done {
	uint64_t cookie;
	int64_t ret;
};

struct fx_set {
	/* Read-mostly, for all parties. */
	struct flexsc_set *shared;
	struct flexsc_entry *entries;
	uint32_t *sq;
	uint64_t *cq;
	struct fx_beside *beside;
	uint64_t *cookies; /* the poster's, by entry; 0 while it is not in use */
	struct fx_slot *slots;
	uint32_t *free; /* stack of free indices */
	int owner_eventfd; /* written to wake the owner */
	uint32_t max_entries;

	/* Owner only. */
	struct fx_ring_cursor sq_tail __attribute__((aligned(FX_CACHE_LINE)));
	struct fx_ring_cursor cq_head;
	uint32_t nr_free;
	uint32_t local_last; /* index + 1 */
	/* Why the next completion is not simply on the ring. */
	union {
		struct {
			uint32_t nr_marked; /* entries that have a fx_slot */
			uint32_t local_first; /* index + 1; engine/local.h */
		};
		uint64_t unusual;
	};
	uint32_t nr_entries;
	size_t map_size;
	size_t beside_size;
	size_t cookies_size;
};

static inline uint32_t fx_set_claimed(const struct fx_set *set)
{
	return set->nr_entries - set->nr_free;
}

/* One consumer's or producer's private views of a set. */
struct fx_worker_view {
	struct fx_ring_view sq;
	struct fx_ring_view cq;
};

/**
 * fx_set_init - map a page set
 * @set:         caller's memory
 * @max_entries: limit of outstanding entries, 64 to FLEXSC_MAX_ENTRIES;
 *               rounded up to a power of two
 *
 * Address space for the limit is reserved, memory is touched as it is used.
 * The mapping is not inherited by fork.
 *
 * Return: 0, -ENOMEM, -EMFILE.
 */
int fx_set_init(struct fx_set *set, uint32_t max_entries);
void fx_set_fini(struct fx_set *set);

/**
 * fx_set_adopt - let a file's memory take the place of a set's own
 * @set:      fresh: nothing was claimed
 * @fd:       maps a page set, with a header, from offset 0
 * @map_size: no more than the set's own
 *
 * The file wakes the owner when it is written to: it takes the place of the
 * eventfd, too, and is the set's to close.
 * Return: 0, or -errno: the set is as it was.
 */
int fx_set_adopt(struct fx_set *set, int fd, size_t map_size);

/* In a forked child: give up what the parent's set left behind here. */
void fx_set_abandon(struct fx_set *set);

void fx_worker_view_init(struct fx_worker_view *view);

/* Slow half of fx_set_claim(): add a page. Returns false at the limit. */
bool fx_set_grow(struct fx_set *set);

static inline struct flexsc_entry *fx_set_entry(const struct fx_set *set,
						uint32_t index)
{
	return &set->entries[index];
}

/**
 * fx_set_claim - take a free entry
 *
 * Context: owner.
 * Return: its index, or FX_NO_ENTRY at the limit.
 */
static inline uint32_t fx_set_claim(struct fx_set *set)
{
	if (fx_unlikely(set->nr_free == 0) && !fx_set_grow(set))
		return FX_NO_ENTRY;
	return set->free[--set->nr_free];
}

/* Nothing is left of a cancel, if there was one. */
void fx_set_unmark(struct fx_set *set, uint32_t index);

/* Free again; only for an entry that was reaped or never published. */
static inline void fx_set_recycle(struct fx_set *set, uint32_t index)
{
	if (fx_unlikely(set->nr_marked))
		fx_set_unmark(set, index);
	set->cookies[index] = 0;
	set->free[set->nr_free++] = index;
}

/* The first eight bytes of an entry, stored as one. */
union fx_head {
	uint64_t word;
	struct {
		uint32_t status;
		uint16_t nr;
		uint8_t nr_args;
		uint8_t flags;
	};
};

static inline union fx_head fx_head(unsigned nr, unsigned nr_args,
				    unsigned flags)
{
	return (union fx_head){ .status = FLEXSC_SUBMITTED,
				.nr = (uint16_t)nr,
				.nr_args = (uint8_t)nr_args,
				.flags = (uint8_t)flags };
}

/**
 * fx_set_fill_short - write a call of four arguments at most into a claimed
 * entry: SUBMITTED
 *
 * All four are stored, whatever it has: that is less than to ask. The result
 * so far is 0 for an entry that comes over the ring; an engine that is handed
 * it without must be told. Nobody looks at the entry before fx_set_publish().
 */
static inline __attribute__((always_inline)) void
fx_set_fill_short(struct fx_set *set, uint32_t index, uint64_t head,
		  uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
		  uint64_t cookie)
{
	struct flexsc_entry *entry = &set->entries[index];

	fx_store_relaxed(&entry->args[0], a0);
	fx_store_relaxed(&entry->args[1], a1);
	fx_store_relaxed(&entry->args[2], a2);
	fx_store_relaxed(&entry->args[3], a3);
	/* A consumer that lost the race for it may still look at its flags. */
	fx_store_release((uint64_t *)&entry->status, head);
	set->cookies[index] = cookie;
}

/* The same for any call. */
static inline __attribute__((always_inline)) void
fx_set_fill(struct fx_set *set, uint32_t index, union fx_head head, uint64_t a0,
	    uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
	    uint64_t cookie)
{
	struct flexsc_entry *entry = &set->entries[index];

	fx_store_relaxed(&entry->args[4], a4);
	fx_store_relaxed(&entry->args[5], a5);
	fx_set_fill_short(set, index, head.word, a0, a1, a2, a3, cookie);
}

/**
 * fx_set_publish - put filled entries on the submission ring
 * @indices: the calls of one chain in order (LINK set on all but the last),
 *           or one entry
 *
 * Context: owner. Order: the entries come before the slots, the first slot
 * last; a consumer acquires through that slot. The caller looks at
 * engine_sleeping afterwards, behind fx_barrier_light().
 */
void fx_set_publish_chain(struct fx_set *set, const uint32_t *indices,
			  unsigned nr);

/* The submission ring's owner is at the end of what its cursor knows; 0. */
int fx_set_next_lap(struct fx_set *set);

static inline void fx_set_publish(struct fx_set *set, uint32_t value)
{
	struct fx_ring_cursor *tail = &set->sq_tail;

	fx_store_release(&set->sq[tail->next], tail->tag | value);
	fx_ring_advance(tail, set->shared->sq_start);
}

/* The same; 0. For the last thing that a function does: it keeps nothing. */
static inline int fx_set_publish_last(struct fx_set *set, uint32_t value)
{
	struct fx_ring_cursor *tail = &set->sq_tail;
	uint32_t next = tail->next;

	fx_store_release(&set->sq[next], tail->tag | value);
	tail->next = ++next;
	return fx_unlikely(next == tail->end) ? fx_set_next_lap(set) : 0;
}

/**
 * fx_set_take - take the next submission
 * @indices: room for FLEXSC_MAX_CHAIN
 * @wanted:  asked about the first entry before it is taken; NULL takes all
 *
 * Context: any consumer; @view is its own.
 * Return: number of entries (a chain comes whole), 0 if nothing was there or
 * it was not wanted, or -1 for a cancel notice with indices[0] set; a notice
 * must be answered with fx_set_acknowledge().
 */
int fx_set_take(struct fx_set *set, struct fx_worker_view *view,
		uint32_t *indices,
		bool (*wanted)(const struct flexsc_entry *entry, void *arg),
		void *arg);

/* Anything on the submission ring? For the last look before sleeping. */
bool fx_set_has_work(struct fx_set *set, struct fx_worker_view *view);

/**
 * fx_set_own - SUBMITTED to BUSY
 *
 * Return: false if the entry was cancelled first: complete it unexecuted.
 */
static inline bool fx_set_own(struct fx_set *set, uint32_t index)
{
	uint32_t expected = FLEXSC_SUBMITTED;

	return fx_cas(&set->entries[index].status, &expected, FLEXSC_BUSY);
}

static inline bool fx_set_cancel_wanted(struct fx_set *set, uint32_t index)
{
	return fx_load_acquire(&set->entries[index].status) == FLEXSC_CANCEL;
}

/* Completion without the look at the owner's sleep flag; see below. */
static inline void fx_set_put(struct fx_set *set, struct fx_worker_view *view,
			      uint32_t what, int64_t ret)
{
	uint64_t position = fx_fetch_add(&set->shared->cq_tail, 1);
	int32_t narrow = ret == (int32_t)ret ? (int32_t)ret : FLEXSC_SLOT_WIDE;

	fx_ring_view_move(&view->cq, set->shared->cq_start, position);
	fx_store_release(&set->cq[fx_ring_slot(&view->cq, position)],
			 (uint64_t)(uint32_t)narrow << 32 |
				 fx_ring_tag(&view->cq, position) | what);
}

/* Wake the owner if it announced that it sleeps. */
void fx_set_wake_owner(struct fx_set *set);

/*
 * Order: pairs with fx_set_owner_sleep(). Both sides fence: engines look once
 * for many completions, and membarrier interrupts all processors, which an
 * owner that sleeps often cannot afford.
 */
static inline void fx_set_look_at_owner(struct fx_set *set)
{
	fx_fence();
	if (fx_unlikely(fx_load_relaxed(&set->shared->owner_sleeping)))
		fx_set_wake_owner(set);
}

/**
 * fx_set_finish - result, DONE, slot
 *
 * Context: the engine that owns the entry, once an entry. Afterwards the
 * entry is the owner's. fx_set_look_at_owner() follows, at the latest before
 * its caller waits for anything.
 */
static inline void fx_set_finish(struct fx_set *set,
				 struct fx_worker_view *view, uint32_t index,
				 int64_t ret)
{
	struct flexsc_entry *entry = fx_set_entry(set, index);

	fx_store_relaxed(&entry->ret, ret);
	fx_store_release(&entry->status, FLEXSC_DONE);
	fx_set_put(set, view, index, ret);
}

/* The same, and the look at the owner's sleep flag. */
static inline void fx_set_complete(struct fx_set *set,
				   struct fx_worker_view *view, uint32_t index,
				   int64_t ret)
{
	fx_set_finish(set, view, index, ret);
	fx_set_look_at_owner(set);
}

/* Answer a cancel notice after having acted on it. */
static inline void fx_set_acknowledge(struct fx_set *set,
				      struct fx_worker_view *view,
				      uint32_t index)
{
	fx_set_put(set, view, index | FLEXSC_SLOT_NOTICE, 0);
	fx_set_look_at_owner(set);
}

enum fx_cancel {
	FX_CANCEL_DONE, /* too late: its completion is on the way */
	FX_CANCEL_BEFORE, /* not begun: its consumer will see the request */
	FX_CANCEL_BUSY, /* begun: the engine must be told */
};

/**
 * fx_set_cancel - ask that an entry ends
 *
 * Context: owner; once an entry (later ones return FX_CANCEL_DONE).
 */
enum fx_cancel fx_set_cancel(struct fx_set *set, uint32_t index);

/* Put the cancel notice of a BUSY entry on the submission ring. */
void fx_set_notify(struct fx_set *set, uint32_t index);

static inline bool fx_set_has_completion(struct fx_set *set)
{
	const struct fx_ring_cursor *head = &set->cq_head;

	return ((uint32_t)fx_load_acquire(&set->cq[head->next]) &
		FX_RING_TAG_MASK) == head->tag;
}

/* fx_set_reap() where there is a record, and cancels are in play. */
bool fx_set_reap_unusual(struct fx_set *set, struct fx_done *done);

/* The same; leaves *done in registers where it is reaped the usual way. */
static inline bool fx_set_reap_marked(struct fx_set *set, struct fx_done *done)
{
	struct fx_done result;
	bool found = fx_set_reap_unusual(set, &result);

	*done = result;
	return found;
}

/* fx_set_reap() while nothing is marked. */
static inline bool fx_set_reap_unmarked(struct fx_set *set,
					struct fx_done *done)
{
	struct fx_ring_cursor *head = &set->cq_head;
	uint32_t next = head->next;
	const uint64_t *slot = &set->cq[next];
	uint64_t word = fx_load_acquire(slot);
	uint32_t index = (uint32_t)word ^ head->tag;
	uint64_t *cookie;

	/* Another lap's slot, or one with a notice. */
	if (fx_unlikely(index > FLEXSC_SLOT_INDEX))
		return index <= (FLEXSC_SLOT_INDEX | FLEXSC_SLOT_NOTICE) &&
		       fx_set_reap_marked(set, done);
	/* Written on another core: ask for a line two ahead. */
	fx_prefetch(slot + 2 * FX_CACHE_LINE / sizeof(*slot));
	head->next = ++next;
	if (fx_unlikely(next == head->end))
		fx_ring_seek(head, set->shared->cq_start, head->end_position);
	cookie = &set->cookies[index];
	done->cookie = *cookie;
	*cookie = 0;
	done->ret = (int32_t)(word >> 32);
	if (fx_unlikely(done->ret == FLEXSC_SLOT_WIDE))
		done->ret = fx_load_relaxed(&set->entries[index].ret);
	set->free[set->nr_free++] = index;
	return true;
}

/**
 * fx_set_reap - take one completion
 *
 * Context: owner. An entry whose last record was seen is free again.
 * Return: false if there is none.
 */
static inline bool fx_set_reap(struct fx_set *set, struct fx_done *done)
{
	return fx_unlikely(set->nr_marked) ? fx_set_reap_marked(set, done) :
					     fx_set_reap_unmarked(set, done);
}

/**
 * fx_set_owner_sleep - announce that the owner is about to sleep
 *
 * Return: true if it may sleep on its eventfd; false if something completed
 * meanwhile (the announcement is taken back).
 */
bool fx_set_owner_sleep(struct fx_set *set);

/* The owner is awake again; drains a wake-up that came too late. */
void fx_set_owner_awake(struct fx_set *set);

#endif /* FX_PAGE_SET_H */
