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

static int call_fd(const struct fx_park *park, const struct flexsc_entry *call)
{
	return (int)call->args[park->table[call->nr].fd_arg];
}

/* So many bytes were sent. */
static inline void use_credit(struct fx_fdrec *rec, long bytes)
{
	rec->credit -= rec->credit < (uint64_t)bytes ? rec->credit :
						       (uint32_t)bytes;
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

/* Its -EAGAIN is O_NONBLOCK's doing. */
static bool refused_for_now(const struct flexsc_entry *call)
{
	return !fx_is_ready_wait(call->nr) && call->nr != SYS_connect &&
	       !never_waits(call);
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
	hint.blocking = rec->flags & FX_FD_BLOCKING;
	hint.patient = rec->flags & FX_FD_PATIENT;
	hint.ready = rec->flags & FX_FD_EDGE(dir);
	hint.more = rec->flags & (FX_FD_HUP | FX_FD_URGENT);
	fx_park_unlock(park);
	verdict = fx_attempt(call, &hint);
	if (fx_unlikely(hint.patient && verdict == FX_TRY_DONE &&
			call->ret == -EAGAIN && refused_for_now(call))) {
		verdict = FX_TRY_PARK;
		call->ret = 0;
	}
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

/*
 * The same, for a socket known as one; see engine/usual.h. It was made, under
 * the lock again: what has come of it. @seq: edges seen before.
 */
static __attribute__((noinline)) enum fx_try
after_usual(struct fx_park *park, struct flexsc_entry *call,
	    struct fx_fdrec *rec, unsigned dir, struct fx_guard *guard,
	    uint32_t seq, long r)
{
	uint64_t size = fx_usual_size(call);
	bool drained = false;

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
		use_credit(rec, r);
	tried(rec, dir, false, drained, seq);
	if (fx_unlikely(dir == FX_OUT && r >= 0 && (uint64_t)r < size &&
			call->nr != SYS_sendfile && !never_waits(call)))
		return try_in_full(park, call, rec, dir, guard);
	fx_park_unlock(park);
	return FX_TRY_DONE;
}

static enum fx_try try_usual(struct fx_park *park, struct flexsc_entry *call,
			     struct fx_fdrec *rec, unsigned dir,
			     struct fx_guard *guard)
{
	uint32_t seq = rec->edges[dir];
	long r;

	fx_park_unlock(park);
	r = fx_usual_call(call, dir == FX_OUT);
	fx_park_lock(park);
	return after_usual(park, call, rec, dir, guard, seq, r);
}

static enum fx_try try_alone(struct flexsc_entry *call, struct fx_guard *guard)
{
	struct fx_hint hint = { .guard = guard, .thread = !guard };
	enum fx_try verdict = fx_attempt(call, &hint);

	if (verdict != FX_TRY_PARK)
		return verdict;
	if (!fx_is_ready_wait(call->nr))
		return FX_TRY_THREAD;
	call->ret = -ENOMEM;
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

/* The caller has tried by itself: nothing more before an edge. */
static inline void note_tried_elsewhere(struct fx_fdrec *rec,
					const struct flexsc_entry *call,
					unsigned dir, bool turn)
{
	if (fx_is_ready_wait(call->nr) && call->args[1] & FX_READY_NEXT &&
	    !turn && !(rec->flags & FX_FD_EDGE(dir))) {
		rec->flags |= FX_FD_TRIED(dir);
		rec->flags &= ~FX_FD_READY(dir);
	}
}

/* And nothing is known to have come since. */
static inline bool is_answered(const struct fx_fdrec *rec)
{
	return (rec->flags & (FX_FD_ANSWERED | FX_FD_EDGE(FX_IN) |
			      FX_FD_HUP)) == FX_FD_ANSWERED &&
	       rec->kind == FX_KIND_SOCKET && !rec->first[FX_IN];
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

static __attribute__((noinline)) bool
is_later(struct fx_park *park, struct fx_fdrec *rec, uint32_t nr_others)
{
	bool later = defer_read(park, rec, nr_others);

	rec->flags &= ~FX_FD_ANSWERED;
	if (!later && ++park->too_few % ENOUGH_FORGET == 0)
		park->enough -= park->enough > FX_PARK_ENOUGH;
	return later;
}

static bool is_answer(const struct fx_fdrec *rec, unsigned nr)
{
	if (nr != SYS_write && nr != SYS_writev && nr != SYS_sendto &&
	    nr != SYS_sendmsg)
		return false;
	return rec->kind == FX_KIND_SOCKET && !rec->first[FX_OUT] &&
	       (rec->flags & (FX_FD_TRIED(FX_IN) | FX_FD_ANSWERED)) ==
		       FX_FD_TRIED(FX_IN);
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

/* It would have to wait: not, because of O_NONBLOCK? */
static enum fx_try unless_refused(struct fx_park *park,
				  const struct fx_fdrec *rec,
				  struct flexsc_entry *call, enum fx_try verdict)
{
	bool refused;

	if (fx_likely(verdict != FX_TRY_PARK))
		return verdict;
	fx_park_lock(park);
	refused = fx_park_refuses(rec, call, call_fd(park, call));
	fx_park_unlock(park);
	return refused ? FX_TRY_DONE : FX_TRY_PARK;
}

/* Is it to be made later? Under the lock, which is released then. */
static inline enum fx_try put_off(struct fx_park *park, struct fx_fdrec *rec,
			   const struct flexsc_entry *call, unsigned dir,
			   struct fx_others others)
{
	enum fx_try verdict = FX_TRY_DONE;

	if (dir == FX_OUT) {
		if (others.gathers && is_answer(rec, call->nr))
			verdict = FX_TRY_TOGETHER;
	} else if (others.nr >= FX_PARK_ENOUGH && is_answered(rec) &&
		   is_later(park, rec, others.nr)) {
		verdict = FX_TRY_LATER;
	}
	if (verdict != FX_TRY_DONE)
		fx_park_unlock(park);
	return verdict;
}

enum fx_try fx_park_try(struct fx_park *park, struct flexsc_entry *call,
			struct fx_others others, struct fx_guard *guard,
			uint32_t *seq)
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
	verdict = put_off(park, rec, call, dir, others);
	if (verdict != FX_TRY_DONE)
		return verdict;
	rec->strays = 0;
	*seq = fx_park_seq(rec, dir);
	note_tried_elsewhere(rec, call, dir, others.turn);
	if (must_wait(rec, call, dir, others.turn)) {
		fx_park_unlock(park);
		return FX_TRY_PARK;
	}
	if (fx_likely(rec->kind == FX_KIND_SOCKET &&
		      fx_usual(call, rec->credit) &&
		      (dir == FX_OUT || rec->flags & FX_FD_DRAINS(3u))))
		verdict = try_usual(park, call, rec, dir, guard);
	else
		verdict = try_in_full(park, call, rec, dir, guard);
	return unless_refused(park, rec, call, verdict);
}

/* Quick ways ---------------------------------------------------------------- */

/*
 * Most calls of a server in a straight line: one buffer in or out of a socket
 * that is known as one. They do what fx_park_try() does; what is not
 * usual is left to that, and to after_usual() what did not move all, or anything.
 */

/* Would it only be tried, and with what flags? -1: no. */
static inline int plain_flags(const struct flexsc_entry *call, unsigned dir)
{
	int usual = dir == FX_OUT ? MSG_DONTWAIT | MSG_NOSIGNAL : MSG_DONTWAIT;

	if (call->nr <= SYS_write)
		return usual;
	if ((int)call->args[3] & ~(MSG_NOSIGNAL | MSG_DONTWAIT) ||
	    call->args[4])
		return -1;
	return usual;
}

static inline bool known_to_wait(const struct fx_fdrec *rec, unsigned dir,
				 bool turn)
{
	return (rec->first[dir] && !turn) ||
	       (rec->flags & (FX_FD_TRIED(dir) | FX_FD_READY(dir) |
			      FX_FD_HUP)) == FX_FD_TRIED(dir);
}

/* As must_wait(), of one that is known to wait. */
static inline bool may_wait(const struct fx_fdrec *rec,
			    const struct flexsc_entry *call)
{
	return rec->flags & FX_FD_BLOCKING &&
	       (call->nr <= SYS_write || !(call->args[3] & MSG_DONTWAIT));
}

static inline enum fx_try quick_read(struct fx_park *park,
				     struct flexsc_entry *call,
				     struct fx_fdrec *rec,
				     struct fx_guard *guard, uint32_t *seq,
				     int flags)
{
	uint32_t edges = rec->edges[FX_IN];
	uint64_t size = call->args[2];
	long r;

	*seq = fx_park_seq(rec, FX_IN);
	fx_park_unlock(park);
	r = fx_arch_syscall(SYS_recvfrom, (int)call->args[0],
			    (long)call->args[1], (long)size, flags, 0, 0);
	fx_park_lock(park);
	if (fx_unlikely(r <= 0))
		return unless_refused(park, rec, call,
				      after_usual(park, call, rec, FX_IN, guard,
						  edges, r));
	call->ret = r;
	learn_turn(park, rec, FX_IN, false);
	tried(rec, FX_IN, false,
	      (uint64_t)r < size && rec->flags & FX_FD_DRAINS(FX_DRAINS_YES),
	      edges);
	fx_park_unlock(park);
	return FX_TRY_DONE;
}

static inline enum fx_try quick_write(struct fx_park *park,
				      struct flexsc_entry *call,
				      struct fx_fdrec *rec,
				      struct fx_guard *guard, uint32_t *seq,
				      int flags)
{
	uint32_t edges = rec->edges[FX_OUT];
	uint64_t size = call->args[2];
	long r;

	*seq = fx_park_seq(rec, FX_OUT);
	fx_park_unlock(park);
	r = fx_arch_syscall(SYS_sendto, (int)call->args[0], (long)call->args[1],
			    (long)size, flags, 0, 0);
	fx_park_lock(park);
	if (fx_unlikely((uint64_t)r != size))
		return unless_refused(park, rec, call,
				      after_usual(park, call, rec, FX_OUT,
						  guard, edges, r));
	call->ret = r;
	rec->flags |= FX_FD_ANSWERED;
	use_credit(rec, r);
	tried(rec, FX_OUT, false, false, edges);
	fx_park_unlock(park);
	return FX_TRY_DONE;
}

/* Under the lock. NULL: it is not of use here what is known of it. */
static inline struct fx_fdrec *quick_record(struct fx_park *park, int fd)
{
	struct fx_fdrec *rec = fx_park_record(park, fd, false);

	return fx_likely(rec && rec->kind == FX_KIND_SOCKET &&
			 rec->flags & FX_FD_DRAINS(3u) &&
			 !fx_park_is_stale(park, rec, fd)) ?
		       rec :
		       NULL;
}

/* @dir is a constant: one straight line each. */
static inline __attribute__((always_inline)) enum fx_try
quick(struct fx_park *park, struct flexsc_entry *call, unsigned dir,
      struct fx_others others, struct fx_guard *guard, uint32_t *seq)
{
	int flags = plain_flags(call, dir);
	enum fx_try verdict;
	struct fx_fdrec *rec;

	fx_park_lock(park);
	rec = quick_record(park, (int)call->args[0]);
	if (fx_likely(rec)) {
		verdict = put_off(park, rec, call, dir, others);
		if (verdict != FX_TRY_DONE)
			return verdict;
	}
	if (fx_unlikely(!rec || flags < 0 || !call->args[2] || call->ret)) {
		fx_park_unlock(park);
		if (rec) /* has been asked for them */
			others.nr = others.gathers = 0;
		return fx_park_try(park, call, others, guard, seq);
	}
	rec->strays = 0;
	if (known_to_wait(rec, dir, others.turn) && may_wait(rec, call)) {
		*seq = fx_park_seq(rec, dir);
		fx_park_unlock(park);
		return FX_TRY_PARK;
	}
	return dir == FX_OUT ?
		       quick_write(park, call, rec, guard, seq, flags) :
		       quick_read(park, call, rec, guard, seq, flags);
}

enum fx_try fx_park_quick(struct fx_park *park, struct flexsc_entry *call,
			  struct fx_others others, struct fx_guard *guard,
			  uint32_t *seq)
{
	switch (call->nr) {
	case SYS_read:
	case SYS_recvfrom:
		return quick(park, call, FX_IN, others, guard, seq);
	case SYS_write:
	case SYS_sendto:
		return quick(park, call, FX_OUT, others, guard, seq);
	default:
		return FX_TRY_NOT_QUICK;
	}
}
