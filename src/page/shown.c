/* SPDX-License-Identifier: MIT */
/* Mappings that observers find; see page/shown.h. */
#include "page/shown.h"

#include "arch/fd.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd >= 0) {
		if (ftruncate(fd, (off_t)size) == 0)
			p = fx_map_fd(size, fd);
		/* The mapping keeps the file; observers use map_files. */
		fx_close(fd);
	}
	if (p == MAP_FAILED)
		p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void *fx_shown_new(const char *name, size_t size)
{
	int saved = errno;
	void *shown = map(name, size);

	errno = saved;
	return shown;
}

void fx_shown_free(void *shown, size_t size)
{
	munmap(shown, size);
}
