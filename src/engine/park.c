/* SPDX-License-Identifier: MIT */
/*
 * Records, queues and the epoll set; see engine/park.h for the protocol. It
 * decides when to try, engine/attempt.c how.
 */
#include "engine/park.h"

#include "arch/arch.h"
#include "arch/fd.h"
#include "base/clock.h"
#include "base/pages.h"
#include "engine/parkq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define WAKE_TAG UINT64_MAX
#define OTHER_TAG (UINT64_MAX - 1) /* no descriptor: belongs to no record */
#define EVENTS_A_ROUND 256
#define STRAYS_MOST 2
#define CHUNK_BYTES (FX_FDREC_CHUNK * sizeof(struct fx_fdrec))

static long sys(long nr, long a0, long a1, long a2, long a3, long a4)
{
	return fx_arch_syscall(nr, a0, a1, a2, a3, a4, 0);
}

int fx_park_init(struct fx_park *park, struct fx_set *set,
		 const struct fx_call_desc *table,
		 struct flexsc_counters *counters, int wakefd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = WAKE_TAG };
	long fd;

	*park = (struct fx_park){ .set = set,
				  .table = table,
				  .counters = counters,
				  .wakefd = wakefd,
				  .enough = FX_PARK_ENOUGH };
	park->chunks = calloc(FX_FDREC_CHUNKS, sizeof(*park->chunks));
	if (!park->chunks)
		return -ENOMEM;
	fd = sys(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0, 0, 0);
	if (fd >= 0 && wakefd >= 0) {
		long bad = sys(SYS_epoll_ctl, fd, EPOLL_CTL_ADD, wakefd,
			       (long)&ev, 0);
		if (bad) {
			fx_close((int)fd);
			fd = bad;
		}
	}
	if (fd < 0) {
		free(park->chunks);
		return (int)fd;
	}
	park->epfd = (int)fd;
	return 0;
}

int fx_park_also(struct fx_park *park, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = OTHER_TAG };

	return (int)sys(SYS_epoll_ctl, park->epfd, EPOLL_CTL_ADD, fd, (long)&ev,
			0);
}

void fx_park_fini(struct fx_park *park)
{
	fx_close(park->epfd);
	for (unsigned i = 0; i < FX_FDREC_CHUNKS; i++)
		fx_pages_free(park->chunks[i], CHUNK_BYTES);
	free(park->chunks);
}

bool fx_park_add_chunk(struct fx_park *park, unsigned chunk)
{
	park->chunks[chunk] = fx_pages_resize(NULL, 0, CHUNK_BYTES);
	fx_hold_reach((chunk + 1) * FX_FDREC_CHUNK - 1);
	return park->chunks[chunk] != NULL;
}

static int call_fd(const struct fx_park *park, const struct flexsc_entry *call)
{
	return (int)call->args[park->table[call->nr].fd_arg];
}

static unsigned call_dir(const struct fx_park *park,
			 const struct flexsc_entry *call)
{
	return park->table[call->nr].flags & FX_CALL_OUT ? FX_OUT : FX_IN;
}

/* Positions wrap; a close is not remembered for longer than a full ring. */
static bool closed_after(const struct fx_fdrec *rec, uint32_t posted)
{
	uint32_t behind = rec->closed_at - posted;

	return (rec->flags & FX_FD_CLOSED) && behind &&
	       behind <= 2 * FLEXSC_MAX_ENTRIES;
}

/* Parking ---------------------------------------------------------------- */

/* Put the descriptor into the set for @dir. 0 or -errno of epoll_ctl. */
static long watch(struct fx_park *park, struct fx_fdrec *rec, int fd,
		  unsigned dir)
{
	struct epoll_event ev = {
		.events = EPOLLET | EPOLLRDHUP,
		.data.u64 = (uint64_t)rec->generation << 32 | (uint32_t)fd,
	};
	unsigned set = (rec->flags & (FX_FD_SET(FX_IN) | FX_FD_SET(FX_OUT))) |
		       FX_FD_SET(dir);
	int op = set == FX_FD_SET(dir) ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
	long bad;

	if (rec->flags & FX_FD_SET(dir))
		return 0;
	if (set & FX_FD_SET(FX_IN))
		ev.events |= EPOLLIN | EPOLLPRI;
	if (set & FX_FD_SET(FX_OUT))
		ev.events |= EPOLLOUT;
	bad = sys(SYS_epoll_ctl, park->epfd, op, fd, (long)&ev, 0);
	if (bad == -EEXIST)
		bad = sys(SYS_epoll_ctl, park->epfd, EPOLL_CTL_MOD, fd,
			  (long)&ev, 0);
	else if (bad == -ENOENT)
		bad = sys(SYS_epoll_ctl, park->epfd, EPOLL_CTL_ADD, fd,
			  (long)&ev, 0);
	if (!bad)
		rec->flags |= set;
	return bad;
}

/* The descriptor's own O_NONBLOCK rules; seen once, checked again later. */
static bool nonblocking(const struct fx_fdrec *rec, int fd)
{
	long flags;

	if (rec->flags & (FX_FD_BLOCKING | FX_FD_PATIENT))
		return false;
	flags = sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0);
	return flags >= 0 && (flags & O_NONBLOCK);
}

/* What was done before counts more. */
static enum fx_parked fail(struct flexsc_entry *call, int64_t ret)
{
	if (call->ret <= 0)
		call->ret = ret;
	return FX_PARK_FAILED;
}

bool fx_park_refuses(const struct fx_fdrec *rec, struct flexsc_entry *call,
		     int fd)
{
	if (fx_is_ready_wait(call->nr) || !nonblocking(rec, fd) ||
	    call->nr == SYS_connect)
		return false;
	fail(call, -EAGAIN);
	return true;
}

/* A wait for readiness is no call that a thread could make. */
static enum fx_parked to_thread(struct flexsc_entry *call)
{
	return fx_is_ready_wait(call->nr) ? fail(call, -ENOSYS) :
					    FX_PARK_THREAD;
}

static enum fx_parked cannot_wait(struct fx_fdrec *rec,
				  struct flexsc_entry *call, long bad)
{
	if (bad == -EPERM)
		rec->kind = FX_KIND_REGULAR;
	else if (bad == -EBADF)
		return fail(call, -EBADF);
	return to_thread(call); /* ENOSPC, ENOMEM, ELOOP: no room in the set */
}

/* Keep the file that was tried from being closed before it was moved. */
static enum fx_hold hold(struct fx_park *park, struct fx_fdrec *rec,
			 uint32_t index, int fd, uint32_t seq)
{
	enum fx_hold got;

	if (!park->keeps || beside(park, index)->held)
		return FX_HOLD_TAKEN;
	got = fx_hold_take(fx_hold_word(fd), (uint16_t)(seq >> 16));
	if (got == FX_HOLD_TAKEN) {
		beside(park, index)->held = (uint32_t)fd + 1;
		rec->held++;
	}
	return got;
}

/* Into the queues. @later: to be tried again at once. */
static void place(struct fx_park *park, struct fx_fdrec *rec, unsigned dir,
		  uint32_t index, bool at_head, bool later)
{
	uint32_t now = fx_now_ms_coarse();

	queue_append(park, rec, dir, index, at_head);
	time_append(park,
		    rec->checked_ms &&
				    now - rec->checked_ms < FX_PARK_TRUST_MS ?
			    FX_PARK_LATER :
			    FX_PARK_SOON,
		    index, now);
	fx_store_relaxed(&park->nr_parked, park->nr_parked + 1);
	fx_count(park->counters, parked);
	if (fx_unlikely(later)) {
		rec->flags |= FX_FD_READY(dir);
		activate(park, rec, (int)beside(park, index)->fd);
	}
}

/* Under the lock. */
static enum fx_parked add(struct fx_park *park, struct fx_fdrec *rec,
			  uint32_t index, uint32_t seq)
{
	struct flexsc_entry *call = fx_set_entry(park->set, index);
	int fd = call_fd(park, call);
	unsigned dir = call_dir(park, call);
	bool turn = fx_park_turn(park, index), fresh;
	enum fx_hold held;
	long bad;

	/* Pairs with the cancel, which marks first and looks here second. */
	if (fx_set_cancel_wanted(park->set, index) ||
	    closed_after(rec, beside(park, index)->posted))
		return fail(call, -ECANCELED);
	held = hold(park, rec, index, fd, seq);
	if (held != FX_HOLD_TAKEN && begun(call))
		return FX_PARK_FAILED;
	if (held == FX_HOLD_STALE ||
	    (rec->edges[dir] != (uint16_t)seq && (turn || !rec->first[dir])))
		return FX_PARK_RETRY;
	fresh = !(rec->flags & FX_FD_BLOCKING);
	if (fx_park_refuses(rec, call, fd))
		return FX_PARK_FAILED;
	if (!fx_is_ready_wait(call->nr) && call->nr != SYS_connect)
		rec->flags |= FX_FD_BLOCKING;
	bad = watch(park, rec, fd, dir);
	if (bad)
		return cannot_wait(rec, call, bad);
	beside(park, index)->fd = (uint32_t)fd;
	beside(park, index)->state = FX_PARK_STATE_PARKED |
				     (fresh ? FX_PARK_STATE_FRESH : 0);
	/* Begun, or in its turn: the next edge is still its. */
	place(park, rec, dir, index, turn || call->ret > 0,
	      held == FX_HOLD_LATER);
	return FX_PARKED;
}

enum fx_parked fx_park_add(struct fx_park *park, uint32_t index, uint32_t seq)
{
	struct flexsc_entry *call = fx_set_entry(park->set, index);
	struct fx_fdrec *rec;
	enum fx_parked out;

	fx_park_lock(park);
	rec = fx_park_record(park, call_fd(park, call), true);
	out = rec ? add(park, rec, index, seq) : to_thread(call);
	fx_park_unlock(park);
	return out;
}

/* Waking ----------------------------------------------------------------- */

/*
 * Nobody waits for it here. A descriptor whose thread has moved to another queue
 * wakes this one's owner for nothing. If it comes back it is put in the set again, which tells if it
 * is ready.
 */
static void note_stray(struct fx_park *park, struct fx_fdrec *rec, int fd)
{
	if (rec->held || ++rec->strays < STRAYS_MOST)
		return;
	sys(SYS_epoll_ctl, park->epfd, EPOLL_CTL_DEL, fd, 0, 0);
	rec->flags &= ~(FX_FD_SET(FX_IN) | FX_FD_SET(FX_OUT));
	rec->generation++;
	rec->strays = 0;
}

static inline void note_edge(struct fx_park *park, const struct epoll_event *ev)
{
	int fd = (int)(uint32_t)ev->data.u64;
	struct fx_fdrec *rec = fx_park_record(park, fd, false);
	uint32_t bits = ev->events, flags;

	if (!rec || rec->generation != (uint32_t)(ev->data.u64 >> 32))
		return;
	flags = rec->flags;
	if (fx_unlikely(bits & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))) {
		flags |= FX_FD_HUP;
		if (bits & (EPOLLHUP | EPOLLERR))
			bits |= EPOLLOUT;
		bits |= EPOLLIN;
	}
	if (fx_unlikely(bits & EPOLLPRI)) {
		flags |= FX_FD_URGENT;
		bits |= EPOLLIN;
	}
	if (bits & EPOLLIN) {
		rec->edges[FX_IN]++;
		flags |= FX_FD_READY(FX_IN) | FX_FD_EDGE(FX_IN);
	}
	if (bits & EPOLLOUT) {
		rec->edges[FX_OUT]++;
		flags |= FX_FD_READY(FX_OUT) | FX_FD_EDGE(FX_OUT);
	}
	rec->flags = flags;
	if (rec->first[FX_IN] || rec->first[FX_OUT])
		activate(park, rec, fd);
	else
		note_stray(park, rec, fd);
}

static long epoll_wait_ns(int epfd, struct epoll_event *events, int max,
			  uint64_t timeout_ns)
{
	static uint32_t only_ms; /* an old kernel, or a filter, or valgrind */
	struct timespec ts = fx_timespec(timeout_ns);
	int ms = timeout_ns == FX_NEVER ?
			 -1 :
		 timeout_ns > FX_NS_PER_SEC * 1000 ?
			 1000000 :
			 (int)((timeout_ns + FX_NS_PER_MS - 1) / FX_NS_PER_MS);
	long n;

	if (ms && !fx_load_relaxed(&only_ms)) {
		n = sys(SYS_epoll_pwait2, epfd, (long)events, max,
			timeout_ns == FX_NEVER ? 0 : (long)&ts, 0);
		if (n != -ENOSYS && n != -EPERM)
			return n;
		fx_store_relaxed(&only_ms, 1u);
	}
	return sys(SYS_epoll_wait, epfd, (long)events, max, ms, 0);
}

int fx_park_wait(struct fx_park *park, uint64_t timeout_ns, bool *woken)
{
	struct epoll_event events[EVENTS_A_ROUND];
	long n = epoll_wait_ns(park->epfd, events, EVENTS_A_ROUND, timeout_ns);

	*woken = false;
	if (n <= 0)
		return 0;
	fx_park_lock(park);
	/* Activation is a stack: backwards, so that the first comes first. */
	for (long i = n; i-- > 0;) {
		if (events[i].data.u64 == WAKE_TAG)
			*woken = true;
		else
			note_edge(park, &events[i]);
	}
	fx_park_unlock(park);
	return (int)n;
}

int fx_park_wake_too(struct fx_park *park, int fd, bool on)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = WAKE_TAG };

	return (int)sys(SYS_epoll_ctl, park->epfd,
			on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, (long)&ev, 0);
}

void fx_park_poke(struct fx_park *park)
{
	static const uint64_t one = 1;

	sys(SYS_write, park->wakefd, (long)&one, sizeof(one), 0, 0);
}

uint32_t fx_park_next(struct fx_park *park)
{
	uint32_t index = FX_NO_ENTRY;

	if (!__atomic_load_n(&park->active, __ATOMIC_RELAXED))
		return FX_NO_ENTRY;
	fx_park_lock(park);
	while (park->active && index == FX_NO_ENTRY) {
		int fd = (int)park->active - 1;
		struct fx_fdrec *rec = fx_park_record(park, fd, false);

		for (unsigned dir = FX_IN; dir <= FX_OUT; dir++) {
			if (!rec->first[dir] ||
			    !(rec->flags & (FX_FD_READY(dir) | FX_FD_HUP)))
				continue;
			index = rec->first[dir] - 1;
			unpark(park, rec, dir, index);
			beside(park, index)->state = FX_PARK_STATE_TURN;
			break;
		}
		if (index == FX_NO_ENTRY) {
			fx_store_relaxed(&park->active, rec->next_active);
			rec->flags &= ~FX_FD_ACTIVE;
		}
	}
	fx_park_unlock(park);
	return index;
}

/* Looking again ---------------------------------------------------------- */

static uint64_t due_in(struct fx_park *park, unsigned queue, uint32_t now,
		       uint32_t after_ms)
{
	uint32_t index = park->oldest[queue];
	int32_t left;

	if (!index)
		return FX_NEVER;
	left = (int32_t)(beside(park, index - 1)->stamp + after_ms - now);
	return left <= 0 ? 0 : (uint64_t)left * FX_NS_PER_MS;
}

/* The timed queue is in no order; few programs use it. */
static uint64_t timed_due_in(struct fx_park *park, uint32_t now)
{
	uint64_t least = FX_NEVER;

	for (uint32_t i = park->oldest[FX_PARK_TIMED]; i;
	     i = beside(park, i - 1)->newer) {
		int32_t left = (int32_t)(beside(park, i - 1)->stamp - now);
		uint64_t ns = left <= 0 ? 0 : (uint64_t)left * FX_NS_PER_MS;

		if (ns < least)
			least = ns;
	}
	return least;
}

uint64_t fx_park_due(struct fx_park *park)
{
	uint64_t soon, later, timed;
	uint32_t now;

	if (!fx_load_relaxed(&park->nr_parked))
		return FX_NEVER;
	now = fx_now_ms_coarse();
	fx_park_lock(park);
	soon = due_in(park, FX_PARK_SOON, now, FX_PARK_CHECK_MS);
	later = due_in(park, FX_PARK_LATER, now, FX_PARK_TRUST_MS);
	timed = timed_due_in(park, now);
	fx_park_unlock(park);
	soon = soon < later ? soon : later;
	return soon < timed ? soon : timed;
}

/* SO_RCVTIMEO or SO_SNDTIMEO in milliseconds, 0 if there is none. */
static uint32_t own_timeout_ms(const struct fx_fdrec *rec, int fd, unsigned dir)
{
	struct timeval tv = { 0, 0 };
	uint32_t size = sizeof(tv);

	if (rec->kind != FX_KIND_SOCKET ||
	    sys(SYS_getsockopt, fd, SOL_SOCKET,
		dir == FX_IN ? SO_RCVTIMEO : SO_SNDTIMEO, (long)&tv,
		(long)&size))
		return 0;
	return (uint32_t)(tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000);
}

/* Is the registration still there? Not: another file has this number. */
static long verify(struct fx_park *park, struct fx_fdrec *rec, int fd,
		   unsigned dir)
{
	struct epoll_event ev = {
		.events = EPOLLET | EPOLLRDHUP,
		.data.u64 = (uint64_t)rec->generation << 32 | (uint32_t)fd,
	};
	long bad;

	if (rec->flags & FX_FD_SET(FX_IN))
		ev.events |= EPOLLIN | EPOLLPRI;
	if (rec->flags & FX_FD_SET(FX_OUT))
		ev.events |= EPOLLOUT;
	bad = sys(SYS_epoll_ctl, park->epfd, EPOLL_CTL_MOD, fd, (long)&ev, 0);
	fx_count(park->counters, reverified);
	if (!bad)
		return 0;
	if (bad == -ENOENT)
		bad = sys(SYS_epoll_ctl, park->epfd, EPOLL_CTL_ADD, fd,
			  (long)&ev, 0);
	rec->kind = FX_KIND_UNKNOWN;
	rec->credit = 0;
	rec->flags &= FX_FD_SET(FX_IN) | FX_FD_SET(FX_OUT) | FX_FD_ACTIVE;
	if (!bad) { /* the set tells of its state; try it in any case */
		rec->edges[dir]++;
		rec->flags |= FX_FD_READY(dir);
		activate(park, rec, fd);
	}
	return bad;
}

/* One entry that waited for long. Is it over? */
static bool check_one(struct fx_park *park, uint32_t index, uint32_t now)
{
	struct flexsc_entry *call = fx_set_entry(park->set, index);
	struct fx_beside *b = beside(park, index);
	int fd = (int)b->fd;
	unsigned dir = call_dir(park, call);
	struct fx_fdrec *rec = fx_park_record(park, fd, false);
	uint32_t parked_ms = b->stamp, timeout_ms;
	int64_t result = -EAGAIN;
	long bad;

	if (b->queue != FX_PARK_TIMED) {
		time_remove(park, index);
		/* Set after a call began to wait, the flag is not for it. */
		if (!(b->state & FX_PARK_STATE_FRESH))
			rec->flags &= ~FX_FD_BLOCKING;
		bad = verify(park, rec, fd, dir);
		rec->checked_ms = now | 1;
		if (bad == -EBADF)
			result = -EBADF;
		else if (fx_is_ready_wait(call->nr))
			return false;
		else if (!nonblocking(rec, fd) || call->nr == SYS_connect) {
			if (call->nr != SYS_connect)
				rec->flags |= FX_FD_BLOCKING;
			timeout_ms = own_timeout_ms(rec, fd, dir);
			if (!timeout_ms)
				return false;
			time_append(park, FX_PARK_TIMED, index,
				    parked_ms + timeout_ms + FX_PARK_COARSE_MS);
			return false;
		}
	}
	unpark(park, rec, dir, index);
	if (call->nr == SYS_connect)
		result = result == -EBADF ? result : -EINPROGRESS;
	call->ret = call->ret > 0 && call->nr != SYS_connect ? call->ret :
							       result;
	return true;
}

static uint32_t check_timed(struct fx_park *park, uint32_t now)
{
	for (uint32_t i = park->oldest[FX_PARK_TIMED]; i;) {
		uint32_t next = beside(park, i - 1)->newer;

		if ((int32_t)(beside(park, i - 1)->stamp - now) <= 0 &&
		    check_one(park, i - 1, now))
			return i - 1;
		i = next;
	}
	return FX_NO_ENTRY;
}

uint32_t fx_park_check(struct fx_park *park)
{
	static const uint32_t after_ms[] = {
		[FX_PARK_SOON] = FX_PARK_CHECK_MS, [FX_PARK_LATER] = FX_PARK_TRUST_MS
	};
	uint32_t now, index = FX_NO_ENTRY;
	unsigned budget = EVENTS_A_ROUND;

	if (!fx_load_relaxed(&park->nr_parked))
		return FX_NO_ENTRY;
	now = fx_now_ms_coarse();
	fx_park_lock(park);
	for (unsigned q = FX_PARK_SOON; q <= FX_PARK_LATER; q++) {
		while (budget-- && due_in(park, q, now, after_ms[q]) == 0) {
			uint32_t i = park->oldest[q] - 1;

			if (check_one(park, i, now)) {
				index = i;
				goto done;
			}
		}
	}
	index = check_timed(park, now);
done:
	fx_park_unlock(park);
	return index;
}

/* Cancelling and forgetting ---------------------------------------------- */

bool fx_park_cancel(struct fx_park *park, uint32_t index)
{
	struct flexsc_entry *call = fx_set_entry(park->set, index);
	bool parked;

	fx_park_lock(park);
	/* If it is not, its runner may be writing to it. */
	parked = fx_load_relaxed(&beside(park, index)->state) &
		 FX_PARK_STATE_PARKED;
	if (parked)
		unpark(park,
		       fx_park_record(park, (int)beside(park, index)->fd,
				      false),
		       call_dir(park, call), index);
	fx_park_unlock(park);
	return parked;
}

uint32_t fx_park_cancel_fd(struct fx_park *park, int fd)
{
	uint32_t index = FX_NO_ENTRY;
	struct fx_fdrec *rec;

	fx_park_lock(park);
	rec = fx_park_record(park, fd, false);
	for (unsigned dir = FX_IN; rec && dir <= FX_OUT; dir++) {
		if (fx_likely(!rec->first[dir]))
			continue;
		index = rec->first[dir] - 1;
		unpark(park, rec, dir, index);
		break;
	}
	fx_park_unlock(park);
	return index;
}

void fx_park_forget(struct fx_park *park, struct fx_fdrec *rec, int fd,
		    enum fx_kind kind, bool ours)
{
	/* Twice in a row for most closes: when posted, and when made. */
	if (!rec->kind && !kind && !ours && !rec->first[FX_IN] &&
	    !rec->first[FX_OUT] &&
	    !(rec->flags & ~(FX_FD_ACTIVE | FX_FD_CLOSED)))
		return;
	rec->generation++;
	rec->kind = (uint8_t)kind;
	rec->credit = 0;
	rec->checked_ms = 0;
	rec->flags = (rec->flags & (FX_FD_ACTIVE | FX_FD_CLOSED)) |
		     (ours ? FX_FD_OURS : 0);
	if (kind != FX_KIND_UNKNOWN)
		rec->flags &= ~FX_FD_CLOSED;
	for (unsigned dir = FX_IN; dir <= FX_OUT; dir++) {
		if (!rec->first[dir])
			continue;
		rec->edges[dir]++;
		rec->flags |= FX_FD_READY(dir);
		activate(park, rec, fd);
	}
}

void fx_park_reset(struct fx_park *park, int fd, enum fx_kind kind, bool ours)
{
	struct fx_fdrec *rec;

	fx_park_lock(park);
	rec = fx_park_record(park, fd, kind != FX_KIND_UNKNOWN);
	if (rec) {
		fx_park_forget(park, rec, fd, kind, ours);
		if (park->keeps)
			rec->epoch = fx_hold_epoch(
				fx_load_relaxed(fx_hold_word(fd)));
	}
	fx_park_unlock(park);
}

int fx_park_patient(struct fx_park *park, int fd)
{
	struct fx_fdrec *rec;

	fx_park_lock(park);
	rec = fx_park_record(park, fd, true);
	if (rec) {
		fx_park_look(park, rec, fd);
		rec->flags |= FX_FD_PATIENT;
	}
	fx_park_unlock(park);
	return rec ? 0 : -ENOMEM;
}

void fx_park_accepted(struct fx_park *park, int listener, int fd)
{
	struct fx_fdrec *of, *rec;

	fx_park_reset(park, fd, FX_KIND_SOCKET, false);
	fx_park_lock(park);
	of = fx_park_record(park, listener, false);
	rec = fx_park_record(park, fd, false);
	if (of && rec)
		rec->flags |= of->flags & FX_FD_DRAINS(3u);
	fx_park_unlock(park);
}

void fx_park_closing(struct fx_park *park, int fd, uint32_t posted)
{
	struct fx_fdrec *rec;

	fx_park_lock(park);
	rec = fx_park_record(park, fd, false);
	if (rec) {
		rec->flags |= FX_FD_CLOSED;
		rec->closed_at = posted;
	}
	fx_park_unlock(park);
}

bool fx_park_closed_after(struct fx_park *park, int fd, uint32_t posted)
{
	struct fx_fdrec *rec;
	bool closed;

	fx_park_lock(park);
	rec = fx_park_record(park, fd, false);
	closed = rec && closed_after(rec, posted);
	fx_park_unlock(park);
	return closed;
}
