/* SPDX-License-Identifier: MIT */
/*
 * The memory of a page set and the descriptor that wakes its owner. Address
 * space for the limit is reserved once, so nothing ever moves; the kernel
 * gives memory to what is touched.
 */
#include "page/set.h"

#include "arch/arch.h"
#include "arch/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_align(size_t n)
{
	return (n + FLEXSC_PAGE_SIZE - 1) & ~(size_t)(FLEXSC_PAGE_SIZE - 1);
}

/* What others write is the parent's alone; a child rebuilds it. */
static void *map(size_t size, bool inherit)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (!inherit)
		madvise(p, size, MADV_DONTFORK);
	return p;
}

/* Ring slots that a set of @max_entries can ever need: all segments. */
static size_t ring_slots(uint32_t max_entries)
{
	size_t size = FLEXSC_RING_MIN, slots = size;

	while (size < 2ull * max_entries) {
		size *= 2;
		slots += size;
	}
	return slots;
}

static void header_init(struct flexsc_set *shared, uint32_t max_entries)
{
	size_t slots = ring_slots(max_entries);

	shared->magic = FLEXSC_MAGIC;
	shared->version = FLEXSC_ABI_VERSION;
	shared->max_entries = max_entries;
	shared->sq_offset = FLEXSC_PAGE_SIZE;
	shared->cq_offset =
		shared->sq_offset + page_align(slots * sizeof(uint32_t));
	shared->entries_offset =
		shared->cq_offset + page_align(slots * sizeof(uint64_t));
	memset(shared->sq_start, 0xff, sizeof(shared->sq_start));
	memset(shared->cq_start, 0xff, sizeof(shared->cq_start));
	shared->sq_start[0] = shared->cq_start[0] = 0;
}

static void find_parts(struct fx_set *set)
{
	char *base = (char *)set->shared;

	set->sq = (uint32_t *)(base + set->shared->sq_offset);
	set->cq = (uint64_t *)(base + set->shared->cq_offset);
	set->entries =
		(struct flexsc_entry *)(base + set->shared->entries_offset);
	set->max_entries = set->shared->max_entries;
}

int fx_set_init(struct fx_set *set, uint32_t max_entries)
{
	struct flexsc_set layout = { 0 };
	uint32_t limit = FLEXSC_PAGE_ENTRIES;
	int bad = -ENOMEM;
	char *base;

	if (max_entries > FLEXSC_MAX_ENTRIES)
		max_entries = FLEXSC_MAX_ENTRIES;
	while (limit < max_entries)
		limit *= 2;
	memset(set, 0, sizeof(*set));
	header_init(&layout, limit);
	set->map_size =
		layout.entries_offset + (size_t)limit * FLEXSC_ENTRY_SIZE;
	set->beside_size = page_align(limit * sizeof(struct fx_beside));
	set->cookies_size =
		page_align(limit * (sizeof(*set->cookies) + sizeof(*set->free) +
				    sizeof(*set->slots)));

	base = map(set->map_size, false);
	if (!base)
		return -ENOMEM;
	set->beside = map(set->beside_size, true);
	if (!set->beside)
		goto unmap;
	set->cookies = map(set->cookies_size, true);
	if (!set->cookies)
		goto unmap_beside;
	set->owner_eventfd = fx_eventfd();
	if (set->owner_eventfd < 0)
		goto unmap_cookies;

	set->shared = (struct flexsc_set *)base;
	memcpy(set->shared, &layout, sizeof(layout));
	find_parts(set);
	set->slots = (struct fx_slot *)(set->cookies + limit);
	set->free = (uint32_t *)(set->slots + limit);
	fx_ring_cursor_init(&set->sq_tail);
	fx_ring_cursor_init(&set->cq_head);
	return 0;

unmap_cookies:
	munmap(set->cookies, set->cookies_size);
	bad = -EMFILE;
unmap_beside:
	munmap(set->beside, set->beside_size);
unmap:
	munmap(base, set->map_size);
	return bad;
}

int fx_set_adopt(struct fx_set *set, int fd, size_t map_size)
{
	int saved = errno, bad = -EOVERFLOW;

	if (map_size > set->map_size)
		return bad;
	if (mmap(set->shared, map_size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		bad = -errno;
		/* It may have left a hole. */
		if (mmap(set->shared, map_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				 MAP_FIXED,
			 -1, 0) == MAP_FAILED)
			fx_bug(__FILE__, __LINE__, "the set's memory is gone");
		madvise(set->shared, map_size, MADV_DONTFORK);
		header_init(set->shared, set->max_entries);
		errno = saved;
		return bad;
	}
	find_parts(set);
	fx_close(set->owner_eventfd);
	set->owner_eventfd = fd;
	return 0;
}

void fx_set_fini(struct fx_set *set)
{
	fx_close(set->owner_eventfd);
	munmap(set->cookies, set->cookies_size);
	munmap(set->beside, set->beside_size);
	munmap(set->shared, set->map_size);
}

void fx_set_abandon(struct fx_set *set)
{
	/* DONTFORK: where the set was there may be something else by now. */
	munmap(set->cookies, set->cookies_size);
	munmap(set->beside, set->beside_size);
	fx_close(set->owner_eventfd);
}

void fx_set_wake_owner(struct fx_set *set)
{
	static const uint64_t one = 1;

	if (fx_exchange(&set->shared->owner_sleeping, 0u))
		fx_arch_syscall(SYS_write, set->owner_eventfd, (long)&one,
				sizeof(one), 0, 0, 0);
}

void fx_set_owner_awake(struct fx_set *set)
{
	/*
	 * Whoever cleared the flag before us wrote, or is about to write, the
	 * eventfd: a late write costs one empty wake-up, never a lost one.
	 */
	fx_exchange(&set->shared->owner_sleeping, 0u);
}
