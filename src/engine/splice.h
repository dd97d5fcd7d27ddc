/* SPDX-License-Identifier: MIT */
/*
 * splice(2) into a pipe holds the pipe's lock while it waits for its input,
 * and whoever touches the pipe meanwhile (a read with RWF_NOWAIT, a close)
 * waits for that lock in a way that no signal ends. So the wait is made first,
 * with poll(2), and then only what is there is spliced.
 *
 * The other direction, a pipe into a socket without room, has the same fault
 * in the kernel; it cannot be told how much there is room for.
 */
#ifndef FX_ENGINE_SPLICE_H
#define FX_ENGINE_SPLICE_H

#include "base/types.h"

#include <linux/flexsc.h>

/* Would this splice wait with the pipe locked? */
bool fx_splice_locks(const struct flexsc_entry *call);

/**
 * fx_splice_calls - it again, as calls that wait without the lock
 * @call: makes one call by number and six arguments; its result
 *
 * Both files are kept meanwhile by duplicates of their descriptors, as a call
 * that waits in the kernel keeps them.
 *
 * Return: the result of the splice, or the error of a wait that was ended.
 */
int64_t fx_splice_calls(const uint64_t *args,
			int64_t (*call)(void *arg, unsigned int nr,
					const uint64_t *args),
			void *arg);

#endif /* FX_ENGINE_SPLICE_H */
