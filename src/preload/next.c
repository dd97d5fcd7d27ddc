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

/* Made by the assembler, bounds by the linker. */
struct next {
	const char *name;
	void **pointer;
};

extern const struct next __start_fx_next_table[]
	__attribute__((visibility("hidden")));
extern const struct next __stop_fx_next_table[]
	__attribute__((visibility("hidden")));

void fx_next_all(void)
{
	static uint32_t done;
	const struct next *n;
	void *next;

	if (fx_exchange(&done, 1u))
		return;
	for (n = __start_fx_next_table; n < __stop_fx_next_table; n++) {
		next = dlsym(RTLD_NEXT, n->name);
		if (next)
			fx_store_relaxed(n->pointer, next);
	}
}
