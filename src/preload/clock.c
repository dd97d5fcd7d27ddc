/* SPDX-License-Identifier: MIT */
/*
 * Names of clocks. A thread's CPU time is what it used on carriers, and what
 * its own kernel thread has used. Timers on such a clock see only the latter.
 */
#include "preload/result.h"
#include "threads/create.h"
#include "threads/time.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

FX_NEXT(clock_gettime);
FX_NEXT(pthread_getcpuclockid);
FX_NEXT(getrusage);

/* As the kernel makes the clock of a thread out of its number. */
#define THREAD_CLOCK(tid) ((clockid_t)(~(unsigned)(tid) << 3 | 6))

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
	if (fx_load_relaxed(&fx_threads_running))
		fx_task_count_cpu();
	return NEXT(pthread_getcpuclockid)(thread, clock);
}

FX_NAME int getrusage(__rusage_who_t who, struct rusage *usage)
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
