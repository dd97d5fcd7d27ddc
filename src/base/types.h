/* SPDX-License-Identifier: MIT */
/* Short names and the few helpers that every layer uses. */
#ifndef FX_BASE_TYPES_H
#define FX_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FX_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define fx_likely(x) __builtin_expect(!!(x), 1)
#define fx_unlikely(x) __builtin_expect(!!(x), 0)
#define fx_container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))

#define FX_CACHE_LINE 64
#define FX_NS_PER_SEC 1000000000ull
#define FX_NS_PER_MS 1000000ull
#define FX_NS_PER_US 1000ull

/* Results travel as the kernel gives them; this is the one test for them. */
static inline bool fx_is_error(int64_t ret)
{
	return ret < 0 && ret >= -4095;
}

/**
 * fx_bug - a broken invariant of the library itself: write it and abort
 *
 * The only place that prints or ends the process: going on would complete a
 * call twice or lose one. Never used for what a caller can get wrong.
 */
void fx_bug(const char *file, int line, const char *what)
	__attribute__((noreturn, cold));

#define FX_BUG_ON(cond)                                      \
	do {                                                 \
		if (fx_unlikely(cond))                       \
			fx_bug(__FILE__, __LINE__, #cond);   \
	} while (0)

#endif /* FX_BASE_TYPES_H */
