/* SPDX-License-Identifier: MIT */
/* Sleeping; other clocks than the scheduler's two are slept on at home. */
#include "threads/sleep.h"

#include "threads/time.h"

/* Return: 0, or an error number, or FX_IO_PLAIN. */
static int until(struct fx_thread *me, clockid_t clock, int flags,
		 const struct timespec *time, struct fx_deadline *deadline)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) {
		fx_thread_home(me, FX_HOME_CALL);
		return FX_IO_PLAIN;
	}
	if (time->tv_sec < 0 || fx_deadline_of(deadline, clock, time))
		return EINVAL;
	/* Relative times are not moved when the clock is set. */
	if (!(flags & TIMER_ABSTIME))
		fx_deadline_in(deadline, fx_ns_of(time));
	return 0;
}

int fx_thread_sleep(struct fx_thread *me, clockid_t clock, int flags,
		    const struct timespec *time, struct timespec *left)
{
	struct fx_deadline deadline;
	uint32_t handlers, rigid;
	enum fx_reason why;
	uint64_t now;
	int bad;

	fx_thread_cancel_point(me);
	if (!fx_thread_lent())
		return FX_IO_PLAIN;
	bad = until(me, clock, flags, time, &deadline);
	if (bad)
		return bad;
	for (;;) {
		handlers = me->handlers;
		rigid = me->no_restart;
		fx_thread_enter(me);
		why = fx_sleep(&me->task, &deadline,
			       fx_thread_listens(me, true));
		fx_thread_leave(me);
		if (why == FX_WOKEN_TIMEOUT)
			return 0;
		fx_thread_cancel_point(me);
		if (fx_interrupted(me, handlers, rigid, false))
			break;
		fx_thread_lent();
	}
	if (left && !(flags & TIMER_ABSTIME)) {
		now = fx_now_ns();
		*left = fx_timespec(
			deadline.at_ns > now ? deadline.at_ns - now : 0);
	}
	return EINTR;
}
