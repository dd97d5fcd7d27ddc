/* SPDX-License-Identifier: MIT */
/* Results of the layers below as the C library gives them: errno and -1. */
#ifndef FX_PRELOAD_RESULT_H
#define FX_PRELOAD_RESULT_H

#include "base/types.h"
#include "preload/next.h"
#include "preload/seen.h"
#include "threads/io.h"

#include <errno.h>

static inline long fx_result(int64_t ret)
{
	if (fx_unlikely(fx_is_error(ret))) {
		errno = (int)-ret;
		return -1;
	}
	return (long)ret;
}

/*
 * The calling thread, for what threads wait on; NULL before there are threads:
 * the C library's will do then, and knows who owns it.
 */
static inline struct fx_thread *fx_waiter(void)
{
	return fx_likely(fx_load_relaxed(&fx_threads_running)) ?
		       fx_thread_known() :
		       NULL;
}

/*
 * The body of a name that is one system call: on a carrier by it, at home by
 * the C library.
 */
#define FX_CALL(next_call, nr, ...)                                  \
	FX_SEEN_RETURN(__typeof__(next_call),                        \
		       FX_CALL_HERE(next_call, nr, __VA_ARGS__), nr, \
		       __VA_ARGS__)

#define FX_CALL_HERE(next_call, nr, ...)                               \
	({                                                             \
		struct fx_thread *fx_me = fx_thread_lent();            \
		int64_t fx_ret = FX_IO_PLAIN;                          \
                                                                       \
		if (fx_me)                                             \
			fx_ret = fx_io_args(fx_me, (nr), __VA_ARGS__); \
		fx_ret == FX_IO_PLAIN ?                                \
			next_call :                                    \
			(__typeof__(next_call))fx_result(fx_ret);      \
	})

/* The same of one that closes descriptors, wherever the thread is. */
#define FX_CLOSE(next_call, nr, ...)                                       \
	FX_SEEN_RETURN(int, FX_CLOSE_HERE(next_call, nr, __VA_ARGS__), nr, \
		       __VA_ARGS__)

#define FX_CLOSE_HERE(next_call, nr, ...)                                   \
	({                                                                  \
		int64_t fx_ret =                                            \
			fx_io_close((nr), (const long[6]){ __VA_ARGS__ });  \
                                                                            \
		fx_ret == FX_IO_PLAIN ? next_call : (int)fx_result(fx_ret); \
	})

#endif /* FX_PRELOAD_RESULT_H */
