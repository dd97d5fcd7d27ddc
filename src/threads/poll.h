/* SPDX-License-Identifier: MIT */
/* Waiting for several descriptors on a carrier. */
#ifndef FX_THREADS_POLL_H
#define FX_THREADS_POLL_H

#include "threads/io.h"

#include <poll.h>
#include <sys/select.h>

/**
 * fx_thread_wait - until a descriptor is ready
 * @deadline: or NULL
 *
 * Return: what it is ready for (poll's revents), 0 at the deadline, -EINTR, or
 * FX_IO_PLAIN: nothing was done, it cannot be waited for so.
 */
int64_t fx_thread_wait(struct fx_thread *me, const struct pollfd *fd,
		       const struct fx_deadline *deadline);

/**
 * fx_thread_poll - as poll(2)
 * @me: from fx_thread_lent()
 * @timeout_ns: FX_NEVER: without limit
 *
 * Return: as poll(2), -errno, or FX_IO_PLAIN.
 */
int64_t fx_thread_poll(struct fx_thread *me, struct pollfd *fds, nfds_t nr,
		       uint64_t timeout_ns);

/* As select(2), which does not say how much time was left. */
int64_t fx_thread_select(struct fx_thread *me, int nr, fd_set *in, fd_set *out,
			 fd_set *except, uint64_t timeout_ns);

#endif /* FX_THREADS_POLL_H */
