/* SPDX-License-Identifier: MIT */
/*
 * Memory from the kernel, zeroed, for what is needed in the middle of a call
 * of the application: its allocator may be what waits there, with its locks
 * held (tcmalloc's spin lock waits by futex), and must not be entered again.
 * errno is left alone.
 */
#ifndef FX_BASE_PAGES_H
#define FX_BASE_PAGES_H

#include "base/types.h"

#include <stddef.h>

/* @old: NULL, or of @old_size, which may move. NULL: no memory, @old stays. */
void *fx_pages_resize(void *old, size_t old_size, size_t size);
void fx_pages_free(void *pages, size_t size);

#endif /* FX_BASE_PAGES_H */
