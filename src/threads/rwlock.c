/* SPDX-License-Identifier: MIT */
/* Read-write locks; see threads/rwlock.h. */
#include "threads/rwlock.h"

#include "threads/lot.h"

#include <errno.h>
#include <string.h>

#define WRITTEN 1u
#define WRITER_WAITS 2u
#define READER_WAITS 4u
#define READER 8u
#define MAX_READERS (UINT32_MAX / READER)

/* Tags in the lot. */
#define TAG_READER 1u
#define TAG_WRITER 2u

static uint32_t *word(pthread_rwlock_t *l)
{
	return (uint32_t *)&l->__data.__readers;
}

bool fx_rwlock_is_shared(const pthread_rwlock_t *l)
{
	return l->__data.__shared;
}

/* Only the last of the three kinds really does (pthread_rwlockattr_setkind_np). */
static bool prefers_writers(const pthread_rwlock_t *l)
{
	return l->__data.__flags ==
	       PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

static bool readable(const pthread_rwlock_t *l, uint32_t w)
{
	return !(w & WRITTEN) && !(w & WRITER_WAITS && prefers_writers(l));
}

/* Return: 0, EBUSY or EAGAIN. */
static int try_read(pthread_rwlock_t *l)
{
	uint32_t w = fx_load_relaxed(word(l));

	do {
		if (!readable(l, w))
			return EBUSY;
		if (w / READER == MAX_READERS)
			return EAGAIN;
	} while (!fx_cas(word(l), &w, w + READER));
	return 0;
}

static int try_write(struct fx_thread *me, pthread_rwlock_t *l)
{
	uint32_t w = fx_load_relaxed(word(l));

	do
		if (w & WRITTEN || w / READER)
			return EBUSY;
	while (!fx_cas(word(l), &w, w | WRITTEN));
	fx_store_relaxed(&l->__data.__cur_writer, me->tid);
	return 0;
}

struct want {
	pthread_rwlock_t *lock;
	enum fx_rw how;
};

/* Under the bucket's lock: say that somebody waits, unless it can be had. */
static bool must_wait(void *arg)
{
	struct want *want = arg;
	uint32_t bit = want->how == FX_READ ? READER_WAITS : WRITER_WAITS;
	uint32_t w = fx_load_relaxed(word(want->lock));

	do {
		if (want->how == FX_READ && readable(want->lock, w))
			return false;
		if (want->how == FX_WRITE && !(w & WRITTEN) && !(w / READER))
			return false;
	} while (!fx_cas(word(want->lock), &w, w | bit));
	return true;
}

static void forget(pthread_rwlock_t *l, uint32_t bit)
{
	uint32_t w = fx_load_relaxed(word(l));

	while (w & bit && !fx_cas(word(l), &w, w & ~bit))
		;
}

static void readers_left(void *lock, bool left)
{
	if (!left)
		forget(lock, READER_WAITS);
}

static void writers_left(void *lock, bool left)
{
	if (!left)
		forget(lock, WRITER_WAITS);
}

/* A writer first: readers that are in can let more in by themselves. */
static void wake(struct fx_thread *me, pthread_rwlock_t *l, uint32_t w)
{
	fx_thread_enter(me);
	if (!(w & WRITER_WAITS) ||
	    !fx_lot_wake(l, 1, TAG_WRITER, writers_left, l) ||
	    !prefers_writers(l))
		if (w & READER_WAITS)
			fx_lot_wake(l, UINT32_MAX, TAG_READER, readers_left, l);
	fx_thread_leave(me);
}

/* It may have kept readers out. */
static void give_up_writing(struct fx_thread *me, pthread_rwlock_t *l)
{
	uint32_t w;

	fx_thread_enter(me);
	fx_lot_wake(l, 0, TAG_WRITER, writers_left, l);
	fx_thread_leave(me);
	w = fx_load_relaxed(word(l));
	if (!(w & (WRITTEN | WRITER_WAITS)))
		wake(me, l, w);
}

int fx_rwlock_trylock(struct fx_thread *me, pthread_rwlock_t *l, enum fx_rw how)
{
	return how == FX_READ ? try_read(l) : try_write(me, l);
}

int fx_rwlock_lock(struct fx_thread *me, pthread_rwlock_t *l, enum fx_rw how,
		   const struct fx_deadline *deadline)
{
	struct want want = { l, how };
	struct fx_lot_wait wait = {
		.key = l,
		.where = how == FX_READ ? "read lock" : "write lock",
		.deadline = deadline,
		.tag = how == FX_READ ? TAG_READER : TAG_WRITER,
		.check = must_wait,
		.arg = &want
	};
	enum fx_reason why;
	int bad;

	while ((bad = fx_rwlock_trylock(me, l, how)) == EBUSY) {
		if (l->__data.__cur_writer == me->tid)
			return EDEADLK;
		fx_thread_lent();
		fx_thread_enter(me);
		why = fx_lot_wait(me, &wait);
		fx_thread_leave(me);
		if (why != FX_WOKEN_TIMEOUT)
			continue;
		if (how == FX_WRITE)
			give_up_writing(me, l);
		return ETIMEDOUT;
	}
	return bad;
}

int fx_rwlock_unlock(struct fx_thread *me, pthread_rwlock_t *l)
{
	uint32_t w = fx_load_relaxed(word(l)), rest;

	if (w & WRITTEN)
		fx_store_relaxed(&l->__data.__cur_writer, 0);
	do
		rest = w & WRITTEN ? w & ~WRITTEN : w - READER;
	while (!fx_cas(word(l), &w, rest));
	if (rest & (WRITER_WAITS | READER_WAITS) && !(rest / READER))
		wake(me, l, rest);
	return 0;
}

bool fx_rwlock_understood(void)
{
	pthread_rwlock_t own = PTHREAD_RWLOCK_INITIALIZER, shared;
	pthread_rwlockattr_t attr;
	bool good;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_rwlockattr_setkind_np(
		&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	memset(&shared, 0, sizeof(shared));
	pthread_rwlock_init(&shared, &attr);
	pthread_rwlockattr_destroy(&attr);
	good = shared.__data.__shared && prefers_writers(&shared) &&
	       !own.__data.__shared;
	pthread_rwlock_wrlock(&own);
	good &= own.__data.__cur_writer != 0;
	pthread_rwlock_unlock(&own);
	return good;
}
