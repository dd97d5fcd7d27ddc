/* SPDX-License-Identifier: MIT */
/*
 * Memory of threads and their parking stacks. Neither is ever given back: a
 * late waker may hold a task (sched/task.h). The parking stacks lie in one
 * range of addresses, so that a signal handler can tell where it runs; an idle
 * one has no page. Where addresses are limited the range is a small part of
 * them: threads for which it has no stack stay at home.
 */
#include "threads/thread.h"

#include "base/futex.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_STACKS (1u << 18)
#define CHUNK 256u
#define PART_OF_LIMIT 32 /* of RLIMIT_AS is for parking stacks */

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* Key: L under the lock; I constant once `base` is set. */
static struct {
	struct fx_lock lock;
	char *base; /* I: of the range, A to read */
	size_t stack_size; /* I */
	uint32_t max_stacks; /* I: the range's */
	uint32_t nr_stacks; /* L: made so far, with a record each */
	uint32_t nr; /* L: records made so far */
	struct fx_thread *free; /* L */
	struct fx_thread *all; /* L; A to walk */
} slab;

/* A signal frame, the wrapper below it, and room for the C library's own. */
static size_t stack_size(void)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (frame < 4096)
		frame = 4096;
	return (frame + 12 * 1024 + page - 1) / page * page;
}

/* As many as there can be, in whole chunks. */
static uint32_t wanted_stacks(void)
{
	struct rlimit limit;
	rlim_t nr = MAX_STACKS;

	if (getrlimit(RLIMIT_AS, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY)
		nr = limit.rlim_cur / PART_OF_LIMIT / slab.stack_size;
	return nr > MAX_STACKS ? MAX_STACKS : (uint32_t)nr / CHUNK * CHUNK;
}

static void reserve(void)
{
	void *p;

	slab.stack_size = stack_size();
	slab.max_stacks = wanted_stacks();
	p = mmap(NULL, slab.stack_size * slab.max_stacks, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		slab.max_stacks = 0;
	else
		fx_store_release(&slab.base, (char *)p);
}

/* Stacks go with the first records; once there are none, there will be none. */
static void grow_stacks(void)
{
	if (slab.nr_stacks != slab.nr || slab.nr_stacks == slab.max_stacks ||
	    mprotect(slab.base + slab.nr * slab.stack_size,
		     CHUNK * slab.stack_size, PROT_READ | PROT_WRITE))
		return;
	slab.nr_stacks += CHUNK;
}

static bool grow(void)
{
	struct fx_thread *threads;

	if (!slab.stack_size)
		reserve();
	threads = mmap(NULL, CHUNK * sizeof(*threads), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (threads == MAP_FAILED)
		return false;
	grow_stacks();
	for (unsigned i = CHUNK; i-- > 0;) {
		threads[i].index = slab.nr + i;
		threads[i].next = slab.free;
		slab.free = &threads[i];
	}
	slab.nr += CHUNK;
	return true;
}

/* Under the lock. */
static void put_back(struct fx_thread *t)
{
	t->tid = 0;
	t->next = slab.free;
	slab.free = t;
}

static void put_back_if_gone(struct fx_thread *t, void *arg)
{
	(void)arg;
	if (t->late && t->tid && fx_thread_number_gone(t->tid))
		put_back(t);
}

struct fx_thread *fx_thread_new(void)
{
	struct fx_thread *t;

	fx_lock(&slab.lock);
	if (!slab.free)
		fx_threads_walk(put_back_if_gone, NULL);
	if (!slab.free)
		grow();
	t = slab.free;
	if (t) {
		slab.free = t->next;
		if (!t->all) {
			t->all = slab.all ? slab.all : t;
			fx_store_release(&slab.all, t);
		}
	}
	fx_unlock(&slab.lock);
	if (!t)
		return NULL;
	/* The task goes on counting its tickets. */
	fx_store_relaxed(&t->task.pending, 0u);
	memset((char *)t + offsetof(struct fx_thread, self), 0,
	       offsetof(struct fx_thread, index) -
		       offsetof(struct fx_thread, self));
	t->next = NULL;
	return t;
}

void fx_thread_free(struct fx_thread *t)
{
	fx_lock(&slab.lock);
	put_back(t);
	fx_unlock(&slab.lock);
}

void *fx_thread_parking_top(const struct fx_thread *t)
{
	if (t->index >= fx_load_relaxed(&slab.nr_stacks))
		return NULL;
	return slab.base + (t->index + 1) * slab.stack_size;
}

stack_t fx_thread_parking_stack(const struct fx_thread *t)
{
	return (stack_t){ .ss_sp = slab.base + t->index * slab.stack_size,
			  .ss_size = slab.stack_size };
}

bool fx_thread_parking(const void *address)
{
	const char *base = fx_load_acquire(&slab.base), *p = address;

	return base && p >= base && p < base + slab.stack_size * slab.max_stacks;
}

void fx_threads_walk(void (*see)(struct fx_thread *t, void *arg), void *arg)
{
	struct fx_thread *t = fx_load_acquire(&slab.all);

	while (t) {
		see(t, arg);
		t = t->all == t ? NULL : t->all;
	}
}

struct fx_thread *const *fx_threads_first(void)
{
	return &slab.all;
}

void fx_slab_after_fork(void)
{
	slab.lock.word = 0;
}
