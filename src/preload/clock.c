/* SPDX-License-Identifier: MIT */
/*
 * Names of clocks. A thread's CPU time is what it used on carriers, and what
 * its own kernel thread has used. The kernel knows only the latter: a thread
 * whose CPU clock something is to wait on stays at home, and times on that
 * clock are moved by what its clock is ahead of the kernel's.
 */
#include "preload/clock.h"

#include "base/futex.h"
#include "preload/result.h"
#include "threads/create.h"
#include "threads/relay.h"
#include "threads/time.h"

#include <stdlib.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

FX_NEXT(clock_gettime);
FX_NEXT(pthread_getcpuclockid);
FX_NEXT(getrusage);
FX_NEXT(timer_create);
FX_NEXT(timer_settime);
FX_NEXT(timer_delete);

/* As the kernel makes the clock of a thread out of its number. */
#define THREAD_CLOCK(tid) ((clockid_t)(~(unsigned)(tid) << 3 | 6))
#define THREAD_OF(clock) ((pid_t) ~((clock) >> 3))

static bool is_thread_clock(clockid_t clock)
{
	return clock == CLOCK_THREAD_CPUTIME_ID ||
	       (clock < 0 && (clock & 7) == 6);
}

struct search {
	clockid_t clock;
	struct fx_thread *found;
};

static void compare(struct fx_thread *t, void *arg)
{
	struct search *s = arg;

	if (t->tid && THREAD_CLOCK(t->tid) == s->clock)
		s->found = t;
}

static struct fx_thread *owner_of(clockid_t clock)
{
	struct search search = { clock, fx_thread_self() };

	if (clock != CLOCK_THREAD_CPUTIME_ID) {
		search.found = NULL;
		fx_threads_walk(compare, &search);
	}
	return search.found;
}

static int thread_clock(clockid_t clock, struct timespec *ts)
{
	struct fx_thread *t = owner_of(clock);
	uint64_t ns;
	int ret;

	if (!t)
		return NEXT(clock_gettime)(clock, ts);
	fx_task_count_cpu();
	ns = fx_task_cpu_ns(&t->task);
	ret = NEXT(clock_gettime)(THREAD_CLOCK(t->tid), ts);
	if (ret == 0)
		*ts = fx_timespec(fx_ns_of(ts) + ns);
	return ret;
}

FX_NAME int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (fx_unlikely(is_thread_clock(clock)) &&
	    fx_load_relaxed(&fx_threads_running))
		return thread_clock(clock, ts);
	return NEXT(clock_gettime)(clock, ts);
}

FX_NAME int pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
	struct fx_thread *t;
	int bad;

	if (!fx_load_relaxed(&fx_threads_running))
		return NEXT(pthread_getcpuclockid)(thread, clock);
	/* The clock is to end with the thread. */
	if (fx_thread_wear(thread))
		return ESRCH;
	bad = NEXT(pthread_getcpuclockid)(thread, clock);
	if (bad)
		return bad;
	fx_task_count_cpu();
	/* It may not have run yet, to find out for itself. */
	t = fx_thread_of(thread);
	if (t)
		fx_store_relaxed(&t->tid, THREAD_OF(*clock));
	return 0;
}

/* Come home in some 100 us, unless the machine is busy. */
#define ARRIVAL_NS (50 * FX_NS_PER_US)
#define ARRIVALS 400

static void send_home(struct fx_thread *t)
{
	struct timespec nap = fx_timespec(ARRIVAL_NS);

	t->worn = true;
	if (!t->stays)
		t->stays = FX_HOME_IDENTITY;
	fx_relay_call_home(t);
	for (unsigned i = 0; i < ARRIVALS && fx_load_relaxed(&t->task.carrier);
	     i++)
		fx_arch_syscall(SYS_nanosleep, (long)&nap, 0, 0, 0, 0, 0);
}

uint64_t fx_clock_pin(clockid_t clock)
{
	struct fx_thread *me = fx_thread_self(), *t;

	if (fx_likely(!is_thread_clock(clock)) ||
	    !fx_load_relaxed(&fx_threads_running))
		return 0;
	t = owner_of(clock);
	if (!t)
		return 0;
	if (t == me) {
		me->worn = true;
		fx_thread_stay(me, FX_HOME_IDENTITY);
	} else {
		fx_thread_home(me, FX_HOME_CALL);
		send_home(t);
	}
	return fx_task_cpu_ns(&t->task);
}

struct timespec fx_clock_behind(const struct timespec *time, uint64_t ahead_ns)
{
	uint64_t ns = fx_ns_of(time);

	if (time->tv_nsec < 0 || time->tv_nsec >= (long)FX_NS_PER_SEC)
		return *time;
	/* Zero would stop a timer. */
	return fx_timespec(ns > ahead_ns ? ns - ahead_ns : 1);
}

/* Timers on clocks that are ahead of the kernel's; under the lock. */
struct ahead {
	struct ahead *next;
	timer_t timer;
	uint64_t ns;
};

static struct ahead *timers;
static struct fx_lock timers_lock;

/* The link to a timer, which may be NULL. */
static struct ahead **find_timer(timer_t timer)
{
	struct ahead **at = &timers;

	while (*at && (*at)->timer != timer)
		at = &(*at)->next;
	return at;
}

/* Take out what there was of this number; @ns: what there is now, or 0. */
static void note_timer(timer_t timer, uint64_t ns)
{
	struct ahead *made = ns ? malloc(sizeof(*made)) : NULL, *old, **at;

	fx_lock(&timers_lock);
	at = find_timer(timer);
	old = *at;
	if (old)
		*at = old->next;
	if (made) {
		*made = (struct ahead){ timers, timer, ns };
		timers = made;
	}
	fx_unlock(&timers_lock);
	free(old);
}

FX_NAME int timer_create(clockid_t clock, struct sigevent *restrict event,
			 timer_t *restrict timer)
{
	uint64_t ahead_ns = fx_clock_pin(clock);
	struct fx_thread *me = fx_thread_away();
	int ret;

	if (me) /* see helpers.c */
		fx_thread_home(me, FX_HOME_CALL);
	ret = FX_SEEN(NEXT(timer_create)(clock, event, timer), SYS_timer_create,
		      clock, (long)event, (long)timer);
	if (ret == 0 && (ahead_ns || fx_load_relaxed(&timers)))
		note_timer(*timer, ahead_ns);
	return ret;
}

static int set_timer(timer_t timer, int flags, const struct itimerspec *value,
		     struct itimerspec *old)
{
	struct itimerspec moved;
	uint64_t ahead_ns = 0;
	struct ahead *found;

	if (fx_likely(!(flags & TIMER_ABSTIME) || !fx_load_relaxed(&timers)))
		return NEXT(timer_settime)(timer, flags, value, old);
	fx_lock(&timers_lock);
	found = *find_timer(timer);
	if (found)
		ahead_ns = found->ns;
	fx_unlock(&timers_lock);
	moved = *value;
	if (ahead_ns && (moved.it_value.tv_sec || moved.it_value.tv_nsec))
		moved.it_value = fx_clock_behind(&moved.it_value, ahead_ns);
	return NEXT(timer_settime)(timer, flags, &moved, old);
}

FX_NAME int timer_settime(timer_t timer, int flags,
			  const struct itimerspec *restrict value,
			  struct itimerspec *restrict old)
{
	return FX_SEEN(set_timer(timer, flags, value, old), SYS_timer_settime,
		       (long)timer, flags, (long)value, (long)old);
}

FX_NAME int timer_delete(timer_t timer)
{
	if (fx_load_relaxed(&timers))
		note_timer(timer, 0);
	return FX_SEEN(NEXT(timer_delete)(timer), SYS_timer_delete,
		       (long)timer);
}

static int read_usage(__rusage_who_t who, struct rusage *usage)
{
	struct fx_thread *me = fx_thread_away();
	uint64_t us;
	int ret;

	if (!me || who != RUSAGE_THREAD)
		return NEXT(getrusage)(who, usage);
	fx_task_count_cpu();
	us = fx_task_cpu_ns(&me->task) / FX_NS_PER_US;
	fx_thread_home(me, FX_HOME_CALL);
	ret = NEXT(getrusage)(who, usage);
	if (ret == 0) {
		us += (uint64_t)usage->ru_utime.tv_usec;
		usage->ru_utime.tv_sec += (time_t)(us / 1000000);
		usage->ru_utime.tv_usec = (suseconds_t)(us % 1000000);
	}
	return ret;
}

FX_NAME int getrusage(__rusage_who_t who, struct rusage *usage)
{
	return FX_SEEN(read_usage(who, usage), SYS_getrusage, who, (long)usage);
}
