/* SPDX-License-Identifier: MIT */
/* Names of semaphores, read-write locks, barriers, spin locks and once. */
#include "preload/result.h"
#include "threads/once.h"
#include "threads/rwlock.h"
#include "threads/sem.h"
#include "threads/time.h"

#include <threads.h>

FX_NEXT(sem_wait);
FX_NEXT(sem_clockwait);
FX_NEXT(sem_timedwait);
FX_NEXT(sem_post);
FX_NEXT(pthread_rwlock_rdlock);
FX_NEXT(pthread_rwlock_tryrdlock);
FX_NEXT(pthread_rwlock_clockrdlock);
FX_NEXT(pthread_rwlock_wrlock);
FX_NEXT(pthread_rwlock_trywrlock);
FX_NEXT(pthread_rwlock_clockwrlock);
FX_NEXT(pthread_rwlock_unlock);
FX_NEXT(pthread_barrier_init);
FX_NEXT(pthread_barrier_destroy);
FX_NEXT(pthread_barrier_wait);
FX_NEXT(pthread_spin_lock);
FX_NEXT(pthread_once);

/* Semaphores --------------------------------------------------------------- */

FX_NAME int sem_wait(sem_t *sem)
{
	struct fx_thread *me = fx_waiter();
	int ret = me ? fx_sem_wait(me, sem, NULL) : 1;

	return ret == 1 ? NEXT(sem_wait)(sem) : ret;
}

/* A bad time counts even if it would not wait, as for the C library. */
FX_NAME int sem_clockwait(sem_t *sem, clockid_t clock,
			  const struct timespec *until)
{
	struct fx_thread *me = fx_waiter();
	struct fx_deadline deadline;
	int ret;

	if (!me)
		return NEXT(sem_clockwait)(sem, clock, until);
	ret = fx_deadline_of(&deadline, clock, until);
	if (ret) {
		errno = ret;
		return -1;
	}
	if (sem_trywait(sem) == 0)
		return 0;
	ret = fx_sem_wait(me, sem, &deadline);
	return ret == 1 ? NEXT(sem_clockwait)(sem, clock, until) : ret;
}

FX_NAME int sem_timedwait(sem_t *sem, const struct timespec *until)
{
	struct fx_thread *me = fx_waiter();
	struct fx_deadline deadline;
	int ret;

	if (!me)
		return NEXT(sem_timedwait)(sem, until);
	ret = fx_deadline_of(&deadline, CLOCK_REALTIME, until);
	if (ret) {
		errno = ret;
		return -1;
	}
	ret = fx_sem_wait(me, sem, &deadline);
	return ret == 1 ? NEXT(sem_timedwait)(sem, until) : ret;
}

FX_NAME int sem_post(sem_t *sem)
{
	return fx_waiter() ? fx_sem_post(sem) : NEXT(sem_post)(sem);
}

/* Read-write locks ----------------------------------------------------------- */

/*
 * NULL: the C library's; then at home, where it may wait. The first words of
 * the others are ours from the beginning, before there are threads.
 */
static struct fx_thread *locker(pthread_rwlock_t *lock)
{
	struct fx_thread *me = fx_thread_known();

	if (!me || !fx_rwlock_is_shared(lock))
		return me;
	fx_thread_home(me, FX_HOME_LOCK);
	return NULL;
}

FX_NAME int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	struct fx_thread *me = locker(lock);

	return me ? fx_rwlock_lock(me, lock, FX_READ, NULL) :
		    NEXT(pthread_rwlock_rdlock)(lock);
}

FX_NAME int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	struct fx_thread *me = locker(lock);

	return me ? fx_rwlock_lock(me, lock, FX_WRITE, NULL) :
		    NEXT(pthread_rwlock_wrlock)(lock);
}

FX_NAME int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
	struct fx_thread *me = locker(lock);

	return me ? fx_rwlock_trylock(me, lock, FX_READ) :
		    NEXT(pthread_rwlock_tryrdlock)(lock);
}

FX_NAME int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
	struct fx_thread *me = locker(lock);

	return me ? fx_rwlock_trylock(me, lock, FX_WRITE) :
		    NEXT(pthread_rwlock_trywrlock)(lock);
}

FX_NAME int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
				       const struct timespec *until)
{
	struct fx_thread *me = locker(lock);
	struct fx_deadline deadline;
	int bad;

	if (!me)
		return NEXT(pthread_rwlock_clockrdlock)(lock, clock, until);
	bad = fx_deadline_of(&deadline, clock, until);
	return bad ? bad : fx_rwlock_lock(me, lock, FX_READ, &deadline);
}

FX_NAME int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
				       const struct timespec *until)
{
	struct fx_thread *me = locker(lock);
	struct fx_deadline deadline;
	int bad;

	if (!me)
		return NEXT(pthread_rwlock_clockwrlock)(lock, clock, until);
	bad = fx_deadline_of(&deadline, clock, until);
	return bad ? bad : fx_rwlock_lock(me, lock, FX_WRITE, &deadline);
}

FX_NAME int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock,
				       const struct timespec *until)
{
	return pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, until);
}

FX_NAME int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock,
				       const struct timespec *until)
{
	return pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, until);
}

FX_NAME int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	struct fx_thread *me = fx_thread_known();

	return me && !fx_rwlock_is_shared(lock) ?
		       fx_rwlock_unlock(me, lock) :
		       NEXT(pthread_rwlock_unlock)(lock);
}

/* Barriers, spin locks, once ------------------------------------------------- */

/* Ours from the beginning: threads may come later. */
FX_NAME int pthread_barrier_init(pthread_barrier_t *barrier,
				 const pthread_barrierattr_t *attr,
				 unsigned count)
{
	int shared = PTHREAD_PROCESS_PRIVATE;

	if (attr)
		pthread_barrierattr_getpshared(attr, &shared);
	return shared == PTHREAD_PROCESS_SHARED ?
		       NEXT(pthread_barrier_init)(barrier, attr, count) :
		       fx_barrier_init_own(barrier, count);
}

FX_NAME int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	return fx_barrier_is_own(barrier) ?
		       fx_barrier_destroy_own(barrier) :
		       NEXT(pthread_barrier_destroy)(barrier);
}

FX_NAME int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	struct fx_thread *me = fx_thread_known();

	if (me && fx_barrier_is_own(barrier))
		return fx_barrier_wait(me, barrier);
	me = fx_thread_away();
	if (me)
		fx_thread_home(me, FX_HOME_LOCK);
	return NEXT(pthread_barrier_wait)(barrier);
}

#define SPINS 100

/* Who holds it may be waiting for this carrier. */
FX_NAME int pthread_spin_lock(pthread_spinlock_t *lock)
{
	struct fx_thread *me = fx_thread_away();

	if (!me)
		return NEXT(pthread_spin_lock)(lock);
	for (unsigned i = 1; pthread_spin_trylock(lock); i++) {
		fx_cpu_relax();
		if (i % SPINS)
			continue;
		fx_thread_enter(me);
		fx_yield(&me->task);
		fx_thread_leave(me);
	}
	return 0;
}

FX_NAME int pthread_once(pthread_once_t *once, void (*run)(void))
{
	struct fx_thread *me;

	if (fx_likely(fx_load_acquire(once) == 2))
		return 0;
	me = fx_waiter();
	return me ? fx_once(me, once, run) : NEXT(pthread_once)(once, run);
}

FX_NAME void call_once(once_flag *once, void (*run)(void))
{
	pthread_once((pthread_once_t *)once, run);
}
