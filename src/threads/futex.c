/* SPDX-License-Identifier: MIT */
/*
 * Futexes; see threads/futex.h. Somebody may wait in the kernel all the same,
 * by a system call of its own, so a wake that finds too few goes on there.
 */
#include "threads/futex.h"

#include "threads/io.h"
#include "threads/lot.h"
#include "threads/time.h"

#include <linux/futex.h>
#include <sys/syscall.h>

bool fx_futex_is_ours(int operation)
{
	if (!(operation & FUTEX_PRIVATE_FLAG))
		return false;
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_WAKE_OP:
		return true;
	default:
		return false;
	}
}

struct expected {
	uint32_t *word;
	uint32_t value;
};

static bool is_expected(void *arg)
{
	struct expected *e = arg;

	return fx_load_acquire(e->word) == e->value;
}

static bool limit(struct fx_deadline *deadline, const long args[6])
{
	const struct timespec *ts = (const struct timespec *)args[3];

	if (!ts)
		return false;
	if ((args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) {
		fx_deadline_in(deadline, fx_ns_of(ts));
		return true;
	}
	deadline->clock = args[1] & FUTEX_CLOCK_REALTIME ? FX_CLOCK_REALTIME :
							   FX_CLOCK_MONOTONIC;
	deadline->at_ns = fx_ns_of(ts);
	return true;
}

static int64_t wait_for(struct fx_thread *me, const long args[6], uint32_t tag)
{
	struct expected expected = { (uint32_t *)args[0], (uint32_t)args[2] };
	struct fx_deadline deadline;
	struct fx_lot_wait wait = { .key = (void *)args[0],
				    .where = "futex",
				    .tag = tag,
				    .check = is_expected,
				    .arg = &expected };
	const struct timespec *ts = (const struct timespec *)args[3];
	uint32_t handlers, rigid;
	enum fx_reason why;

	if (!tag || (ts && (ts->tv_sec < 0 || ts->tv_nsec < 0 ||
			    ts->tv_nsec >= (long)FX_NS_PER_SEC)))
		return -EINVAL;
	if (limit(&deadline, args))
		wait.deadline = &deadline;
	for (;;) {
		handlers = me->handlers;
		rigid = me->no_restart;
		fx_thread_lent();
		fx_thread_enter(me);
		why = fx_lot_wait(me, &wait);
		fx_thread_leave(me);
		if (!why)
			return -EAGAIN;
		if (why == FX_WOKEN_VALUE)
			return 0;
		if (why == FX_WOKEN_TIMEOUT)
			return -ETIMEDOUT;
		if (fx_interrupted(me, handlers, rigid, !wait.deadline))
			return -EINTR;
	}
}

static unsigned wake(struct fx_thread *me, const void *word, unsigned nr,
		     uint32_t tags)
{
	unsigned done;

	fx_thread_enter(me);
	done = fx_lot_wake(word, nr, tags, NULL, NULL);
	fx_thread_leave(me);
	return done;
}

static int64_t plain(const long a[6])
{
	return fx_arch_syscall(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int64_t wake_all(struct fx_thread *me, const long args[6])
{
	int64_t ret = plain(args);

	/* Of those who wait here none is requeued: all look again. */
	if (!fx_is_error(ret)) {
		ret += wake(me, (void *)args[0], UINT32_MAX, FX_LOT_ANY);
		if ((args[1] & FUTEX_CMD_MASK) == FUTEX_WAKE_OP)
			ret += wake(me, (void *)args[4], UINT32_MAX,
				    FX_LOT_ANY);
	}
	return ret;
}

int64_t fx_futex(const long args[6])
{
	struct fx_thread *me = fx_thread_known();
	uint32_t tags = FX_LOT_ANY;
	long rest[6] = { args[0], args[1], 0, args[3], args[4], args[5] };
	int64_t more;
	unsigned nr;

	if (!me)
		return plain(args);
	switch (args[1] & FUTEX_CMD_MASK) {
	case FUTEX_WAIT_BITSET:
		return wait_for(me, args, (uint32_t)args[5]);
	case FUTEX_WAIT:
		return wait_for(me, args, FX_LOT_ANY);
	case FUTEX_WAKE_BITSET:
		tags = (uint32_t)args[5];
		if (!tags)
			return -EINVAL;
		break;
	case FUTEX_WAKE:
		break;
	default:
		return wake_all(me, args);
	}
	if (args[0] & 3)
		return -EINVAL;
	nr = wake(me, (void *)args[0], (uint32_t)args[2], tags);
	if (nr >= (uint32_t)args[2])
		return nr;
	rest[2] = args[2] - (long)nr;
	more = plain(rest);
	return fx_is_error(more) ? more : more + nr;
}
