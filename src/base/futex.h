/* SPDX-License-Identifier: MIT */
/* Process-private futexes, and the one lock that the library uses. */
#ifndef FX_BASE_FUTEX_H
#define FX_BASE_FUTEX_H

#include "base/atomic.h"
#include "base/types.h"

/**
 * fx_futex_wait - sleep while *@word is @expected
 * @timeout_ns: relative; FX_NEVER waits without a limit
 *
 * Return: 0 woken (perhaps for nothing), -EAGAIN value differed, -ETIMEDOUT,
 * -EINTR. errno is left alone.
 */
int fx_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns);

/* Wakes up to @count waiters; returns how many. */
int fx_futex_wake(uint32_t *word, int count);

/*
 * A lock of four bytes for short sections between a few threads (0 free,
 * 1 held, 2 held and wanted). Not for signal handlers.
 */
struct fx_lock {
	uint32_t word;
};

void fx_lock_slow(struct fx_lock *lock);

static inline void fx_lock(struct fx_lock *lock)
{
	uint32_t unlocked = 0;

	if (!fx_cas(&lock->word, &unlocked, 1u))
		fx_lock_slow(lock);
}

static inline void fx_unlock(struct fx_lock *lock)
{
	if (fx_exchange(&lock->word, 0u) == 2)
		fx_futex_wake(&lock->word, 1);
}

#endif /* FX_BASE_FUTEX_H */
