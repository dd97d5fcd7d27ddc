/* SPDX-License-Identifier: MIT */
/* Looking up the next definition of a name; see preload/next.h. */
#include "preload/next.h"

#include "base/atomic.h"
#include "base/types.h"

#include <dlfcn.h>

void *fx_next_find(const char *name, void **pointer)
{
	void *next = dlsym(RTLD_NEXT, name);

	FX_BUG_ON(!next);
	fx_store_relaxed(pointer, next);
	return next;
}
