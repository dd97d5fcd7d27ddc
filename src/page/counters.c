/* SPDX-License-Identifier: MIT */
/* The shared mapping that holds the counters of one owner. */
#include "page/counters.h"

#include "arch/arch.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *map_counters(size_t size)
{
	int fd = memfd_create("flexsc-counters", MFD_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd >= 0) {
		if (ftruncate(fd, (off_t)size) == 0)
			p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
				 fd, 0);
		/*
		 * The mapping keeps the file; observers use map_files. Not
		 * close(2): of a number that a posted call has closed before,
		 * TSan believes that it is still the file of then.
		 */
		fx_arch_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	}
	if (p == MAP_FAILED)
		p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

struct flexsc_counters *fx_counters_new(void)
{
	int saved = errno;
	struct flexsc_counters *c = map_counters(sizeof(*c));

	errno = saved;
	if (!c)
		return NULL;
	c->version = FLEXSC_COUNTERS_VERSION;
	c->size = sizeof(*c);
	c->pid = (uint32_t)getpid();
	c->tid = (uint32_t)syscall(SYS_gettid);
	return c;
}

void fx_counters_name(struct flexsc_counters *c, const char *engine)
{
	snprintf(c->engine, sizeof(c->engine), "%s", engine);
	/* Last: whoever sees it may read the rest. */
	__atomic_store_n(&c->magic, FLEXSC_COUNTERS_MAGIC, __ATOMIC_RELEASE);
}

void fx_counters_free(struct flexsc_counters *counters)
{
	munmap(counters, sizeof(*counters));
}
