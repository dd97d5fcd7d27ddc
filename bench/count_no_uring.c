/* SPDX-License-Identifier: MIT */
/* A build without liburing. */
#include "bench/count.h"

#include <errno.h>

int count_uring_init(void)
{
	return -ENOSYS;
}

void count_uring_fini(void)
{
}

void count_uring_prepare(struct count_objects *o, enum count_call call,
			 unsigned int nr)
{
	(void)o;
	(void)call;
	(void)nr;
}

void count_uring_finish(struct count_objects *o, enum count_call call,
			unsigned int nr)
{
	(void)o;
	(void)call;
	(void)nr;
}
