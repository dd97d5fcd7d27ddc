/* SPDX-License-Identifier: MIT */
/* futex(2) without errno, and the slow half of struct fx_lock. */
#include "base/futex.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static int futex(uint32_t *word, int op, uint32_t value,
		 const struct timespec *timeout)
{
	int saved = errno;
	long ret = syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value,
			   timeout, NULL, 0);

	if (ret < 0)
		ret = -errno;
	errno = saved;
	return (int)ret;
}

int fx_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	struct timespec ts = fx_timespec(timeout_ns);

	return futex(word, FUTEX_WAIT, expected,
		     timeout_ns == FX_NEVER ? NULL : &ts);
}

int fx_futex_wake(uint32_t *word, int count)
{
	return futex(word, FUTEX_WAKE, (uint32_t)count, NULL);
}

void fx_lock_slow(struct fx_lock *lock)
{
	/* Sections are shorter than a wake-up: look a few times first. */
	for (int i = 0; i < 64; i++) {
		uint32_t unlocked = 0;

		if (fx_load_relaxed(&lock->word) == 0 &&
		    fx_cas(&lock->word, &unlocked, 1u))
			return;
		fx_cpu_relax();
	}
	while (fx_exchange(&lock->word, 2u) != 0)
		fx_futex_wait(&lock->word, 2, FX_NEVER);
}
