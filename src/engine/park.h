/* SPDX-License-Identifier: MIT */
/*
 * Parking calls until their descriptor is ready, without a thread each: one
 * edge-triggered epoll set, one record a descriptor, two queues a record.
 *
 * What is known of a descriptor is a hint that can be stale, because closes
 * can happen unseen. So every wake-up retries the call, and a call parked for
 * FX_PARK_CHECK_MS is looked at once more: is the descriptor still in the set
 * (ENOENT: add it again), has it become O_NONBLOCK, has it a time-out of its
 * own. A descriptor that passed lately is checked after FX_PARK_TRUST_MS.
 *
 * Lost wake-ups: an edge can arrive between a try that said "not ready" and
 * the parking. Each record counts its edges per direction; the try notes the
 * count first, and parking under another count says "try again".
 *
 * Locking: all functions may be called from any thread once `shared` is set;
 * until then only the owner exists and no lock is taken. Nobody holds the
 * lock across a system call that can sleep.
 */
#ifndef FX_ENGINE_PARK_H
#define FX_ENGINE_PARK_H

#include "base/futex.h"
#include "engine/attempt.h"
#include "engine/desc.h"
#include "page/counters.h"
#include "page/set.h"

#define FX_PARK_CHECK_MS 10
/* See fx_park_try(). */
#define FX_PARK_ENOUGH 8
#define FX_PARK_TRUST_MS 500
/* A stamp of the coarse clock may be so much older than it says. */
#define FX_PARK_COARSE_MS 10

struct fx_fdrec;
struct fx_guard;

enum { FX_PARK_SOON = 1, FX_PARK_LATER, FX_PARK_TIMED, FX_PARK_QUEUES };

struct fx_park {
	struct fx_lock lock;
	bool shared;
	bool keeps; /* constant: a call keeps its file, see engine/hold.h */
	int epfd;
	int wakefd; /* in the set: level-triggered, marks the owner's eventfd */
	struct fx_set *set;
	struct flexsc_counters *counters;
	const struct fx_call_desc *table;
	struct fx_fdrec **chunks;
	uint32_t active; /* first descriptor + 1 with something to retry */
	uint32_t oldest[FX_PARK_QUEUES], newest[FX_PARK_QUEUES]; /* index + 1 */
	uint32_t nr_parked;
	uint32_t enough; /* others, for FX_TRY_LATER to be right mostly */
	uint32_t too_few; /* calls for which there were not so many */
};

/* fx_beside.state, bits */
#define FX_PARK_STATE_PARKED 1
#define FX_PARK_STATE_TURN 2 /* handed out by fx_park_next() */
#define FX_PARK_STATE_FRESH 4 /* O_NONBLOCK was looked at for this call */

enum fx_parked {
	FX_PARKED,
	FX_PARK_RETRY, /* it became ready meanwhile */
	FX_PARK_THREAD, /* nothing to wait for: needs a thread */
	FX_PARK_FAILED, /* entry->ret is the result */
};

/* @wakefd: a descriptor whose readiness only ends fx_park_wait(), or -1. */
int fx_park_init(struct fx_park *park, struct fx_set *set,
		 const struct fx_call_desc *table,
		 struct flexsc_counters *counters, int wakefd);
void fx_park_fini(struct fx_park *park);

/* One more descriptor whose readiness only ends fx_park_wait(). */
int fx_park_also(struct fx_park *park, int fd);

/**
 * struct fx_others - who could go before a call that is to be tried
 * @nr: so many of the caller's other tasks could run meanwhile
 * @gathers: it would make several answers in a row
 * @turn: the call has waited and its turn has come
 */
struct fx_others {
	uint32_t nr;
	bool gathers, turn;
};

/**
 * fx_park_try - try a call whose class is FX_CALL_FD
 * @others: all zero if it is to be tried in any case
 * @guard: of the calling thread; NULL: it may block
 * @seq: edges seen so far, and which file; for fx_park_add()
 *
 * Does not even try when calls are waiting on the descriptor already (except
 * in its turn), or when it is known not to be ready.
 *
 * FX_TRY_LATER: others should go first, so that this call need not wait. Of a
 * descriptor that was answered and not read since, the next request is still
 * on its way. A call that is tried too early costs a system call (or not, if it
 * is known to have to wait), parking, and a notice of epoll; tried after others
 * have run, it mostly finds what it wants. How many it takes depends on the
 * peers: learnt from what the calls found. Then it is called again, without
 * others.
 *
 * FX_TRY_TOGETHER: it is the answer to a request, on a socket. Such calls wake
 * somebody each. Made in a row, most of them find their peer's processor awake.
 */
enum fx_try fx_park_try(struct fx_park *park, struct flexsc_entry *call,
			struct fx_others others, struct fx_guard *guard,
			uint32_t *seq);

/* The same in a shorter way, of the most usual numbers. */
enum fx_try fx_park_quick(struct fx_park *park, struct flexsc_entry *call,
			  struct fx_others others, struct fx_guard *guard,
			  uint32_t *seq);

/* It was made, before @nr_others others run: is the next read to wait more? */
void fx_park_answered(struct fx_park *park, const struct flexsc_entry *call,
		      uint32_t nr_others);

/* Was this entry handed out by fx_park_next(), to be tried before others? */
static inline bool fx_park_turn(const struct fx_park *park, uint32_t index)
{
	return park->set->beside[index].state & FX_PARK_STATE_TURN;
}

/* Park an entry after fx_park_try() said so. */
enum fx_parked fx_park_add(struct fx_park *park, uint32_t index, uint32_t seq);

/* Next entry to try again, taken out of its queue; FX_NO_ENTRY if none. */
uint32_t fx_park_next(struct fx_park *park);

/**
 * fx_park_wait - ask the kernel what became ready
 * @timeout_ns: 0 only looks; FX_NEVER no limit
 *
 * One thread at a time. Return: events seen; *@woken if wakefd was among
 * them.
 */
int fx_park_wait(struct fx_park *park, uint64_t timeout_ns, bool *woken);

/* Nanoseconds until fx_park_check() is due, FX_NEVER if it is not needed. */
uint64_t fx_park_due(struct fx_park *park);

/**
 * fx_park_check - look again at calls that have been parked for long
 *
 * Return: an entry that is over (its ret is the result), or FX_NO_ENTRY when
 * there is none at present. Call it until it says so.
 */
uint32_t fx_park_check(struct fx_park *park);

/* From now on, or no more: a second one like @wakefd. 0 or -errno. */
int fx_park_wake_too(struct fx_park *park, int fd, bool on);

/* End another thread's fx_park_wait(). */
void fx_park_poke(struct fx_park *park);

/* Take a parked entry out; false if it is not parked. */
bool fx_park_cancel(struct fx_park *park, uint32_t index);

/* Take out one entry parked on @fd; FX_NO_ENTRY if none is left. */
uint32_t fx_park_cancel_fd(struct fx_park *park, int fd);

/*
 * Where calls keep their files (engine/hold.h). fx_park_hold(): an entry goes
 * to a syscall thread. fx_park_enter(): the thread is about to make its call.
 * fx_park_drop(): it is over.
 */
void fx_park_hold(struct fx_park *park, uint32_t index);
void fx_park_enter(struct fx_park *park, uint32_t index);
void fx_park_drop(struct fx_park *park, uint32_t index);

/**
 * fx_park_move - calls parked on @fd wait for @to from now on
 * @to: private, or -1: none can be had
 *
 * Return: an entry that is over for that (its ret is the result), or
 * FX_NO_ENTRY. Call it until it says so.
 */
uint32_t fx_park_move(struct fx_park *park, int fd, int to);

/* The same of an entry that is neither parked nor in anybody's hands. */
void fx_park_move_one(struct fx_park *park, uint32_t index, int to);

/* Calls of this engine that hold @fd. */
uint32_t fx_park_nr_held(struct fx_park *park, int fd);

/*
 * A posted close is about to be carried out; and: was this descriptor closed
 * by one that was posted after the call at @posted? Then its EBADF is the
 * close's doing: consumers may run what lies between in another order.
 */
void fx_park_closing(struct fx_park *park, int fd, uint32_t posted);
bool fx_park_closed_after(struct fx_park *park, int fd, uint32_t posted);

/* What a call is about to do, or did, to descriptors. */
void fx_park_before(struct fx_park *park, const struct fx_call_desc *desc,
		    const struct flexsc_entry *call);
void fx_park_after(struct fx_park *park, const struct fx_call_desc *desc,
		   const struct flexsc_entry *call, int64_t ret);

/* Forget a descriptor's record: it is, or will be, another file. */
void fx_park_reset(struct fx_park *park, int fd, enum fx_kind kind, bool ours);

/* Its calls wait even if it is O_NONBLOCK. 0 or -ENOMEM. */
int fx_park_patient(struct fx_park *park, int fd);

/* A new record for a connection: what sort of socket is as its listener. */
void fx_park_accepted(struct fx_park *park, int listener, int fd);

#endif /* FX_ENGINE_PARK_H */
