/* SPDX-License-Identifier: MIT */
/* Names of mutexes and condition variables: POSIX and C11. */
#include "preload/c11.h"
#include "preload/result.h"
#include "threads/cond.h"
#include "threads/mutex.h"
#include "threads/time.h"

FX_NEXT(pthread_mutex_lock);
FX_NEXT(pthread_mutex_trylock);
FX_NEXT(pthread_mutex_clocklock);
FX_NEXT(pthread_mutex_unlock);
FX_NEXT(pthread_mutex_consistent);
FX_NEXT(pthread_mutex_setprioceiling);
FX_NEXT(pthread_cond_wait);
FX_NEXT(pthread_cond_clockwait);
FX_NEXT(pthread_cond_timedwait);
FX_NEXT(pthread_cond_signal);
FX_NEXT(pthread_cond_broadcast);
FX_NEXT(pthread_cond_destroy);

/* Out of line, so that the usual way saves no registers. */
static __attribute__((noinline)) int lock_slow(pthread_mutex_t *mutex)
{
	struct fx_thread *me = fx_waiter();

	return me ? fx_mutex_lock(me, mutex, NULL) :
		    NEXT(pthread_mutex_lock)(mutex);
}

static __attribute__((noinline)) int unlock_slow(pthread_mutex_t *mutex)
{
	struct fx_thread *me = fx_waiter();

	return me ? fx_mutex_unlock(me, mutex) :
		    NEXT(pthread_mutex_unlock)(mutex);
}

static __attribute__((noinline)) int wake(pthread_mutex_t *mutex)
{
	fx_mutex_wake(fx_waiter(), mutex);
	return 0;
}

FX_NAME int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	struct fx_thread *me = fx_thread_self();

	if (fx_likely(me && fx_mutex_lock_fast(me, mutex)))
		return 0;
	return lock_slow(mutex);
}

FX_NAME int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	struct fx_thread *me = fx_waiter();

	return me ? fx_mutex_trylock(me, mutex) :
		    NEXT(pthread_mutex_trylock)(mutex);
}

/*
 * A leaf, and without the thread: what is stored on the way to a locked
 * operation is waited for by it. With one thread the C library locks nothing.
 */
FX_NAME int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (fx_unlikely(!fx_load_relaxed(&fx_threads_running) ||
			!fx_mutex_is_usual(mutex)))
		return unlock_slow(mutex);
	return fx_unlikely(fx_mutex_give(mutex)) ? wake(mutex) : 0;
}

FX_NAME int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
				    const struct timespec *until)
{
	struct fx_thread *me = fx_waiter();
	struct fx_deadline deadline;

	if (!me)
		return NEXT(pthread_mutex_clocklock)(mutex, clock, until);
	if (fx_unlikely(fx_deadline_of(&deadline, clock, until))) {
		/* What can be had at once, or never, needs no valid time. */
		fx_thread_home(me, FX_HOME_LOCK);
		return NEXT(pthread_mutex_clocklock)(mutex, clock, until);
	}
	return fx_mutex_lock(me, mutex, &deadline);
}

FX_NAME int pthread_mutex_timedlock(pthread_mutex_t *mutex,
				    const struct timespec *until)
{
	return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, until);
}

FX_NAME int pthread_mutex_consistent(pthread_mutex_t *mutex)
{
	return NEXT(pthread_mutex_consistent)(mutex);
}

FX_NAME int pthread_mutex_setprioceiling(pthread_mutex_t *mutex, int ceiling,
					 int *old)
{
	struct fx_thread *me = fx_thread_away();

	if (me)
		fx_thread_home(me, FX_HOME_LOCK);
	return NEXT(pthread_mutex_setprioceiling)(mutex, ceiling, old);
}

FX_NAME int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct fx_thread *me = fx_waiter();

	return me ? fx_cond_wait(me, cond, mutex, NULL) :
		    NEXT(pthread_cond_wait)(cond, mutex);
}

FX_NAME int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				   clockid_t clock,
				   const struct timespec *until)
{
	struct fx_thread *me = fx_waiter();
	struct fx_deadline deadline;
	int bad;

	if (!me)
		return NEXT(pthread_cond_clockwait)(cond, mutex, clock, until);
	bad = fx_deadline_of(&deadline, clock, until);
	return bad ? bad : fx_cond_wait(me, cond, mutex, &deadline);
}

FX_NAME int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				   const struct timespec *until)
{
	struct fx_thread *me = fx_waiter();
	struct fx_deadline deadline;
	int bad;

	if (!me)
		return NEXT(pthread_cond_timedwait)(cond, mutex, until);
	bad = fx_deadline_of(&deadline, fx_cond_clock(cond), until);
	return bad ? bad : fx_cond_wait(me, cond, mutex, &deadline);
}

FX_NAME int pthread_cond_signal(pthread_cond_t *cond)
{
	struct fx_thread *me = fx_waiter();

	return me ? fx_cond_wake(me, cond, 1) : NEXT(pthread_cond_signal)(cond);
}

FX_NAME int pthread_cond_broadcast(pthread_cond_t *cond)
{
	struct fx_thread *me = fx_waiter();

	return me ? fx_cond_wake(me, cond, UINT32_MAX) :
		    NEXT(pthread_cond_broadcast)(cond);
}

FX_NAME int pthread_cond_destroy(pthread_cond_t *cond)
{
	return fx_waiter() ? fx_cond_destroy(cond) :
			     NEXT(pthread_cond_destroy)(cond);
}

FX_NAME int mtx_lock(mtx_t *mutex)
{
	return fx_c11(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

FX_NAME int mtx_trylock(mtx_t *mutex)
{
	return fx_c11(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

FX_NAME int mtx_timedlock(mtx_t *mutex, const struct timespec *until)
{
	return fx_c11(pthread_mutex_timedlock((pthread_mutex_t *)mutex, until));
}

FX_NAME int mtx_unlock(mtx_t *mutex)
{
	return fx_c11(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

FX_NAME int cnd_wait(cnd_t *cond, mtx_t *mutex)
{
	return fx_c11(pthread_cond_wait((pthread_cond_t *)cond,
					(pthread_mutex_t *)mutex));
}

FX_NAME int cnd_timedwait(cnd_t *cond, mtx_t *mutex,
			  const struct timespec *until)
{
	return fx_c11(pthread_cond_timedwait((pthread_cond_t *)cond,
					     (pthread_mutex_t *)mutex, until));
}

FX_NAME int cnd_signal(cnd_t *cond)
{
	return fx_c11(pthread_cond_signal((pthread_cond_t *)cond));
}

FX_NAME int cnd_broadcast(cnd_t *cond)
{
	return fx_c11(pthread_cond_broadcast((pthread_cond_t *)cond));
}

FX_NAME void cnd_destroy(cnd_t *cond)
{
	pthread_cond_destroy((pthread_cond_t *)cond);
}
