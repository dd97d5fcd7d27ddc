/* SPDX-License-Identifier: MIT */
/* The words of engine/hold.h, and private descriptors. */
#include "engine/hold.h"

#include "arch/arch.h"
#include "arch/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* The lowest numbers are for the application, as far as possible. */
#define FIRST_PRIVATE 512

uint64_t *fx_hold_words;
static uint32_t highest;

uint32_t fx_hold_highest(void)
{
	return fx_load_relaxed(&highest);
}

void fx_hold_reach(uint32_t fd)
{
	uint32_t old = fx_load_relaxed(&highest);

	while (old < fd && !fx_cas(&highest, &old, fd))
		;
}

int fx_hold_init(void)
{
	int saved = errno;
	void *map;

	if (fx_hold_words)
		return 0;
	map = mmap(NULL, FX_HOLD_FDS * sizeof(*fx_hold_words),
		   PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	errno = saved;
	if (map == MAP_FAILED)
		return -ENOMEM;
	fx_hold_words = map;
	return 0;
}

void fx_hold_after_fork(void)
{
	if (fx_hold_words)
		fx_arch_syscall(SYS_madvise, (long)fx_hold_words,
				FX_HOLD_FDS * sizeof(*fx_hold_words),
				MADV_DONTNEED, 0, 0, 0);
}

int fx_hold_duplicate(int fd)
{
	long to = fx_arch_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FIRST_PRIVATE,
				  0, 0, 0);
	uint64_t *word;

	if (to == -EINVAL || to == -EMFILE) /* the limit is that low */
		to = fx_arch_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0, 0, 0,
				     0);
	if (to < 0)
		return (int)to;
	word = fx_hold_word((int)to);
	if (!word) {
		fx_close(to);
		return -EMFILE;
	}
	/* Nobody waits on a number that was free, but by mistake. */
	fx_fetch_add(word, FX_HOLD_EPOCH + FX_HOLD_PRIVATE + 1);
	return (int)to;
}

void fx_hold_put(int fd)
{
	uint64_t *word = fx_hold_word(fd);

	if (word && fx_hold_drop(word))
		fx_close(fd);
}
