/* SPDX-License-Identifier: MIT */
/*
 * Memory of threads and their parking stacks. Neither is ever given back: a
 * late waker may hold a task (sched/task.h). The parking stacks lie in one
 * range of addresses, so that a signal handler can tell where it runs; an idle
 * one has no page.
 */
#include "threads/thread.h"

#include "base/futex.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_THREADS (1u << 18)
#define CHUNK 256u

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* Key: L under the lock; I constant once `base` is set. */
static struct {
	struct fx_lock lock;
	char *base; /* I: of the range, A to read */
	size_t stack_size; /* I */
	uint32_t nr; /* L: made so far */
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

static bool reserve(void)
{
	void *p;

	slab.stack_size = stack_size();
	p = mmap(NULL, slab.stack_size * MAX_THREADS, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	fx_store_release(&slab.base, (char *)p);
	return true;
}

static bool grow(void)
{
	struct fx_thread *threads;
	size_t size;

	if ((!slab.base && !reserve()) || slab.nr + CHUNK > MAX_THREADS)
		return false;
	size = CHUNK * slab.stack_size;
	if (mprotect(slab.base + slab.nr * slab.stack_size, size,
		     PROT_READ | PROT_WRITE))
		return false;
	threads = mmap(NULL, CHUNK * sizeof(*threads), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (threads == MAP_FAILED)
		return false;
	for (unsigned i = CHUNK; i-- > 0;) {
		threads[i].index = slab.nr + i;
		threads[i].next = slab.free;
		slab.free = &threads[i];
	}
	slab.nr += CHUNK;
	return true;
}

struct fx_thread *fx_thread_new(void)
{
	struct fx_thread *t;

	fx_lock(&slab.lock);
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
	t->tid = 0;
	t->next = slab.free;
	slab.free = t;
	fx_unlock(&slab.lock);
}

void *fx_thread_parking_top(const struct fx_thread *t)
{
	return slab.base + (t->index + 1) * slab.stack_size;
}

bool fx_thread_parking(const void *address)
{
	const char *base = fx_load_acquire(&slab.base), *p = address;

	return base && p >= base && p < base + slab.stack_size * MAX_THREADS;
}

void fx_threads_walk(void (*see)(struct fx_thread *t, void *arg), void *arg)
{
	struct fx_thread *t = fx_load_acquire(&slab.all);

	while (t) {
		see(t, arg);
		t = t->all == t ? NULL : t->all;
	}
}

void fx_slab_after_fork(void)
{
	slab.lock.word = 0;
}
