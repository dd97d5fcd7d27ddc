/* SPDX-License-Identifier: MIT */
/*
 * Closing descriptors that tasks wait on, on whatever queue: their calls are
 * moved to a duplicate first, each queue's by its holder. The protocol and
 * its races are in engine/hold.h; here is who asks, and who waits for whom.
 *
 * One close at a time asks the queues: few closes have anybody to ask for.
 */
#include "sched/carrier.h"

#include "base/clock.h"
#include "engine/hold.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOMENT_NS (100 * FX_NS_PER_US)
/* A signal handler may have interrupted the very close that it waits for. */
#define MAX_MOMENTS 1000
/* flags of close_range: nothing is closed, or not for us. */
#define RANGE_UNSHARE 2u
#define RANGE_CLOEXEC 4u

static void wait_a_moment(struct fx_task *me)
{
	struct timespec ts = fx_timespec(MOMENT_NS);

	if (me && me->carrier) {
		struct fx_deadline soon = { fx_now_ns() + MOMENT_NS,
					    FX_CLOCK_MONOTONIC };

		fx_sleep(me, &soon, 0);
	} else {
		fx_arch_syscall(SYS_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
	}
}

static void ask_queues(struct fx_moves *moves, struct fx_task *me)
{
	uint32_t left;

	moves->task = me;
	moves->ticket = me ? fx_task_arm(me) : 0;
	fx_store_relaxed(&moves->left, fx_sched.nr_queues);
	for (uint32_t i = 0; i < fx_sched.nr_queues; i++) {
		fx_exchange(&fx_sched.queue[i]->move, 1u);
		fx_fence_after_cas();
		fx_rouse(fx_sched.queue[i]);
	}
	if (me) {
		fx_park(me, "close", NULL, 0);
		return;
	}
	while ((left = fx_load_acquire(&moves->left)))
		fx_futex_wait(&moves->left, left, FX_NEVER);
}

static void move_calls(struct fx_task *me, int fd)
{
	struct fx_moves *moves = &fx_sched.moves;
	int to;

	/* A child of vfork has our memory, but other descriptors. */
	if (getpid() != fx_sched.pid)
		return;
	while (fx_exchange(&moves->busy, 1u))
		wait_a_moment(me);
	to = fx_hold_duplicate(fd);
	moves->fd = fd;
	moves->to = to < 0 ? -1 : to;
	ask_queues(moves, me);
	fx_fetch_add(&fx_sched.closes_moved, UINT64_C(1));
	fx_store_release(&moves->busy, 0u);
	if (to >= 0)
		fx_hold_put(to);
}

void fx_move_asked(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_engine *engine = queue->owner.engine;
	struct fx_moves *moves = &fx_sched.moves;
	struct fx_task *task = moves->task;
	fx_ticket ticket = moves->ticket;

	if (!engine->ops->moving(engine, moves->fd, moves->to))
		return; /* once more, in the next round */
	fx_store_relaxed(&queue->move, 0u);
	if (fx_fetch_add(&moves->left, (uint32_t)-1) != 1)
		return;
	if (task)
		fx_wake_inside(carrier, task, ticket, FX_WOKEN_VALUE);
	else
		fx_futex_wake(&moves->left, 1);
}

bool fx_closing_begin(struct fx_task *me, int fd)
{
	uint64_t *word = fx_hold_word(fd);

	for (unsigned i = 0; word && i < MAX_MOMENTS; i++) {
		switch (fx_hold_close_begin(word)) {
		case FX_CLOSING_HELD:
			move_calls(me, fd);
			/* fall through */
		case FX_CLOSING_ALONE:
			return true;
		case FX_CLOSING_OTHER:
			wait_a_moment(me);
		}
	}
	return false;
}

void fx_closing_end(int fd)
{
	fx_hold_close_end(fx_hold_word(fd));
}

/* What a call will close, if it succeeds; false: nothing. */
static bool will_close(const struct flexsc_entry *call, uint32_t *first,
		       uint32_t *last)
{
	const __u64 *a = call->args;

	switch (call->nr) {
	case SYS_close:
		*first = *last = (uint32_t)a[0];
		return true;
	case SYS_dup2:
	case SYS_dup3:
		*first = *last = (uint32_t)a[1];
		return a[0] != a[1];
	case SYS_close_range:
		*first = (uint32_t)a[0];
		*last = (uint32_t)a[1];
		if (*last > fx_hold_highest())
			*last = fx_hold_highest();
		return !(a[2] & (RANGE_UNSHARE | RANGE_CLOEXEC)) &&
		       *first <= *last;
	default:
		return false;
	}
}

int64_t fx_call_closing(struct fx_task *me, struct flexsc_entry *call,
			int64_t (*make)(struct fx_task *me,
					struct flexsc_entry *call))
{
	uint32_t first, last, fd;
	int64_t ret;

	if (!will_close(call, &first, &last))
		return make(me, call);
	/* In ascending order: two of them cannot wait for each other. */
	for (fd = first; fd <= last && fx_closing_begin(me, (int)fd); fd++)
		;
	ret = make(me, call);
	while (fd-- > first)
		fx_closing_end((int)fd);
	return ret;
}
