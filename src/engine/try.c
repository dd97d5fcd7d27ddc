/* SPDX-License-Identifier: MIT */
/*
 * Trying a descriptor call when its record says that it is worth it, and
 * noting in the record what came of it; how, is engine/attempt.c's.
 */
#include "engine/fdrec.h"
#include "engine/park.h"
#include "engine/usual.h"

#include <errno.h>
#include <sys/uio.h>

/* fx_park.enough: right every other time; and forgotten in time. */
#define ENOUGH_MOST 256
#define ENOUGH_FORGET 16

/* Whose turn it is at the other end; and was it right to let others go first? */
static inline void learn_turn(struct fx_park *park, struct fx_fdrec *rec,
			      unsigned dir, bool nothing)
{
	if (dir == FX_OUT) {
		rec->flags |= FX_FD_ANSWERED;
		return;
	}
	if (!(rec->flags & (FX_FD_ANSWERED | FX_FD_DEFERRED)))
		return;
	if (rec->flags & FX_FD_DEFERRED) {
		if (nothing)
			park->enough += park->enough < ENOUGH_MOST;
		else
			park->enough -= park->enough > FX_PARK_ENOUGH;
	}
	rec->flags &= ~(FX_FD_ANSWERED | FX_FD_DEFERRED);
}

/* What a try has shown: not ready, or nothing left; else still ready. */
static inline void tried(struct fx_fdrec *rec, unsigned dir, bool not_ready,
			 bool drained, uint32_t seq)
{
	uint32_t flags = rec->flags | FX_FD_TRIED(dir);

	/* An edge that came meanwhile: still ready. */
	if (rec->edges[dir] == (uint16_t)seq) {
		flags &= ~(FX_FD_EDGE(dir) | FX_FD_READY(dir));
		/* A drained descriptor tells more by an edge once it is in. */
		if (!not_ready && !(drained && flags & FX_FD_SET(dir) &&
				    !(flags & FX_FD_HUP)))
			flags |= FX_FD_READY(dir);
	}
	rec->flags = flags;
}

/* Under the lock, which is released. */
static __attribute__((noinline)) enum fx_try
try_in_full(struct fx_park *park, struct flexsc_entry *call,
	    struct fx_fdrec *rec, unsigned dir, struct fx_guard *guard)
{
	struct fx_hint hint = { .guard = guard, .thread = !guard };
	enum fx_try verdict;
	uint32_t seq = rec->edges[dir];

	hint.kind = rec->kind;
	hint.credit = rec->credit;
	hint.drains = (rec->flags / FX_FD_DRAINS(1u)) & 3u;
	hint.ours = rec->flags & FX_FD_OURS;
	hint.ready = rec->flags & FX_FD_EDGE(dir);
	hint.more = rec->flags & (FX_FD_HUP | FX_FD_URGENT);
	fx_park_unlock(park);
	verdict = fx_attempt(call, &hint);
	fx_park_lock(park);
	rec->kind = hint.kind;
	rec->credit = hint.credit;
	rec->flags &= ~FX_FD_DRAINS(3u);
	rec->flags |= FX_FD_DRAINS((unsigned)hint.drains);
	learn_turn(park, rec, dir,
		   verdict == FX_TRY_PARK || call->ret == -EAGAIN);
	/* Without an edge to come it must be tried again. */
	tried(rec, dir,
	      verdict == FX_TRY_PARK ||
		      (call->ret == -EAGAIN && rec->flags & FX_FD_SET(dir)),
	      hint.drained, seq);
	fx_park_unlock(park);
	return verdict;
}

/* Its arguments say that it does not wait. */
static bool never_waits(const struct flexsc_entry *call)
{
	switch (call->nr) {
	case SYS_recvfrom:
	case SYS_sendto:
	case SYS_recvmmsg:
	case SYS_sendmmsg:
		return call->args[3] & MSG_DONTWAIT;
	case SYS_recvmsg:
	case SYS_sendmsg:
		return call->args[2] & MSG_DONTWAIT;
	case SYS_preadv2:
	case SYS_pwritev2:
		return call->args[5] & RWF_NOWAIT;
	default:
		return false;
	}
}

/* The same, for a socket known as one; see engine/usual.h. */
static inline enum fx_try try_usual(struct fx_park *park,
				    struct flexsc_entry *call,
				    struct fx_fdrec *rec, unsigned dir,
				    struct fx_guard *guard)
{
	uint64_t size = fx_usual_size(call);
	uint32_t seq = rec->edges[dir];
	bool drained = false;
	long r;

	fx_park_unlock(park);
	r = fx_usual_call(call, dir == FX_OUT);
	fx_park_lock(park);
	if (fx_unlikely(r == -ENOTSOCK))
		return try_in_full(park, call, rec, dir, guard);
	learn_turn(park, rec, dir, r == -EAGAIN);
	if (r == -EAGAIN) {
		bool wait = !never_waits(call);

		if (!wait)
			call->ret = r;
		/* Without an edge to come it must be tried again. */
		tried(rec, dir, wait || rec->flags & FX_FD_SET(dir), false,
		      seq);
		fx_park_unlock(park);
		return wait ? FX_TRY_PARK : FX_TRY_DONE;
	}
	call->ret = r;
	if (dir == FX_IN)
		drained = r > 0 && (uint64_t)r < size &&
			  rec->flags & FX_FD_DRAINS(FX_DRAINS_YES);
	else if (r > 0)
		rec->credit -= rec->credit < (uint64_t)r ? rec->credit :
							   (uint32_t)r;
	tried(rec, dir, false, drained, seq);
	if (fx_unlikely(dir == FX_OUT && r >= 0 && (uint64_t)r < size &&
			call->nr != SYS_sendfile && !never_waits(call)))
		return try_in_full(park, call, rec, dir, guard);
	fx_park_unlock(park);
	return FX_TRY_DONE;
}

static enum fx_try try_alone(struct flexsc_entry *call, struct fx_guard *guard)
{
	struct fx_hint hint = { .guard = guard, .thread = !guard };
	enum fx_try verdict = fx_attempt(call, &hint);

	if (verdict != FX_TRY_PARK)
		return verdict;
	if (!fx_is_ready_wait(call->nr))
		return FX_TRY_THREAD;
	call->ret = -ENOSYS;
	return FX_TRY_DONE;
}

/*
 * Would it only find that it has to wait? What does not wait is not to be
 * refused by what is remembered: the edge may be known to the caller already,
 * by an epoll set of its own, and not yet to us.
 */
static inline bool must_wait(const struct fx_fdrec *rec,
			     const struct flexsc_entry *call, unsigned dir,
			     bool turn)
{
	if (!(rec->first[dir] && !turn) &&
	    (rec->flags & (FX_FD_TRIED(dir) | FX_FD_READY(dir) | FX_FD_HUP)) !=
		    FX_FD_TRIED(dir))
		return false;
	if (fx_is_ready_wait(call->nr))
		return true;
	return rec->flags & FX_FD_BLOCKING && !never_waits(call);
}

/* And nothing is known to have come since. */
static bool is_answered(const struct fx_fdrec *rec)
{
	return rec->kind == FX_KIND_SOCKET && !rec->first[FX_IN] &&
	       (rec->flags & (FX_FD_ANSWERED | FX_FD_EDGE(FX_IN) |
			      FX_FD_HUP)) == FX_FD_ANSWERED;
}

/* Behind so many others it will be tried, whatever is known. */
static bool defer_read(struct fx_park *park, struct fx_fdrec *rec,
		       uint32_t nr_others)
{
	if (nr_others < park->enough)
		return false;
	rec->flags |= FX_FD_DEFERRED | FX_FD_READY(FX_IN);
	return true;
}

bool fx_park_later(struct fx_park *park, const struct flexsc_entry *call,
		   uint32_t nr_others)
{
	const struct fx_call_desc *desc = &park->table[call->nr];
	struct fx_fdrec *rec;
	bool later = false;

	if (nr_others < FX_PARK_ENOUGH || desc->call_class != FX_CALL_FD ||
	    desc->flags & FX_CALL_OUT)
		return false;
	fx_park_lock(park);
	rec = fx_park_record(park, (int)call->args[desc->fd_arg], false);
	if (rec && is_answered(rec)) {
		later = defer_read(park, rec, nr_others);
		rec->flags &= ~FX_FD_ANSWERED;
		if (!later && ++park->too_few % ENOUGH_FORGET == 0)
			park->enough -= park->enough > FX_PARK_ENOUGH;
	}
	fx_park_unlock(park);
	return later;
}

void fx_park_answered(struct fx_park *park, const struct flexsc_entry *call,
		      uint32_t nr_others)
{
	struct fx_fdrec *rec;

	fx_park_lock(park);
	rec = fx_park_record(
		park, (int)call->args[park->table[call->nr].fd_arg], false);
	if (rec && is_answered(rec) && defer_read(park, rec, nr_others))
		rec->flags &= ~FX_FD_ANSWERED;
	fx_park_unlock(park);
}

bool fx_park_together(struct fx_park *park, const struct flexsc_entry *call)
{
	const struct fx_call_desc *desc = &park->table[call->nr];
	struct fx_fdrec *rec;
	bool together;

	switch (call->nr) {
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
		break;
	default:
		return false;
	}
	fx_park_lock(park);
	rec = fx_park_record(park, (int)call->args[desc->fd_arg], false);
	together = rec && rec->kind == FX_KIND_SOCKET && !rec->first[FX_OUT] &&
		   rec->flags & FX_FD_TRIED(FX_IN) &&
		   !(rec->flags & FX_FD_ANSWERED);
	fx_park_unlock(park);
	return together;
}

enum fx_try fx_park_try(struct fx_park *park, struct flexsc_entry *call,
			bool turn, struct fx_guard *guard, uint32_t *seq)
{
	const struct fx_call_desc *desc = &park->table[call->nr];
	unsigned dir = desc->flags & FX_CALL_OUT ? FX_OUT : FX_IN;
	int fd = (int)call->args[desc->fd_arg];
	enum fx_try verdict;
	struct fx_fdrec *rec;

	fx_park_lock(park);
	rec = fx_park_record(park, fd, true);
	if (fx_unlikely(!rec)) {
		fx_park_unlock(park);
		return try_alone(call, guard);
	}
	fx_park_look(park, rec, fd);
	rec->strays = 0;
	*seq = fx_park_seq(rec, dir);
	if (must_wait(rec, call, dir, turn)) {
		fx_park_unlock(park);
		return FX_TRY_PARK;
	}
	if (fx_likely(rec->kind == FX_KIND_SOCKET &&
		      fx_usual(call, rec->credit) &&
		      (dir == FX_OUT || rec->flags & FX_FD_DRAINS(3u))))
		verdict = try_usual(park, call, rec, dir, guard);
	else
		verdict = try_in_full(park, call, rec, dir, guard);
	if (verdict != FX_TRY_PARK)
		return verdict;
	fx_park_lock(park);
	if (fx_park_refuses(rec, call, fd))
		verdict = FX_TRY_DONE;
	fx_park_unlock(park);
	return verdict;
}
