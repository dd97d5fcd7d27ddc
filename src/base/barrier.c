/* SPDX-License-Identifier: MIT */
/*
 * Registration and use of membarrier(2). The mode is decided once, before any
 * second thread of ours exists, and only ever goes from "not yet" to decided:
 * a light barrier that misses the change would be a lost wake-up.
 */
#include "base/barrier.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Symmetric until registered: right in any order of calls. */
bool fx_barrier_symmetric = true;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool decided;

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

bool fx_barrier_init(void)
{
	bool asymmetric;

	pthread_mutex_lock(&lock);
	if (!decided) {
		fx_barrier_symmetric =
			membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
		decided = true;
	}
	asymmetric = !fx_barrier_symmetric;
	pthread_mutex_unlock(&lock);
	return asymmetric;
}

void fx_barrier_after_fork(void)
{
	/* The registration belongs to the mm, which the child copied afresh. */
	pthread_mutex_init(&lock, NULL);
	fx_barrier_symmetric = true;
	decided = false;
}

void fx_barrier_heavy(void)
{
	if (fx_barrier_symmetric ||
	    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		fx_fence();
}
