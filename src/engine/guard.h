/* SPDX-License-Identifier: MIT */
/*
 * Calls that should not block but might: opening what turns out to be a
 * FIFO, accepting a connection that another process was faster to take. The
 * guarded thread makes them itself; a watcher interrupts one that takes
 * longer than FX_GUARD_MS, and the caller gives it to a thread of the pool.
 *
 * The watcher ticks while guarded calls are made and sleeps when there were
 * none for two ticks. Protocol: `inside` is the number of the call, 0 between
 * calls. The watcher claims it by compare-and-swap before it sends the signal
 * and says so afterwards; the caller gives it back by compare-and-swap, and
 * if that fails waits for the signal to be over. So it cannot hit another
 * call. Going to sleep: see base/barrier.h; the caller is the busy side.
 */
#ifndef FX_ENGINE_GUARD_H
#define FX_ENGINE_GUARD_H

#include "base/types.h"
#include "engine/interrupt.h"

#include <linux/flexsc.h>
#include <pthread.h>

#define FX_GUARD_MS 10

/* The call was interrupted: it has had no effect and must be made again. */
#define FX_GUARD_BLOCKED INT64_MIN

struct fx_guard {
	struct fx_interrupt interrupt;
	uint32_t inside; /* number of the call, or one of the two below */
	uint32_t number; /* guarded thread only */
	bool cut; /* the same: its last call was interrupted */
	uint32_t asleep; /* futex: the watcher sleeps */
	uint32_t stop;
	uint32_t started;
	const pid_t
		*holder; /* who is guarded, by kernel thread, if it is not 0 */
	pid_t tid; /* else: of the guarded thread, when it is `thread` */
	pthread_t thread;
	pthread_t watcher;
};

/*
 * Starts nothing yet; zero-initialized memory would do. @holder: see struct
 * fx_engine, or NULL.
 */
void fx_guard_init(struct fx_guard *guard, const pid_t *holder);
void fx_guard_fini(struct fx_guard *guard);

/* Guarded calls do so. Return: false: there will be nobody to watch them. */
bool fx_guard_start(struct fx_guard *guard);

/* Is this a number to guard? */
bool fx_guard_wanted(unsigned int nr);

/**
 * fx_guard_call - the call, or FX_GUARD_BLOCKED
 *
 * Context: one thread at a time. Without a watcher (no memory for a thread,
 * signal blocked) the call blocks as the plain one does.
 */
int64_t fx_guard_call(struct fx_guard *guard, const struct flexsc_entry *call);

#endif /* FX_ENGINE_GUARD_H */
