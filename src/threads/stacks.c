/* SPDX-License-Identifier: MIT */
/*
 * A table of stacks in use, never given back; see threads/stacks.h. Threads
 * with stacks of their own are few: it is searched from end to end, and one
 * that ends does not wait for its lock.
 */
#include "threads/stacks.h"

#include "arch/arch.h"
#include "base/clock.h"
#include "base/futex.h"

#include <stdlib.h>
#include <sys/syscall.h>

#define CHUNK 64u
#define NAP_NS (100 * FX_NS_PER_US)
#define NAPS 10000u

enum state {
	FREE,
	LIVES,
	LEAVES,
};

/* Key: L under the lock; A anybody, atomically; I constant. */
struct fx_stack {
	uint32_t state; /* A: from FREE under the lock only */
	pid_t tid; /* A: 0 before it has begun */
	uintptr_t base, end; /* L */
};

struct chunk {
	struct chunk *next; /* I */
	struct fx_stack stack[CHUNK];
};

static struct {
	struct fx_lock lock;
	struct chunk *first; /* L */
	uint32_t in_use; /* A: not FREE; a hint for those who join */
} table;

static void forget(struct fx_stack *s)
{
	fx_store_release(&s->state, (uint32_t)FREE);
	fx_fetch_add(&table.in_use, UINT32_MAX);
}

static bool is_gone(const struct fx_stack *s)
{
	pid_t tid = fx_load_relaxed(&s->tid);

	return tid && fx_thread_number_gone(tid);
}

/* Under the lock. Return: false if somebody uses the memory. */
static bool find(uintptr_t base, uintptr_t end, struct fx_stack **free)
{
	bool unused = true;

	*free = NULL;
	for (struct chunk *c = table.first; c; c = c->next)
		for (unsigned i = 0; i < CHUNK; i++) {
			struct fx_stack *s = &c->stack[i];
			uint32_t state = fx_load_acquire(&s->state);
			bool overlaps = base < s->end && s->base < end;

			if ((state == LEAVES || (state == LIVES && overlaps)) &&
			    is_gone(s)) {
				forget(s);
				state = FREE;
			}
			if (state == FREE)
				*free = s;
			else if (overlaps)
				unused = false;
		}
	return unused;
}

/* Under the lock. */
static struct fx_stack *more(void)
{
	struct chunk *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->next = table.first;
	table.first = c;
	return &c->stack[0];
}

static void nap(struct fx_thread *me)
{
	struct fx_deadline until = { fx_now_ns() + NAP_NS, FX_CLOCK_MONOTONIC };

	fx_sleep(&me->task, &until, 0);
}

struct fx_stack *fx_stack_claim(struct fx_thread *me, void *base, size_t size)
{
	uintptr_t from = (uintptr_t)base, end = from + size;
	struct fx_stack *s;

	for (unsigned naps = 0;; naps++) {
		fx_lock(&table.lock);
		if (find(from, end, &s) || naps == NAPS)
			break;
		fx_unlock(&table.lock);
		nap(me);
	}
	if (!s)
		s = more();
	if (s) {
		s->base = from;
		s->end = end;
		fx_store_relaxed(&s->tid, 0);
		fx_store_release(&s->state, (uint32_t)LIVES);
		fx_fetch_add(&table.in_use, 1u);
	}
	fx_unlock(&table.lock);
	return s;
}

void fx_stack_drop(struct fx_stack *s)
{
	if (s)
		forget(s);
}

void fx_stack_begin(struct fx_stack *s, pid_t tid)
{
	if (s)
		fx_store_relaxed(&s->tid, tid);
}

void fx_stack_leave(struct fx_stack *s)
{
	if (s)
		fx_store_release(&s->state, (uint32_t)LEAVES);
}

void fx_stack_joined(pthread_t thread)
{
	uintptr_t at = (uintptr_t)thread;

	if (!fx_load_relaxed(&table.in_use))
		return;
	fx_lock(&table.lock);
	for (struct chunk *c = table.first; c; c = c->next)
		for (unsigned i = 0; i < CHUNK; i++) {
			struct fx_stack *s = &c->stack[i];

			if (fx_load_acquire(&s->state) != FREE &&
			    s->base <= at && at < s->end)
				forget(s);
		}
	fx_unlock(&table.lock);
}

void fx_stacks_after_fork(struct fx_stack *own)
{
	table.lock.word = 0;
	for (struct chunk *c = table.first; c; c = c->next)
		for (unsigned i = 0; i < CHUNK; i++)
			if (&c->stack[i] != own)
				c->stack[i].state = FREE;
	table.in_use = own ? 1 : 0;
	if (own)
		own->tid = (pid_t)fx_arch_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}
