/* SPDX-License-Identifier: MIT */
/*
 * From a system call's number and arguments to an io_uring operation that
 * does exactly the same. Which of them are worth it is engine/uring.c's.
 */
#ifndef FX_ENGINE_URING_PREP_H
#define FX_ENGINE_URING_PREP_H

#include "base/types.h"

#include <liburing.h>
#include <linux/flexsc.h>

/* The operations that the running kernel has, one bit each. */
struct fx_uring_ops {
	uint64_t has;
};

/* Return: 0, or -errno if the kernel does not say. */
int fx_uring_probe(struct fx_uring_ops *ops, struct io_uring *ring);

/**
 * fx_uring_prep - write the operation for a call
 * @sqe:  private memory; its user_data is left 0
 * @call: number and arguments
 *
 * Context: any; the application's memory is not looked at.
 * Return: false, and nothing written, if there is no operation, the running
 * kernel lacks it, or it would do something else with these arguments.
 */
bool fx_uring_prep(const struct fx_uring_ops *ops, struct io_uring_sqe *sqe,
		   const struct flexsc_entry *call);

#endif /* FX_ENGINE_URING_PREP_H */
