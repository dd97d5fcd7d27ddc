/* SPDX-License-Identifier: MIT */
/*
 * The operations that threads of a model call.  Each announces itself, runs
 * at once if it is local, and otherwise hands control to the search until
 * that has chosen and executed it.  Outside of threads they act directly.
 */
#include "model/machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void to_search(struct fx_thread *t)
{
	fx_fiber_switch(&t->fiber.sp, fx_mc.search_sp);
}

void fx_machine_resume(struct fx_thread *t)
{
	fx_mc.self = (int)(t - fx_mc.thread);
	fx_fiber_switch(&fx_mc.search_sp, t->fiber.sp);
	fx_mc.self = -1;
}

static void thread_main(void)
{
	struct fx_thread *t = &fx_mc.thread[fx_mc.self];

	fx_mc.model->thread[fx_mc.self]();
	t->run = FX_RUN_DONE;
	to_search(t);
	__builtin_trap();
}

void fx_machine_start(struct fx_thread *t)
{
	fx_fiber_reset(&t->fiber, thread_main);
	fx_machine_resume(t);
}

/* Keeps the first error; in a thread it does not return. */
void fx_machine_error(const char *fmt, ...)
{
	va_list ap;

	if (!fx_mc.failed) {
		va_start(ap, fmt);
		vsnprintf(fx_mc.failure, sizeof(fx_mc.failure), fmt, ap);
		va_end(ap);
	}
	fx_mc.failed = true;
	if (fx_mc.self >= 0)
		to_search(&fx_mc.thread[fx_mc.self]);
}

void fx_model_fail(const char *file, int line, const char *what)
{
	const char *base = strrchr(file, '/');

	if (fx_mc.self >= 0)
		fx_machine_error("thread %d: %s:%d: %s", fx_mc.self,
				 base ? base + 1 : file, line, what);
	else
		fx_machine_error("check: %s:%d: %s", base ? base + 1 : file,
				 line, what);
}

/* Context: a thread.  Return: the result of the operation. */
static uint64_t submit(struct fx_op op)
{
	unsigned int self = (unsigned int)fx_mc.self;
	struct fx_thread *t = &fx_mc.thread[self];

	if (op.addr && op.kind != FX_OP_WAKE)
		fx_machine_touch(&op, self);
	t->op = op;
	t->run = FX_RUN_PENDING;
	if (fx_machine_local(t))
		fx_machine_execute(t, 0);
	else
		to_search(t);
	return t->result;
}

static struct fx_op memory_op(enum fx_op_kind kind, const volatile void *p,
			      size_t size, uint64_t a)
{
	if (size < 8)
		a &= (1ull << (size * 8)) - 1;
	return (struct fx_op){ .kind = (uint8_t)kind, .size = (uint8_t)size,
			       .addr = (char *)(uintptr_t)p, .a = a };
}

static uint64_t bare(enum fx_op_kind kind, uint64_t a)
{
	if (fx_mc.self < 0)
		return 0;
	return submit((struct fx_op){ .kind = (uint8_t)kind, .a = a });
}

uint64_t fx_model_load(const volatile void *p, size_t size)
{
	struct fx_op op = memory_op(FX_OP_LOAD, p, size, 0);

	if (fx_mc.self < 0)
		return fx_mem_read(op.addr, op.size);
	return submit(op);
}

void fx_model_store(volatile void *p, size_t size, uint64_t value)
{
	struct fx_op op = memory_op(FX_OP_STORE, p, size, value);

	if (fx_mc.self < 0)
		fx_mem_write(op.addr, op.size, value);
	else
		submit(op);
}

bool fx_model_cas(volatile void *p, size_t size, volatile void *expected,
		  uint64_t desired)
{
	char *e = (char *)(uintptr_t)expected;
	struct fx_op op = memory_op(FX_OP_CAS, p, size,
				    fx_mem_read(e, (unsigned int)size));
	uint64_t old;

	op.b = desired;
	if (fx_mc.self < 0) {
		old = fx_mem_read(op.addr, op.size);
		if (old == op.a)
			fx_mem_write(op.addr, op.size, desired);
	} else {
		old = submit(op);
	}
	if (old == op.a)
		return true;
	fx_mem_write(e, op.size, old);
	return false;
}

uint64_t fx_model_exchange(volatile void *p, size_t size, uint64_t value)
{
	struct fx_op op = memory_op(FX_OP_EXCHANGE, p, size, value);
	uint64_t old;

	if (fx_mc.self >= 0)
		return submit(op);
	old = fx_mem_read(op.addr, op.size);
	fx_mem_write(op.addr, op.size, value);
	return old;
}

uint64_t fx_model_fetch_add(volatile void *p, size_t size, uint64_t value)
{
	struct fx_op op = memory_op(FX_OP_FETCH_ADD, p, size, value);
	uint64_t old;

	if (fx_mc.self >= 0)
		return submit(op);
	old = fx_mem_read(op.addr, op.size);
	fx_mem_write(op.addr, op.size, old + value);
	return old;
}

void fx_model_fence(void)
{
	bare(FX_OP_FENCE, 0);
}

void fx_model_relax(void)
{
	if (fx_mc.self >= 0 && !(fx_mc.relaxing & (1u << fx_mc.self))) {
		fx_mc.relaxing |= 1u << fx_mc.self;
		fx_mc.sharing_changed = true; /* reads were not noted */
	}
	bare(FX_OP_RELAX, 0);
}

void fx_model_yield(void)
{
	bare(FX_OP_YIELD, 0);
}

void fx_model_membarrier(void)
{
	bare(FX_OP_BARRIER, 0);
}

unsigned int fx_model_choose(unsigned int n)
{
	if (n > 64)
		fx_machine_error("choice of more than 64");
	return n > 1 ? (unsigned int)bare(FX_OP_CHOOSE, n) : 0;
}

int fx_model_self(void)
{
	return fx_mc.self;
}

void fx_model_forget(uint64_t key)
{
	struct fx_thread *t = &fx_mc.thread[fx_mc.self];

	if (fx_mc.self < 0)
		return;
	t->history = (struct fx_hash){ (uint64_t)fx_mc.self, ~key };
	t->history = fx_hash_mix(t->history, key);
	t->nr_reads = 0;
}

int fx_model_wait(const volatile void *p, uint64_t value, size_t size)
{
	if (fx_mc.self < 0)
		return -EAGAIN;
	return (int)submit(memory_op(FX_OP_WAIT, p, size, value));
}

int fx_model_wake(const volatile void *p, unsigned int n)
{
	struct fx_op op = { .kind = FX_OP_WAKE, .addr = (char *)(uintptr_t)p,
			    .a = n };

	return fx_mc.self < 0 ? 0 : (int)submit(op);
}

void fx_model_sem_init(struct fx_model_sem *sem)
{
	sem->count = 0;
	fx_model_region_named("semaphore", sem, sizeof(*sem));
}

void fx_model_sem_post(struct fx_model_sem *sem)
{
	if (fx_mc.self < 0)
		sem->count++;
	else
		submit(memory_op(FX_OP_SEM_POST, &sem->count, 8, 0));
}

uint64_t fx_model_sem_wait(struct fx_model_sem *sem)
{
	uint64_t old = sem->count;

	if (fx_mc.self >= 0)
		return submit(memory_op(FX_OP_SEM_WAIT, &sem->count, 8, 0));
	sem->count = 0;
	return old;
}
