/* SPDX-License-Identifier: MIT */
/*
 * Lists of buffers, seen from the byte where the last attempt stopped. The
 * application's own list is never written, and never read before the kernel
 * has accepted it: a bad pointer is an error code, not a fault.
 */
#ifndef FX_ENGINE_IOVEC_H
#define FX_ENGINE_IOVEC_H

#include "base/types.h"

#include <sys/uio.h>

#define FX_IOVEC_WINDOW 64

struct fx_iovec {
	const struct iovec *list;
	size_t count;
	struct iovec single;
	struct iovec window[FX_IOVEC_WINDOW];
};

static inline void fx_iovec_from_buffer(struct fx_iovec *v, uint64_t base,
					uint64_t size_bytes)
{
	v->single.iov_base = (void *)(uintptr_t)base;
	v->single.iov_len = size_bytes;
	v->list = &v->single;
	v->count = 1;
}

static inline void fx_iovec_from_list(struct fx_iovec *v,
				      const struct iovec *list, size_t count)
{
	v->single.iov_len = 0; /* never read, but gcc 14 cannot tell */
	v->list = list;
	v->count = count;
}

/* Bytes in all buffers; only after the kernel has accepted the list. */
size_t fx_iovec_total(const struct fx_iovec *v);

/**
 * fx_iovec_from - the buffers from byte @done on
 * @nr: how many
 *
 * At @done 0 this is the list itself, unread. Otherwise at most
 * FX_IOVEC_WINDOW buffers are returned: the caller goes on until the total.
 */
const struct iovec *fx_iovec_from(struct fx_iovec *v, size_t done, size_t *nr);

#endif /* FX_ENGINE_IOVEC_H */
