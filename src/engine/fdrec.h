/* SPDX-License-Identifier: MIT */
/*
 * One descriptor, as engine/park.c and engine/try.c know it; all fields under
 * the lock of the fx_park.
 */
#ifndef FX_ENGINE_FDREC_H
#define FX_ENGINE_FDREC_H

#include "engine/hold.h"
#include "engine/park.h"

/* Directions, as indices. */
enum {
	FX_IN = 0,
	FX_OUT = 1
};

/* fx_fdrec.flags */
#define FX_FD_READY(dir) (1u << (dir)) /* believed ready */
#define FX_FD_SET(dir) (4u << (dir)) /* in the epoll set for it */
#define FX_FD_TRIED(dir) (16u << (dir)) /* READY says something */
#define FX_FD_HUP 64u /* end of file or error: always ready */
#define FX_FD_OURS 128u /* made by a posted call for posted calls */
#define FX_FD_BLOCKING 256u /* seen without O_NONBLOCK */
#define FX_FD_ACTIVE 512u /* on the list of descriptors to retry */
#define FX_FD_EDGE(dir) (1024u << (dir)) /* an edge came since the last try */
#define FX_FD_DRAINS(n) ((n) << 13) /* two bits: enum fx_drains */
#define FX_FD_URGENT 32768u /* there was urgent data once */
#define FX_FD_CLOSED 4096u /* by a posted close: closed_at is valid */
#define FX_FD_ANSWERED 65536u /* written to since it was last read */
#define FX_FD_DEFERRED 131072u /* FX_TRY_LATER was said of the next read */
#define FX_FD_PATIENT 262144u /* calls wait, whatever O_NONBLOCK says */

struct fx_fdrec {
	uint32_t first[2], last[2]; /* parked entries + 1, by direction */
	uint32_t generation; /* tells events of an earlier file apart */
	uint32_t checked_ms; /* when the registration was last verified */
	uint32_t credit; /* see struct fx_hint */
	uint32_t next_active; /* descriptor + 1 */
	uint32_t closed_at; /* when that close was posted */
	uint32_t epoch; /* fx_park.keeps: see engine/hold.h */
	uint32_t held; /* the same: calls of this engine that hold it */
	uint32_t flags;
	uint16_t edges[2];
	uint8_t kind;
	uint8_t strays; /* edges in a row that nobody here took notice of */
};

#define FX_FDREC_CHUNK 1024u
#define FX_FDREC_CHUNKS 4096u /* 4 million descriptors */

static inline void fx_park_lock(struct fx_park *park)
{
	if (park->shared)
		fx_lock(&park->lock);
}

static inline void fx_park_unlock(struct fx_park *park)
{
	if (park->shared)
		fx_unlock(&park->lock);
}

bool fx_park_add_chunk(struct fx_park *park, unsigned chunk);

/* Under the lock. NULL: none yet and not to @make, no memory, no such number. */
static inline struct fx_fdrec *fx_park_record(struct fx_park *park, int fd,
					      bool make)
{
	unsigned chunk = (unsigned)fd / FX_FDREC_CHUNK; /* huge if negative */

	if (fx_unlikely(chunk >= FX_FDREC_CHUNKS))
		return NULL;
	if (fx_unlikely(!park->chunks[chunk]) &&
	    (!make || !fx_park_add_chunk(park, chunk)))
		return NULL;
	return &park->chunks[chunk][(unsigned)fd % FX_FDREC_CHUNK];
}

/* Under the lock: it is another file; calls still parked are tried on it. */
void fx_park_forget(struct fx_park *park, struct fx_fdrec *rec, int fd,
		    enum fx_kind kind, bool ours);

/* Under the lock: was the number closed, by anybody, since it was noted? */
static inline bool fx_park_is_stale(const struct fx_park *park,
				    const struct fx_fdrec *rec, int fd)
{
	/* There is a record, so there is a word. */
	return park->keeps && rec->epoch != fx_hold_epoch(fx_load_relaxed(
						    &fx_hold_words[fd]));
}

/* The same; then it is another file from now on. */
static inline void fx_park_look(struct fx_park *park, struct fx_fdrec *rec,
				int fd)
{
	if (fx_likely(!fx_park_is_stale(park, rec, fd)))
		return;
	rec->epoch = fx_hold_epoch(fx_load_relaxed(&fx_hold_words[fd]));
	fx_park_forget(park, rec, fd, FX_KIND_UNKNOWN, false);
}

/*
 * Under the lock: may @call, which would have to wait, not wait because of
 * O_NONBLOCK? Then its result is set.
 */
bool fx_park_refuses(const struct fx_fdrec *rec, struct flexsc_entry *call,
		     int fd);

/* What a try has seen, for fx_park_add(). */
static inline uint32_t fx_park_seq(const struct fx_fdrec *rec, unsigned dir)
{
	return rec->edges[dir] | rec->epoch << 16;
}

#endif /* FX_ENGINE_FDREC_H */
