/* SPDX-License-Identifier: MIT */
/* Names that are made as they are, in any thread, and taken for observers alone. */
#ifndef FX_PRELOAD_PLAIN_H
#define FX_PRELOAD_PLAIN_H

#include "preload/next.h"
#include "preload/seen.h"

#include <errno.h>

/*
 * The name, what it is called with, and the system call that it is: two
 * instructions and a jump while nobody looks.
 */
#define FX_PLAIN(type, name, parameters, arguments, nr, ...)           \
	FX_NEXT(name);                                                 \
	FX_NAME type name parameters                                   \
	{                                                              \
		return FX_SEEN(NEXT(name) arguments, nr, __VA_ARGS__); \
	}

/* The same of one that returns an error and leaves errno alone. */
#define FX_PLAIN_ERROR(name, parameters, arguments, nr, ...)                 \
	FX_NEXT(name);                                                       \
	FX_NAME int name parameters                                          \
	{                                                                    \
		return FX_SEEN_ERROR(NEXT(name) arguments, nr, __VA_ARGS__); \
	}

#endif /* FX_PRELOAD_PLAIN_H */
