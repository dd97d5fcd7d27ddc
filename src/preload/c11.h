/* SPDX-License-Identifier: MIT */
/* Error numbers as the functions of <threads.h> return them. */
#ifndef FX_PRELOAD_C11_H
#define FX_PRELOAD_C11_H

#include <errno.h>
#include <threads.h>

static inline int fx_c11(int bad)
{
	switch (bad) {
	case 0:
		return thrd_success;
	case ENOMEM:
		return thrd_nomem;
	case ETIMEDOUT:
		return thrd_timedout;
	case EBUSY:
		return thrd_busy;
	default:
		return thrd_error;
	}
}

#endif /* FX_PRELOAD_C11_H */
