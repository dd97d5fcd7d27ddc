/* SPDX-License-Identifier: MIT */
/* Walking a list of buffers from a byte in its middle. */
#include "engine/iovec.h"

size_t fx_iovec_total(const struct fx_iovec *v)
{
	size_t total = 0;

	for (size_t i = 0; i < v->count; i++)
		total += v->list[i].iov_len;
	return total;
}

const struct iovec *fx_iovec_from(struct fx_iovec *v, size_t done, size_t *nr)
{
	size_t i = 0, n = 0;

	if (done == 0) {
		*nr = v->count;
		return v->list;
	}
	while (i < v->count && done >= v->list[i].iov_len)
		done -= v->list[i++].iov_len;
	for (; i < v->count && n < FX_IOVEC_WINDOW; i++, n++) {
		v->window[n].iov_base = (char *)v->list[i].iov_base + done;
		v->window[n].iov_len = v->list[i].iov_len - done;
		done = 0;
	}
	*nr = n;
	return v->window;
}
