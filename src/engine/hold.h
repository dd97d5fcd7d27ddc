/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that are closed while calls wait on them, as threads of the
 * kernel have it: a call that waits keeps its file, whatever becomes of the
 * number. For engines of FlexSC-Threads (fx_engine_config.keeps_files); in
 * libflexsc a close ends what is parked, and nothing here is used.
 *
 * The kernel has no reference for a call that is parked on an epoll set, so
 * before a descriptor is closed its parked calls are moved to a private
 * duplicate of it, which is closed when the last of them is over. Any queue's
 * engine may have such calls. Two things are asked of one word a descriptor,
 * for the whole process: does anybody wait there (so a close of what nobody
 * waits on costs two atomic operations), and was it closed since I looked?
 *
 * Key of the word: bits 0-29 holds: calls that wait; CLOSING: somebody is
 * about to close it; PRIVATE: ours, goes with the last hold; upper half, the
 * epoch: counts closes, and files that appear.
 *
 *	call, on the carrier of its queue       close, any thread
 *	---------------------------------       -----------------
 *	e = epoch                               CLOSING, epoch + 1; holds? (one swap)
 *	tries the call: not ready               if any: dup, ask all queues to move
 *	hold, if epoch is still e and           what they hold, wait for them
 *	  not CLOSING (one swap)                close(2)
 *	parks, retries, parks...                not CLOSING, epoch + 1
 *	is over: hold dropped
 *
 * Why this is enough. The swaps on one word are in an order:
 *  - hold before CLOSING: the closer sees it and does not close before the
 *    queue has moved the call. Only the queue's holder moves calls, between
 *    two operations on its engine, so no call is moved in the middle of a
 *    retry; one that another thread of the engine has in its hands makes the
 *    holder say "not yet", and it is asked again.
 *  - CLOSING before the hold: the hold fails. The call began before the close
 *    was over, so it may as well have begun behind it: it is tried again, from
 *    the start. While CLOSING is set it is parked without a hold and tried at
 *    every round of its carrier, which goes on moving calls meanwhile: nobody
 *    waits for anybody inside an engine. What is partly done (a long write) is
 *    not begun again: its count is the result, as for an error in the middle.
 *  - A record of the descriptor (engine/fdrec.h) that was made under another
 *    epoch is of another file and is forgotten: so a number that is used again
 *    is not believed to be in the epoll set.
 *
 * What is in the hands of the kernel needs no hold: io_uring operations once
 * submitted, blocking calls of syscall threads once entered. A hold taken
 * before is dropped just before a thread enters the call; the moment between
 * the two is like the one between a thread's call instruction and the kernel.
 *
 * A second descriptor has no hold: sendfile is waited for at home
 * (preload/io.c), where the kernel has both files; splice has duplicates while
 * it waits outside of the kernel (engine/splice.c).
 *
 * What remains: closes that nobody announces, which leave the number to its
 * next file (preload/stream.c has those of the C library); and if no
 * descriptor is left for a duplicate, the calls end with EBADF.
 */
#ifndef FX_ENGINE_HOLD_H
#define FX_ENGINE_HOLD_H

#include "base/atomic.h"
#include "base/types.h"

#define FX_HOLD_COUNT ((UINT64_C(1) << 30) - 1)
#define FX_HOLD_CLOSING (UINT64_C(1) << 30)
#define FX_HOLD_PRIVATE (UINT64_C(1) << 31)
#define FX_HOLD_EPOCH (UINT64_C(1) << 32)

/* As many as engine/fdrec.h has records. */
#define FX_HOLD_FDS (4u * 1024 * 1024)

/* NULL until fx_hold_init(). Key: A anybody, atomically. */
extern uint64_t *fx_hold_words __attribute__((visibility("hidden")));

/* Address space for all words; once a process. 0 or -ENOMEM. */
int fx_hold_init(void);
/* In the child of a fork: nobody waits. */
void fx_hold_after_fork(void);

/* Numbers above were never looked at; for close_range(). */
uint32_t fx_hold_highest(void);
void fx_hold_reach(uint32_t fd);

static inline uint64_t *fx_hold_word(int fd)
{
	return fx_hold_words && (unsigned)fd < FX_HOLD_FDS ?
		       &fx_hold_words[fd] :
		       NULL;
}

static inline uint32_t fx_hold_epoch(uint64_t word)
{
	return (uint32_t)(word / FX_HOLD_EPOCH);
}

enum fx_hold {
	FX_HOLD_TAKEN,
	FX_HOLD_STALE, /* closed since: what was tried was another file */
	FX_HOLD_LATER, /* is being closed */
};

/* @epoch: its low half; the time between is short. Order: full fence. */
static inline enum fx_hold fx_hold_take(uint64_t *word, uint16_t epoch)
{
	uint64_t old = fx_load_relaxed(word);

	do {
		if (old & FX_HOLD_CLOSING)
			return FX_HOLD_LATER;
		if ((uint16_t)fx_hold_epoch(old) != epoch)
			return FX_HOLD_STALE;
	} while (!fx_cas(word, &old, old + 1));
	return FX_HOLD_TAKEN;
}

/* Return: true if it was the last one of a private descriptor: close it. */
static inline bool fx_hold_drop(uint64_t *word)
{
	uint64_t old = fx_load_relaxed(word), new;

	do {
		new = old - 1;
		if (!(new &FX_HOLD_COUNT) && new &FX_HOLD_PRIVATE)
			new = (new & ~FX_HOLD_PRIVATE) + FX_HOLD_EPOCH;
	} while (!fx_cas(word, &old, new));
	/* Closed by the application: it knows the number, from /proc say. */
	return (old ^ new) & FX_HOLD_PRIVATE && !(old & FX_HOLD_CLOSING);
}

/* One more of a private descriptor, by who has one. */
static inline void fx_hold_add(uint64_t *word)
{
	fx_fetch_add(word, UINT64_C(1));
}

/* Another file has, or will have, this number. Return: the new epoch. */
static inline uint32_t fx_hold_renew(uint64_t *word)
{
	return fx_hold_epoch(fx_fetch_add(word, FX_HOLD_EPOCH) + FX_HOLD_EPOCH);
}

enum fx_closing {
	FX_CLOSING_ALONE, /* nobody waits there: close it */
	FX_CLOSING_HELD, /* the calls that wait must be moved first */
	FX_CLOSING_OTHER, /* somebody else is about to close it: again, later */
};

/**
 * fx_hold_close_begin - announce that a descriptor will be closed
 *
 * Unless FX_CLOSING_OTHER: fx_hold_close_end() is to follow the close.
 * Order: full fence.
 */
static inline enum fx_closing fx_hold_close_begin(uint64_t *word)
{
	uint64_t old = fx_load_relaxed(word);

	do {
		if (fx_unlikely(old & FX_HOLD_CLOSING))
			return FX_CLOSING_OTHER;
	} while (!fx_cas(word, &old, (old | FX_HOLD_CLOSING) + FX_HOLD_EPOCH));
	return old & FX_HOLD_COUNT ? FX_CLOSING_HELD : FX_CLOSING_ALONE;
}

static inline void fx_hold_close_end(uint64_t *word)
{
	fx_fetch_add(word, FX_HOLD_EPOCH - FX_HOLD_CLOSING);
}

/**
 * fx_hold_duplicate - a private descriptor of the same file
 *
 * The caller has one hold on it. Return: the descriptor, or -errno.
 */
int fx_hold_duplicate(int fd);

/* Drop a hold, and close the descriptor if it was the last private one. */
void fx_hold_put(int fd);

#endif /* FX_ENGINE_HOLD_H */
