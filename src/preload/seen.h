/* SPDX-License-Identifier: MIT */
/*
 * Names as observers see them: a record when a call is made and one when it is
 * over, whatever it takes in between. (<flexsc/trace.h>)
 */
#ifndef FX_PRELOAD_SEEN_H
#define FX_PRELOAD_SEEN_H

#include "base/types.h"
#include "page/trace.h"

#include <sys/syscall.h>

/* Return: for the second. errno is left alone. */
uint64_t fx_seen_enter(unsigned nr, const long args[6]) __attribute__((cold));
/* @ret: as the C library says it, with errno. */
void fx_seen_leave(unsigned nr, const long args[6], uint64_t begun_ns, long ret)
	__attribute__((cold));

/* The process is about to end, by the thread that calls this. */
void fx_seen_last(int status) __attribute__((cold));

/*
 * Return what a call is worth, as the system call that it is, of these arguments.
 * It stands here twice, so that who is not watched has nothing to remember during
 * the call; who waited in it when an observer came is seen to end it.
 */
#define FX_SEEN_RETURN(type, call, nr, ...)                            \
	do {                                                           \
		uint64_t fx_begun_ns = 0;                              \
		type fx_got;                                           \
                                                                       \
		if (fx_watched()) {                                    \
			fx_begun_ns = fx_seen_enter(                   \
				(nr), (const long[6]){ __VA_ARGS__ }); \
			fx_got = (call);                               \
		} else {                                               \
			fx_got = (call);                               \
			if (!fx_watched())                             \
				return fx_got;                         \
		}                                                      \
		fx_seen_leave((nr), (const long[6]){ __VA_ARGS__ },    \
			      fx_begun_ns, (long)fx_got);              \
		return fx_got;                                         \
	} while (0)

/* The same where it is not returned; @said: what the kernel's says, of fx_got. */
#define FX_SEEN_AS(call, said, nr, ...)                                     \
	({                                                                  \
		uint64_t fx_begun_ns = 0;                                   \
		__typeof__(call) fx_got;                                    \
                                                                            \
		if (fx_watched())                                           \
			fx_begun_ns = fx_seen_enter(                        \
				(nr), (const long[6]){ __VA_ARGS__ });      \
		fx_got = (call);                                            \
		if (fx_begun_ns || fx_watched())                            \
			fx_seen_leave((nr), (const long[6]){ __VA_ARGS__ }, \
				      fx_begun_ns, (said));                 \
		fx_got;                                                     \
	})

#define FX_SEEN(call, nr, ...) FX_SEEN_AS(call, (long)fx_got, nr, __VA_ARGS__)

/* The same of one that returns an error and leaves errno alone. */
#define FX_SEEN_ERROR(call, nr, ...)                                        \
	({                                                                  \
		uint64_t fx_begun_ns = 0;                                   \
		int fx_got, fx_saved;                                       \
                                                                            \
		if (fx_watched())                                           \
			fx_begun_ns = fx_seen_enter(                        \
				(nr), (const long[6]){ __VA_ARGS__ });      \
		fx_got = (call);                                            \
		if (fx_begun_ns || fx_watched()) {                          \
			fx_saved = errno;                                   \
			errno = fx_got;                                     \
			fx_seen_leave((nr), (const long[6]){ __VA_ARGS__ }, \
				      fx_begun_ns, fx_got ? -1 : 0);        \
			errno = fx_saved;                                   \
		}                                                           \
		fx_got;                                                     \
	})

#endif /* FX_PRELOAD_SEEN_H */
