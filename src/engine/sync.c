/* SPDX-License-Identifier: MIT */
/*
 * Engine sync: everything in the owner's thread, with nothing but poll(2).
 * For tests, and where neither epoll nor threads can be had.
 *
 * Descriptor calls are tried without blocking and wait in one list. A call
 * that may block for anything else is made where it stands, one a round and
 * only when no descriptor call can go on: it blocks the whole loop while it
 * lasts, and cannot be cancelled once it has begun. So does an accept whose
 * connection another process was faster to take, until the next one comes.
 */
#include "arch/arch.h"
#include "arch/fd.h"
#include "base/clock.h"
#include "engine/attempt.h"
#include "engine/chain.h"
#include "engine/engines.h"
#include "engine/hold.h"
#include "engine/rest.h"
#include "engine/run.h"
#include "engine/sync.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* Looking costs a walk of all that waits: an idle poll asks now and then. */
#define IDLE_LOOKS 32

static long sys(long nr, long a0, long a1, long a2, long a3, long a4)
{
	return fx_arch_syscall(nr, a0, a1, a2, a3, a4, 0);
}

/* Only for a descriptor that exists: any other number may be huge. */
static struct sync_fd *make_record(struct sync_engine *e, int fd)
{
	uint32_t nr = e->nr_fds ? e->nr_fds : 64;
	int saved = errno;
	struct sync_fd *fds;

	if ((uint32_t)fd < e->nr_fds)
		return &e->fds[fd];
	while (nr <= (uint32_t)fd)
		nr *= 2;
	fds = realloc(e->fds, nr * sizeof(*fds));
	errno = saved;
	if (!fds)
		return NULL;
	memset(fds + e->nr_fds, 0, (nr - e->nr_fds) * sizeof(*fds));
	e->fds = fds;
	e->nr_fds = nr;
	fx_hold_reach(nr - 1);
	return &fds[fd];
}

/* Tell the epoll set, if there is one, which directions are waited for. */
static bool arm_fd(struct sync_engine *e, struct sync_fd *rec, int fd)
{
	struct epoll_event ev = { .data.fd = fd };
	uint8_t wanted = (uint8_t)((rec->nr_waiting[0] ? 1 : 0) |
				   (rec->nr_waiting[1] ? 2 : 0));
	long bad;

	if (e->epfd < 0 || rec->armed == wanted)
		return true;
	ev.events = (wanted & 1 ? EPOLLIN | EPOLLRDHUP : 0u) |
		    (wanted & 2 ? EPOLLOUT : 0u);
	if (!wanted)
		bad = sys(SYS_epoll_ctl, e->epfd, EPOLL_CTL_DEL, fd, (long)&ev,
			  0);
	else
		bad = sys(SYS_epoll_ctl, e->epfd, EPOLL_CTL_MOD, fd, (long)&ev,
			  0);
	if (wanted && bad == -ENOENT)
		bad = sys(SYS_epoll_ctl, e->epfd, EPOLL_CTL_ADD, fd, (long)&ev,
			  0);
	rec->armed = bad && wanted ? 0 : wanted;
	return !bad || !wanted;
}

/* SO_RCVTIMEO or SO_SNDTIMEO in milliseconds, 0 if there is none. */
static uint32_t own_timeout_ms(int fd, unsigned dir)
{
	struct timeval tv = { 0, 0 };
	uint32_t size = sizeof(tv);

	if (sys(SYS_getsockopt, fd, SOL_SOCKET, dir ? SO_SNDTIMEO : SO_RCVTIMEO,
		(long)&tv, (long)&size))
		return 0;
	return (uint32_t)(tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000);
}

static bool start_waiting(struct sync_engine *e, uint32_t index)
{
	const struct flexsc_entry *call = fx_set_entry(e->base.set, index);
	unsigned dir = direction(e, call);
	int fd = call_fd(e, call);
	struct sync_fd *rec = make_record(e, fd);
	struct fx_beside *b = beside(e, index);
	uint32_t timeout_ms;

	if (!rec)
		return false;
	timeout_ms = fx_is_ready_wait(call->nr) ? 0 : own_timeout_ms(fd, dir);
	b->fd = (uint32_t)fd;
	b->queue = timeout_ms != 0;
	b->stamp = fx_now_ms_coarse() + timeout_ms + FX_PARK_COARSE_MS;
	e->nr_timed += b->queue;
	e->nr_waiting++;
	rec->nr_waiting[dir]++;
	list_add(e, LIST_WAITING, index);
	fx_count(e->base.counters, parked);
	return true;
}

/* Out of whatever list it is in. */
static void stop_waiting(struct sync_engine *e, uint32_t index)
{
	const struct flexsc_entry *call = fx_set_entry(e->base.set, index);
	struct fx_beside *b = beside(e, index);
	struct sync_fd *rec;

	if (b->state == LIST_WAITING) {
		rec = &e->fds[b->fd];
		e->nr_waiting--;
		e->nr_timed -= b->queue;
		b->queue = 0;
		if (--rec->nr_waiting[direction(e, call)] == 0)
			arm_fd(e, rec, (int)b->fd);
	}
	list_remove(e, index);
}

/* Carrying out ----------------------------------------------------------- */

/* The call itself, or what is left of it. */
static void call_now(struct flexsc_entry *call)
{
	struct fx_rest rest;
	int64_t done = call->ret, ret;
	bool begun = done > 0 && call->nr != SYS_connect;

	ret = fx_call_plain(begun ? fx_rest_of(&rest, call) : call);
	call->ret = !begun ? ret : ret >= 0 ? done + ret : done;
}

static enum fx_try try_fd(struct flexsc_entry *call)
{
	struct fx_hint hint = { 0 };
	enum fx_try verdict = fx_attempt(call, &hint);

	if (verdict == FX_TRY_DISK ||
	    (verdict == FX_TRY_THREAD && hint.kind >= FX_KIND_REGULAR)) {
		call_now(call);
		return FX_TRY_DONE;
	}
	return verdict;
}

/* Files that are kept: each try notes the epoch, what waits has a hold. */
static void note_epoch(struct sync_engine *e, const struct flexsc_entry *call)
{
	uint64_t *word = e->keeps ? fx_hold_word(call_fd(e, call)) : NULL;

	if (word)
		e->epoch = (uint16_t)fx_hold_epoch(fx_load_relaxed(word));
}

/* Return: false if it is to be tried again, the descriptor being closed. */
static bool hold(struct sync_engine *e, uint32_t index)
{
	const struct flexsc_entry *call = fx_set_entry(e->base.set, index);
	const struct fx_call_desc *desc = desc_of(e, call);
	uint64_t *word;

	if (!e->keeps || beside(e, index)->held || desc->fd_arg < 0 ||
	    desc->flags & FX_CALL_CLOSES)
		return true;
	word = fx_hold_word(call_fd(e, call));
	if (!word)
		return true;
	if (fx_hold_take(word, e->epoch) != FX_HOLD_TAKEN)
		return false;
	beside(e, index)->held = (uint32_t)call_fd(e, call) + 1;
	return true;
}

static void drop(struct sync_engine *e, uint32_t index)
{
	struct fx_beside *b = beside(e, index);
	int fd = (int)b->held - 1;

	b->held = 0;
	if (fd >= 0)
		fx_hold_put(fd);
}

/* Not ready: is that the result, or is it to be waited for? */
static enum fx_try not_ready(struct sync_engine *e, struct flexsc_entry *call)
{
	long flags = sys(SYS_fcntl, call_fd(e, call), F_GETFL, 0, 0, 0);

	if (flags < 0 || !(flags & O_NONBLOCK))
		return FX_TRY_PARK;
	if (call->ret <= 0)
		call->ret = -EAGAIN;
	return FX_TRY_DONE;
}

/* Calls have no order, but the first to wait is the first to be served. */
static bool others_wait(struct sync_engine *e, const struct flexsc_entry *call)
{
	uint32_t fd = (uint32_t)call_fd(e, call);

	return fd < e->nr_fds && e->fds[fd].nr_waiting[direction(e, call)];
}

/*
 * Accepting may block after all, if another process is faster between the look
 * and the call. So it is left until nothing is waiting to be delivered: the
 * application may be what the next connection waits for.
 */
static bool is_risky(const struct flexsc_entry *call)
{
	struct pollfd p = { .fd = (int)call->args[0] };
	int listening = 0;
	uint32_t size = sizeof(listening);
	long flags;

	if (call->nr != SYS_accept && call->nr != SYS_accept4)
		return false;
	flags = sys(SYS_fcntl, p.fd, F_GETFL, 0, 0, 0);
	return flags >= 0 && !(flags & O_NONBLOCK) &&
	       sys(SYS_getsockopt, p.fd, SOL_SOCKET, SO_ACCEPTCONN,
		   (long)&listening, (long)&size) == 0 &&
	       listening && sys(SYS_poll, (long)&p, 1, 0, 0, 0) == 0;
}

/* Finish a call, or say what it needs: FX_TRY_PARK, FX_TRY_THREAD. */
static enum fx_try try_call(struct sync_engine *e, struct flexsc_entry *call)
{
	const struct fx_call_desc *desc = desc_of(e, call);
	enum fx_try verdict = FX_TRY_PARK;

	if (fx_is_ready_wait(call->nr)) {
		note_epoch(e, call);
		return others_wait(e, call) ? FX_TRY_PARK : try_fd(call);
	}
	switch ((enum fx_call_class)desc->call_class) {
	case FX_CALL_FD:
		note_epoch(e, call);
		if (!others_wait(e, call) && !is_risky(call))
			verdict = try_fd(call);
		return verdict == FX_TRY_PARK ? not_ready(e, call) : verdict;
	case FX_CALL_WAIT:
		if (desc->fd_arg >= 0)
			note_epoch(e, call);
		return FX_TRY_THREAD;
	case FX_CALL_NEVER:
		call->ret = fx_call_raw(call);
		return FX_TRY_DONE;
	case FX_CALL_DISK:
		call->ret = fx_call_plain(call);
		return FX_TRY_DONE;
	default:
		call->ret = fx_run_refused(desc);
		return FX_TRY_DONE;
	}
}

static void retry(struct sync_engine *e, uint32_t index)
{
	e->fds[beside(e, index)->fd].ready |= (uint8_t)(
		1u << direction(e, fx_set_entry(e->base.set, index)));
	e->ready = true;
}

/* Keep an entry for later. */
static void keep(struct sync_engine *e, uint32_t index, enum fx_try verdict)
{
	fx_store_relaxed(&fx_set_entry(e->base.set, index)->status,
			 FLEXSC_BUSY);
	if (verdict != FX_TRY_PARK || !start_waiting(e, index))
		list_add(e, LIST_BLOCKING, index);
	if (!hold(e, index) && beside(e, index)->state == LIST_WAITING)
		retry(e, index);
}

/* Complete an entry, and go on with its chain until something must wait. */
static void over(struct sync_engine *e, uint32_t index)
{
	struct fx_set *set = e->base.set;

	for (;;) {
		struct flexsc_entry *call = fx_set_entry(set, index);
		uint32_t rest = beside(e, index)->chain;
		enum fx_try verdict = FX_TRY_DONE;
		uint64_t distance = 1;

		for (uint32_t i = rest; i; i = beside(e, i - 1)->chain)
			fx_chain_tell(fx_set_entry(set, i - 1), distance++,
				      call->ret);
		drop(e, index);
		fx_local_add(set, index, call->ret);
		if (!rest)
			return;
		index = rest - 1;
		call = fx_set_entry(set, index);
		if (fx_set_cancel_wanted(set, index) || fx_chain_dead(call))
			call->ret = -ECANCELED;
		else
			verdict = try_call(e, call);
		if (verdict != FX_TRY_DONE) {
			keep(e, index, verdict);
			return;
		}
	}
}

static void end(struct sync_engine *e, uint32_t index, int64_t ret)
{
	stop_waiting(e, index);
	fx_set_entry(e->base.set, index)->ret = ret;
	over(e, index);
}

/* Waiting ---------------------------------------------------------------- */

/* One element for each descriptor, whatever waits on it, and one to wake. */
static uint32_t make_polls(struct sync_engine *e)
{
	uint32_t nr = 0;

	if (e->max_polls < e->nr_waiting + 1) {
		uint32_t max = 2 * (e->nr_waiting + 1);
		int saved = errno;
		void *polls = realloc(e->polls, max * sizeof(*e->polls));

		errno = saved;
		if (!polls)
			return 0;
		e->polls = polls;
		e->max_polls = max;
	}
	e->polls[nr++] = (struct pollfd){ .fd = e->base.set->owner_eventfd,
					  .events = POLLIN };
	for (uint32_t i = e->first[LIST_WAITING]; i;
	     i = beside(e, i - 1)->next) {
		int fd = (int)beside(e, i - 1)->fd;
		struct sync_fd *rec = &e->fds[fd];

		if (rec->slot)
			continue;
		rec->slot = nr + 1;
		e->polls[nr].fd = fd;
		e->polls[nr++].events =
			(short)((rec->nr_waiting[0] ? POLLIN | POLLRDHUP : 0) |
				(rec->nr_waiting[1] ? POLLOUT : 0));
	}
	for (uint32_t i = 1; i < nr; i++)
		e->fds[e->polls[i].fd].slot = 0;
	return nr;
}

static void note_ready(struct sync_engine *e, uint32_t nr)
{
	uint64_t n;

	if (e->polls[0].revents)
		sys(SYS_read, e->polls[0].fd, (long)&n, sizeof(n), 0, 0);
	for (uint32_t i = 1; i < nr; i++) {
		short events = e->polls[i].revents;

		if (!events)
			continue;
		/* An end or an error concerns both: the calls will tell. */
		e->fds[e->polls[i].fd].ready =
			(uint8_t)((events & ~POLLOUT ? 1 : 0) |
				  (events & ~(POLLIN | POLLRDHUP) ? 2 : 0));
		e->ready = true;
	}
}

static bool look(struct sync_engine *e, uint64_t timeout_ns)
{
	struct timespec ts = fx_timespec(timeout_ns);
	uint32_t nr = make_polls(e);
	long n;

	if (!nr && timeout_ns > FX_NS_PER_MS) /* no memory: ask again soon */
		ts = fx_timespec(FX_NS_PER_MS);
	n = sys(SYS_ppoll, (long)e->polls, nr,
		timeout_ns == FX_NEVER && nr ? 0 : (long)&ts, 0, 0);
	if (n > 0)
		note_ready(e, nr);
	return n > 0;
}

/* Calls whose socket has a time-out that is over. */
static void expire(struct sync_engine *e)
{
	uint32_t now = fx_now_ms_coarse(), next;

	for (uint32_t i = e->first[LIST_WAITING]; i && e->nr_timed; i = next) {
		struct fx_beside *b = beside(e, i - 1);
		int64_t done = fx_set_entry(e->base.set, i - 1)->ret;

		next = b->next;
		if (b->queue && (int32_t)(b->stamp - now) <= 0)
			end(e, i - 1, done > 0 ? done : -EAGAIN);
	}
}

/* @risk: nothing else is waiting to be delivered. */
static void try_ready(struct sync_engine *e, bool risk)
{
	uint32_t next, last = e->last[LIST_WAITING];

	e->ready = false;
	for (uint32_t i = e->first[LIST_WAITING]; i; i = next) {
		struct flexsc_entry *call = fx_set_entry(e->base.set, i - 1);
		struct sync_fd *rec = &e->fds[beside(e, i - 1)->fd];
		uint8_t bit = (uint8_t)(1u << direction(e, call));
		enum fx_try verdict;

		next = i == last ? 0 : beside(e, i - 1)->next;
		if (!(rec->ready & bit))
			continue;
		if ((!risk || fx_local_has(e->base.set)) && is_risky(call)) {
			e->ready = true; /* next time */
			continue;
		}
		note_epoch(e, call);
		verdict = try_fd(call);
		if (verdict == FX_TRY_PARK && !hold(e, i - 1)) {
			e->ready = true; /* next time */
			continue;
		}
		if (verdict == FX_TRY_PARK) {
			rec->ready &= (uint8_t)~bit;
			continue;
		}
		stop_waiting(e, i - 1);
		if (verdict == FX_TRY_DONE)
			over(e, i - 1);
		else
			list_add(e, LIST_BLOCKING, i - 1);
	}
	for (uint32_t i = 0; i < e->nr_fds && !e->ready; i++)
		e->fds[i].ready = 0;
}

static void run_blocking(struct sync_engine *e)
{
	uint32_t index = e->first[LIST_BLOCKING] - 1;
	struct flexsc_entry *call = fx_set_entry(e->base.set, index);

	list_remove(e, index);
	call_now(call);
	over(e, index);
}

/* The contract ----------------------------------------------------------- */

static bool sync_usable(char *reason, size_t size)
{
	snprintf(reason, size,
		 "works everywhere, but a call that may block "
		 "for ever blocks the loop");
	return true;
}

static int sync_new(struct fx_engine **engine,
		    const struct fx_engine_config *config)
{
	struct sync_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	fx_engine_setup(&e->base, &fx_engine_sync, config);
	e->epfd = -1;
	e->keeps = config->keeps_files;
	*engine = &e->base;
	return 0;
}

/* After fork too: nothing here is shared with anybody. */
static void sync_free(struct fx_engine *engine)
{
	struct sync_engine *e = of(engine);

	if (e->epfd >= 0)
		fx_close(e->epfd);
	free(e->fds);
	free(e->polls);
	free(e);
}

static bool sync_attempt(struct fx_engine *engine, struct flexsc_entry *call)
{
	struct sync_engine *e = of(engine);

	e->idle_looks = 0;
	e->verdict = try_call(e, call);
	e->at_once |= e->verdict == FX_TRY_DONE;
	return e->verdict == FX_TRY_DONE;
}

static void sync_post(struct fx_engine *engine, const uint32_t *indices,
		      unsigned nr)
{
	struct sync_engine *e = of(engine);
	enum fx_try verdict = e->verdict;

	e->verdict = FX_TRY_DONE;
	e->idle_looks = 0;
	fx_run_link(engine->set, indices, nr);
	if (nr > 1 || verdict == FX_TRY_DONE) /* not tried yet */
		verdict = try_call(e, fx_set_entry(engine->set, indices[0]));
	if (verdict == FX_TRY_DONE)
		over(e, indices[0]);
	else
		keep(e, indices[0], verdict);
}

static void sync_flush(struct fx_engine *engine)
{
	(void)engine; /* every posting was acted on at once */
}

static bool sync_quiet(struct fx_engine *engine)
{
	struct sync_engine *e = of(engine);

	return !e->ready && !e->first[LIST_BLOCKING] &&
	       e->idle_looks++ % IDLE_LOOKS;
}

static void sync_work(struct fx_engine *engine, unsigned max)
{
	(void)max; /* one look's worth of descriptors */
	if (of(engine)->ready)
		try_ready(of(engine), false);
}

static uint64_t sync_due(struct fx_engine *engine)
{
	struct sync_engine *e = of(engine);
	uint32_t now = fx_now_ms_coarse();
	uint64_t least = FX_NEVER;

	if (!e->nr_timed)
		return FX_NEVER;
	for (uint32_t i = e->first[LIST_WAITING]; i;
	     i = beside(e, i - 1)->next) {
		int32_t left = (int32_t)(beside(e, i - 1)->stamp - now);
		uint64_t ns = left <= 0 ? 0 : (uint64_t)left * FX_NS_PER_MS;

		if (beside(e, i - 1)->queue && ns < least)
			least = ns;
	}
	return least;
}

static void sync_wait(struct fx_engine *engine, uint64_t timeout_ns)
{
	struct sync_engine *e = of(engine);
	bool risk = !e->at_once;
	uint64_t due;

	e->at_once = false;
	if (e->ready && risk)
		try_ready(e, true);
	if (fx_local_has(e->base.set) || e->ready)
		return;
	due = sync_due(engine);
	if (due < timeout_ns)
		timeout_ns = due;
	if (e->first[LIST_BLOCKING])
		timeout_ns = 0;
	if (timeout_ns)
		fx_count(engine->counters, sleeps);
	if (look(e, timeout_ns))
		e->idle_looks = 0;
	else if (e->first[LIST_BLOCKING])
		run_blocking(e);
	if (e->nr_timed)
		expire(e);
}

static void sync_interrupt(struct fx_engine *engine)
{
	static const uint64_t one = 1;

	sys(SYS_write, engine->set->owner_eventfd, (long)&one, sizeof(one), 0,
	    0);
}

static int sync_cancel(struct fx_engine *engine, uint32_t index)
{
	struct sync_engine *e = of(engine);
	struct flexsc_entry *call = fx_set_entry(engine->set, index);

	if (fx_set_cancel(engine->set, index) == FX_CANCEL_DONE)
		return -EALREADY;
	/* In no list: a later call of a chain, which will find the request. */
	if (beside(e, index)->state != LIST_NONE)
		end(e, index,
		    call->ret > 0 && call->nr != SYS_connect ? call->ret :
							       -ECANCELED);
	return 0;
}

static void sync_closing(struct fx_engine *engine, int fd)
{
	struct sync_engine *e = of(engine);

	for (unsigned list = LIST_WAITING; list < NR_LISTS; list++) {
		for (uint32_t i = e->first[list], next; i; i = next) {
			const struct flexsc_entry *call =
				fx_set_entry(engine->set, i - 1);

			next = beside(e, i - 1)->next;
			if (desc_of(e, call)->fd_arg >= 0 &&
			    call_fd(e, call) == fd)
				end(e, i - 1, -ECANCELED);
		}
	}
	if (fd >= 0 && (uint32_t)fd < e->nr_fds)
		e->fds[fd].armed = 0; /* the next file is not in the set */
}

static bool move_one(struct sync_engine *e, uint32_t index, int to)
{
	struct flexsc_entry *call = fx_set_entry(e->base.set, index);
	unsigned dir = direction(e, call);
	struct fx_beside *b = beside(e, index);

	if (to < 0 || !make_record(e, to))
		return false;
	if (b->state == LIST_WAITING) {
		struct sync_fd *rec = &e->fds[b->fd];

		if (--rec->nr_waiting[dir] == 0)
			arm_fd(e, rec, (int)b->fd);
		e->fds[to].nr_waiting[dir]++;
		b->fd = (uint32_t)to;
		retry(e, index);
	}
	call->args[desc_of(e, call)->fd_arg] = (uint64_t)to;
	fx_hold_add(fx_hold_word(to));
	drop(e, index);
	b->held = (uint32_t)to + 1;
	return true;
}

static bool sync_moving(struct fx_engine *engine, int fd, int to)
{
	struct sync_engine *e = of(engine);

	for (unsigned list = LIST_WAITING; list < NR_LISTS; list++) {
		for (uint32_t i = e->first[list], next; i; i = next) {
			int64_t done = fx_set_entry(engine->set, i - 1)->ret;

			next = beside(e, i - 1)->next;
			if (beside(e, i - 1)->held == (uint32_t)fd + 1 &&
			    !move_one(e, i - 1, to))
				end(e, i - 1, done > 0 ? done : -EBADF);
		}
	}
	return true;
}

static int sync_fd(struct fx_engine *engine)
{
	struct sync_engine *e = of(engine);
	struct epoll_event ev = { .events = EPOLLIN };

	if (e->epfd >= 0)
		return e->epfd;
	e->epfd = (int)sys(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0, 0, 0);
	if (e->epfd >= 0)
		sys(SYS_epoll_ctl, e->epfd, EPOLL_CTL_ADD,
		    engine->set->owner_eventfd, (long)&ev, 0);
	return e->epfd;
}

static bool sync_arm(struct fx_engine *engine)
{
	struct sync_engine *e = of(engine);

	e->idle_looks = 0; /* the next look is asked for */
	if (fx_local_has(e->base.set) || e->ready || e->first[LIST_BLOCKING])
		return false;
	for (uint32_t i = e->first[LIST_WAITING]; i;
	     i = beside(e, i - 1)->next) {
		uint32_t fd = beside(e, i - 1)->fd;

		if (!arm_fd(e, &e->fds[fd], (int)fd))
			return false;
	}
	return true;
}

const struct fx_engine_ops fx_engine_sync = {
	.name = "sync",
	.summary = "everything in the loop's own thread, for tests",
	.usable = sync_usable,
	.new = sync_new,
	.free = sync_free,
	.abandon = sync_free,
	.attempt = sync_attempt,
	.post = sync_post,
	.flush = sync_flush,
	.quiet = sync_quiet,
	.work = sync_work,
	.wait = sync_wait,
	.interrupt = sync_interrupt,
	.cancel = sync_cancel,
	.closing = sync_closing,
	.moving = sync_moving,
	.fd = sync_fd,
	.due = sync_due,
	.arm = sync_arm,
};
