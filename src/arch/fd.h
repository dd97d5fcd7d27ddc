/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of our own, by the kernel's calls and not by the C library's:
 * where user threads run, close(3) is an interposed one of a layer above, and
 * TSan, which sees no posted call, takes a number that one of those has opened
 * or closed for the file that it knew before. errno is left alone.
 */
#ifndef FX_ARCH_FD_H
#define FX_ARCH_FD_H

#include "arch/arch.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* A new eventfd that blocks nobody, or -errno. */
static inline int fx_eventfd(void)
{
	return (int)fx_arch_syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK,
				    0, 0, 0, 0);
}

static inline void fx_close(int fd)
{
	fx_arch_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* A shared mapping of @size bytes of it, or MAP_FAILED. */
static inline void *fx_map_fd(size_t size, int fd)
{
	long at = fx_arch_syscall(SYS_mmap, 0, (long)size,
				  PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at < 0 && at > -4096 ? MAP_FAILED : (void *)at;
}

#endif /* FX_ARCH_FD_H */
