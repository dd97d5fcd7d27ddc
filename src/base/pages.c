/* SPDX-License-Identifier: MIT */
/* Anonymous mappings; see base/pages.h. */
#include "base/pages.h"

#include <errno.h>
#include <sys/mman.h>

void *fx_pages_resize(void *old, size_t old_size, size_t size)
{
	int saved = errno;
	void *p = old ? mremap(old, old_size, size, MREMAP_MAYMOVE) :
			mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return p == MAP_FAILED ? NULL : p;
}

void fx_pages_free(void *pages, size_t size)
{
	int saved = errno;

	if (pages)
		munmap(pages, size);
	errno = saved;
}
