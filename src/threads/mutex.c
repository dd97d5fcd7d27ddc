/* SPDX-License-Identifier: MIT */
/* Mutexes; see threads/mutex.h. */
#include "threads/mutex.h"

#include "base/futex.h"
#include "threads/lot.h"
#include "threads/time.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

/* Of __kind: type, and what the C library adds to it. */
#define TYPE 15
#define ROBUST 16
#define INHERIT 32
#define PROTECT 64
#define SHARED 128
#define ODD (ROBUST | INHERIT | PROTECT | SHARED)

static int kind_of(const pthread_mutex_t *m)
{
	return fx_load_relaxed(&m->__data.__kind);
}

static bool is_wanted(void *mutex)
{
	return fx_mutex_is_wanted(mutex);
}

static int wait_for(struct fx_thread *me, pthread_mutex_t *m,
		    const struct fx_deadline *deadline)
{
	struct fx_lot_wait wait = { .key = m,
				    .where = "mutex",
				    .deadline = deadline,
				    .tag = 1,
				    .check = is_wanted,
				    .arg = m };
	enum fx_reason why;

	while (fx_exchange(fx_mutex_word(m), 2u)) {
		fx_thread_enter(me);
		why = fx_lot_wait(me, &wait);
		fx_thread_leave(me);
		if (why == FX_WOKEN_TIMEOUT)
			return ETIMEDOUT;
		fx_thread_lent();
	}
	return 0;
}

/*
 * The C library's own function, at once and on a carrier. It may leave one that
 * cannot be recovered locked (nptl/pthread_mutex_trylock.c compares with the
 * wrong value); the one that this stands for does not.
 */
static int try_robust(struct fx_thread *me, pthread_mutex_t *m)
{
	uint32_t *word = fx_mutex_word(m);
	int bad = pthread_mutex_trylock(m);

	me->worn = true;
	if (bad == ENOTRECOVERABLE &&
	    (fx_load_relaxed(word) & FUTEX_TID_MASK) == (uint32_t)me->tid &&
	    fx_exchange(word, 0u) & FUTEX_WAITERS)
		fx_arch_syscall(SYS_futex, (long)word, FUTEX_WAKE, 1, 0, 0, 0);
	return bad;
}

/* By the C library, at home; it stays there while it holds one with a priority. */
static int lock_odd(struct fx_thread *me, pthread_mutex_t *m,
		    const struct fx_deadline *deadline)
{
	bool priority = kind_of(m) & (INHERIT | PROTECT);
	struct timespec ts;
	int bad = EBUSY;

	if (!priority)
		bad = kind_of(m) & ROBUST ? try_robust(me, m) :
					    pthread_mutex_trylock(m);
	if (bad != EBUSY)
		return bad;
	if (kind_of(m) & ROBUST)
		me->worn = true;
	fx_thread_home(me, FX_HOME_LOCK);
	me->held += priority;
	if (deadline) {
		ts = fx_timespec(deadline->at_ns);
		bad = pthread_mutex_clocklock(m, fx_clock_id(deadline->clock),
					      &ts);
	} else {
		bad = pthread_mutex_lock(m);
	}
	if (bad && bad != EOWNERDEAD)
		me->held -= priority;
	return bad;
}

/* Return: 0: it is to be locked; else what to return, less one. */
static int lock_owned(struct fx_thread *me, pthread_mutex_t *m, int type)
{
	if (m->__data.__owner != me->tid)
		return 0;
	if (type == PTHREAD_MUTEX_ERRORCHECK_NP)
		return EDEADLK + 1;
	if (type != PTHREAD_MUTEX_RECURSIVE_NP)
		return 0;
	if (m->__data.__count + 1 == 0)
		return EAGAIN + 1;
	m->__data.__count++;
	return 1;
}

int fx_mutex_lock(struct fx_thread *me, pthread_mutex_t *m,
		  const struct fx_deadline *deadline)
{
	int kind = kind_of(m), type = kind & TYPE, done;
	uint32_t unlocked = 0;

	if (fx_unlikely(kind & ODD))
		return lock_odd(me, m, deadline);
	if (type == PTHREAD_MUTEX_RECURSIVE_NP ||
	    type == PTHREAD_MUTEX_ERRORCHECK_NP) {
		done = lock_owned(me, m, type);
		if (done)
			return done - 1;
	}
	if (fx_unlikely(!fx_cas(fx_mutex_word(m), &unlocked, 1u))) {
		done = wait_for(me, m, deadline);
		if (done)
			return done;
	}
	if (type == PTHREAD_MUTEX_RECURSIVE_NP)
		m->__data.__count = 1;
	m->__data.__owner = me->tid;
	m->__data.__nusers++;
	return 0;
}

int fx_mutex_trylock(struct fx_thread *me, pthread_mutex_t *m)
{
	int bad, kind = kind_of(m);
	bool priority = kind & (INHERIT | PROTECT);

	if (kind & ROBUST)
		me->worn = true;
	if (priority)
		fx_thread_home(me, FX_HOME_LOCK);
	bad = pthread_mutex_trylock(m);
	if (!bad || bad == EOWNERDEAD)
		me->held += priority;
	return bad;
}

static int unlock_odd(struct fx_thread *me, pthread_mutex_t *m)
{
	bool priority = kind_of(m) & (INHERIT | PROTECT);
	int bad;

	if (priority)
		fx_thread_home(me, FX_HOME_LOCK);
	bad = pthread_mutex_unlock(m);
	if (!bad && priority && me->held)
		me->held--;
	return bad;
}

void fx_mutex_wake(struct fx_thread *me, pthread_mutex_t *m)
{
	if (me) {
		fx_thread_enter(me);
		fx_lot_wake(m, 1, FX_LOT_ANY, NULL, NULL);
		fx_thread_leave(me);
	}
	/* Without carriers it is the C library that waits. */
	if (fx_unlikely(!fx_load_relaxed(&fx_threads_running)))
		fx_futex_wake(fx_mutex_word(m), 1);
}

int fx_mutex_unlock(struct fx_thread *me, pthread_mutex_t *m)
{
	int kind = kind_of(m), type = kind & TYPE;

	if (fx_unlikely(kind & ODD))
		return unlock_odd(me, m);
	if (type == PTHREAD_MUTEX_RECURSIVE_NP) {
		if (m->__data.__owner != me->tid)
			return EPERM;
		if (--m->__data.__count)
			return 0;
	} else if (type == PTHREAD_MUTEX_ERRORCHECK_NP) {
		if (m->__data.__owner != me->tid ||
		    !fx_load_relaxed(fx_mutex_word(m)))
			return EPERM;
	}
	if (fx_unlikely(fx_mutex_give(m)))
		fx_mutex_wake(me, m);
	return 0;
}

int fx_mutex_check(struct fx_thread *me, const pthread_mutex_t *m)
{
	int type = kind_of(m) & TYPE;

	return (type == PTHREAD_MUTEX_RECURSIVE_NP ||
		type == PTHREAD_MUTEX_ERRORCHECK_NP) &&
			       m->__data.__owner != me->tid ?
		       EPERM :
		       0;
}

static int kind_with(int what)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t m;
	int kind;

	pthread_mutexattr_init(&attr);
	if (what == ROBUST)
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (what == INHERIT)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (what == PROTECT)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT);
	if (what == SHARED)
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (what < 4)
		pthread_mutexattr_settype(&attr, what);
	pthread_mutex_init(&m, &attr);
	kind = m.__data.__kind & (TYPE | ODD);
	pthread_mutex_destroy(&m);
	pthread_mutexattr_destroy(&attr);
	return kind;
}

bool fx_mutex_understood(void)
{
	static const int each[] = { PTHREAD_MUTEX_TIMED_NP,
				    PTHREAD_MUTEX_RECURSIVE_NP,
				    PTHREAD_MUTEX_ERRORCHECK_NP,
				    PTHREAD_MUTEX_ADAPTIVE_NP,
				    INHERIT,
				    SHARED };
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

	for (unsigned i = 0; i < FX_ARRAY_SIZE(each); i++)
		if (kind_with(each[i]) != each[i])
			return false;
	if (!(kind_with(ROBUST) & ROBUST) || !(kind_with(PROTECT) & PROTECT))
		return false;
	pthread_mutex_lock(&m);
	return *fx_mutex_word(&m) == 1 && m.__data.__nusers == 1 &&
	       pthread_mutex_unlock(&m) == 0 && *fx_mutex_word(&m) == 0;
}
