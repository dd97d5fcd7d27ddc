/* SPDX-License-Identifier: MIT */
/*
 * A page set of flexsc.ko in as few lines as the ABI allows: rings of one
 * segment, entries named by the test. Nothing here is of the library.
 */
#include "cases.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)

long request(int fd, unsigned long what, unsigned long argument)
{
	long ret = ioctl(fd, what, argument);

	return ret < 0 ? -errno : ret;
}

static uint32_t ring_size(const struct kset *set)
{
	return FLEXSC_RING_MIN << set->segment;
}

static uint32_t slot(const struct kset *set, uint64_t position)
{
	uint32_t size = ring_size(set);

	return size - FLEXSC_RING_MIN + (uint32_t)(position % size);
}

static uint32_t tag(const struct kset *set, uint64_t position)
{
	return FLEXSC_SLOT_VALID |
	       (uint32_t)(position / ring_size(set) & FLEXSC_SLOT_LAP_MASK)
		       << FLEXSC_SLOT_LAP_SHIFT;
}

static int map_set(struct kset *set)
{
	void *map = mmap(NULL, set->map_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED, set->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	set->shared = map;
	CHECK_EQ(set->shared->magic, FLEXSC_MAGIC);
	CHECK_EQ(set->shared->version, FLEXSC_ABI_VERSION);
	CHECK_EQ(set->shared->max_entries, set->max_entries);
	set->sq = (uint32_t *)((char *)map + set->shared->sq_offset);
	set->cq = (uint64_t *)((char *)map + set->shared->cq_offset);
	set->entries = (struct flexsc_entry *)((char *)map +
					       set->shared->entries_offset);
	/* Segments before the last one serve no position. */
	while (ring_size(set) < 2 * set->max_entries)
		set->segment++;
	for (unsigned i = 0; i < 16; i++) {
		uint64_t start = i <= set->segment ? 0 : UINT64_MAX;

		store(&set->shared->sq_start[i], start);
		store(&set->shared->cq_start[i], start);
	}
	store(&set->shared->nr_entries, set->max_entries);
	return 0;
}

int kset_init(struct kset *set, uint32_t max_entries, uint32_t max_threads)
{
	struct flexsc_register argument = { .version = FLEXSC_ABI_VERSION,
					    .max_entries = max_entries,
					    .max_threads = max_threads };
	int bad;

	memset(set, 0, sizeof(*set));
	set->fd = open(FLEXSC_DEVICE, O_RDWR | O_CLOEXEC);
	if (set->fd < 0)
		return -errno;
	bad = (int)request(set->fd, FLEXSC_IOC_REGISTER, ARG(&argument));
	set->max_entries = argument.max_entries;
	set->map_size = argument.map_size;
	if (!bad)
		bad = map_set(set);
	if (bad)
		close(set->fd);
	return bad;
}

void kset_fini(struct kset *set)
{
	munmap(set->shared, set->map_size);
	close(set->fd);
}

void kset_publish(struct kset *set, uint32_t value)
{
	store(&set->sq[slot(set, set->sq_tail)],
	      tag(set, set->sq_tail) | value);
	set->sq_tail++;
}

void kset_post(struct kset *set, uint32_t index, const struct call *call)
{
	struct flexsc_entry *entry = &set->entries[index];

	CHECK(index < set->max_entries);
	memcpy(entry->args, call->args, sizeof(entry->args));
	entry->nr = (uint16_t)call->nr;
	entry->nr_args = (uint8_t)call->nr_args;
	entry->flags = (uint8_t)call->flags;
	store(&entry->status, FLEXSC_SUBMITTED);
	kset_publish(set, index);
}

bool kset_reap(struct kset *set, uint32_t *index, int64_t *ret)
{
	uint64_t word = load(&set->cq[slot(set, set->cq_head)]);
	uint32_t mine = tag(set, set->cq_head);

	if (((uint32_t)word & ~(FLEXSC_SLOT_INDEX | FLEXSC_SLOT_NOTICE)) !=
	    mine)
		return false;
	set->cq_head++;
	*index = (uint32_t)word & (FLEXSC_SLOT_INDEX | FLEXSC_SLOT_NOTICE);
	*ret = (int32_t)(word >> 32);
	if (*ret == FLEXSC_SLOT_WIDE)
		*ret = set->entries[*index & FLEXSC_SLOT_INDEX].ret;
	return true;
}

long kset_run(struct kset *set, uint64_t sleep_ns)
{
	return request(set->fd, FLEXSC_IOC_RUN, sleep_ns);
}

int64_t kset_next(struct kset *set, uint32_t *index)
{
	uint64_t end = now_ns() + 60000000000ull;
	int64_t ret;
	long ran;

	while (!kset_reap(set, index, &ret)) {
		if (now_ns() > end)
			fail(__FILE__, __LINE__, "nothing completes");
		ran = kset_run(set, 100000000);
		if (ran < 0 && ran != -EINTR)
			fail(__FILE__, __LINE__, "RUN: %ld", ran);
	}
	return ret;
}

int64_t kset_call(struct kset *set, const struct call *call)
{
	uint32_t index = set->next_index++ % set->max_entries, got;
	int64_t ret;

	kset_post(set, index, call);
	ret = kset_next(set, &got);
	CHECK_EQ(got, index);
	return ret;
}

struct flexsc_stats kset_stats(struct kset *set)
{
	struct flexsc_stats stats;

	CHECK_EQ(request(set->fd, FLEXSC_IOC_STATS, ARG(&stats)), 0);
	return stats;
}

static void *lend_self(void *arg)
{
	struct lent *lent = arg;
	struct flexsc_wait argument = { .flags = lent->flags };

	do {
		lent->result =
			request(lent->set->fd, FLEXSC_IOC_WAIT, ARG(&argument));
	} while (lent->result == -EINTR);
	return NULL;
}

void lend(struct lent *lent, struct kset *set, uint32_t flags)
{
	lent->set = set;
	lent->flags = flags;
	CHECK_EQ(pthread_create(&lent->thread, NULL, lend_self, lent), 0);
}

long unlend(struct lent *lent)
{
	CHECK_EQ(pthread_join(lent->thread, NULL), 0);
	return lent->result;
}
