/* SPDX-License-Identifier: MIT */
/* Names that sleep. */
#include "preload/clock.h"
#include "preload/result.h"
#include "threads/sleep.h"

#include <limits.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

FX_NEXT(sleep);
FX_NEXT(usleep);
FX_NEXT(nanosleep);
FX_NEXT(clock_nanosleep);
FX_NEXT(thrd_sleep);

static int sleep_on(clockid_t clock, int flags, const struct timespec *time,
		    struct timespec *left)
{
	uint64_t ahead_ns = clock < 0 ? fx_clock_pin(clock) : 0;
	struct fx_thread *me = fx_thread_lent();
	struct timespec moved;
	int ret;

	if (fx_unlikely(ahead_ns && flags & TIMER_ABSTIME)) {
		moved = fx_clock_behind(time, ahead_ns);
		time = &moved;
	}
	ret = me ? fx_thread_sleep(me, clock, flags, time, left) :
		       FX_IO_PLAIN;

	return ret == FX_IO_PLAIN ?
		       NEXT(clock_nanosleep)(clock, flags, time, left) :
		       ret;
}

FX_NAME int clock_nanosleep(clockid_t clock, int flags,
			    const struct timespec *time, struct timespec *left)
{
	return FX_SEEN_ERROR(sleep_on(clock, flags, time, left),
			     SYS_clock_nanosleep, clock, flags, (long)time,
			     (long)left);
}

FX_NAME int nanosleep(const struct timespec *time, struct timespec *left)
{
	int bad;

	if (!fx_thread_lent())
		return FX_SEEN(NEXT(nanosleep)(time, left),
			       SYS_clock_nanosleep, CLOCK_REALTIME, 0,
			       (long)time, (long)left);
	bad = clock_nanosleep(CLOCK_REALTIME, 0, time, left);
	if (bad)
		errno = bad;
	return bad ? -1 : 0;
}

FX_NAME int usleep(useconds_t time_us)
{
	struct timespec time = { time_us / 1000000,
				 (long)(time_us % 1000000) * 1000 };

	return nanosleep(&time, NULL);
}

FX_NAME unsigned sleep(unsigned seconds)
{
	struct timespec time = { seconds, 0 }, left = { 0, 0 };
	int saved = errno;

	if (nanosleep(&time, &left) == 0) {
		errno = saved;
		return 0;
	}
	return (unsigned)left.tv_sec;
}

FX_NAME int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	int bad = clock_nanosleep(CLOCK_REALTIME, 0, time, left);

	return bad == 0 ? 0 : bad == EINTR ? -1 : -2;
}
