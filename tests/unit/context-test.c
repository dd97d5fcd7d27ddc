/* SPDX-License-Identifier: MIT */
/*
 * The context switch: that it goes and comes back, what it keeps, thread
 * pointers, and that a stack can be unwound through it. Prints TAP.
 */
#include "arch/arch.h"
#include "base/atomic.h"

#include <errno.h>
#include <execinfo.h>
#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_SIZE (128 * 1024)
#define ROUNDS 100000

static struct fx_arch_context home, guest;
static unsigned nr_tests, nr_failed;

#define EXPECT(cond)                                                        \
	do {                                                                \
		if (!(cond)) {                                              \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
			failed++;                                           \
		}                                                           \
	} while (0)

static void tap(const char *name, unsigned failed)
{
	nr_failed += failed != 0;
	printf("%sok %u - %s\n", failed ? "not " : "", ++nr_tests, name);
}

static void *begin(void (*entry)(void *), void *arg)
{
	void *stack = aligned_alloc(64, STACK_SIZE);

	fx_arch_context_here(&home);
	fx_arch_context_init(&guest, stack, STACK_SIZE, entry, arg, home.tls);
	return stack;
}

static void end(void *stack)
{
	fx_arch_context_fini(&guest);
	free(stack);
}

static void count(void *arg)
{
	uint64_t *n = arg;

	fx_arch_entered(&guest);
	for (;;) {
		++*n;
		fx_arch_switch(&guest, &home);
	}
}

static unsigned ping_pong(void)
{
	uint64_t n = 0;
	unsigned failed = 0;
	void *stack = begin(count, &n);

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		fx_arch_switch(&home, &guest);
		if (n != i)
			break;
	}
	EXPECT(n == ROUNDS);
	end(stack);
	return failed;
}

static void round_down(void *arg)
{
	unsigned *failed_by_guest = arg, failed = 0;

	fx_arch_entered(&guest);
	EXPECT(fegetround() == FE_TONEAREST); /* inherited */
	EXPECT((uintptr_t)__builtin_frame_address(0) % 16 == 0);
	fesetround(FE_DOWNWARD);
	feraiseexcept(FE_DIVBYZERO);
	fx_arch_switch(&guest, &home);
	EXPECT(fegetround() == FE_DOWNWARD);
	EXPECT(fetestexcept(FE_DIVBYZERO));
	*failed_by_guest = failed;
	fx_arch_switch(&guest, &home);
}

static unsigned float_state(void)
{
	unsigned by_guest = 99, failed = 0;
	void *stack = begin(round_down, &by_guest);
	volatile double one = 1, three = 3, third;

	fx_arch_switch(&home, &guest);
	EXPECT(fegetround() == FE_TONEAREST);
	third = one / three;
	fesetround(FE_UPWARD);
	fx_arch_switch(&home, &guest);
	EXPECT(fegetround() == FE_UPWARD);
	EXPECT(one / three != third);
	fesetround(FE_TONEAREST);
	EXPECT(by_guest == 0);
	end(stack);
	return failed;
}

/* A thread whose stack and thread pointer the main thread takes up. */
static struct {
	struct fx_arch_context main, lender, parked;
	pthread_t self;
	uint32_t ready, published, over;
	unsigned failed;
	char stack[64 * 1024] __attribute__((aligned(64)));
} lent;
static __thread int local = 7;

static FX_NO_SANITIZE void parking(void *arg)
{
	__atomic_store_n(&lent.published, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&lent.over, __ATOMIC_ACQUIRE))
		fx_cpu_relax();
	fx_arch_switch_raw(&lent.parked, &lent.lender);
}

static __attribute__((noinline)) void on_main(void)
{
	unsigned failed = 0;

	EXPECT(pthread_equal(pthread_self(), lent.self));
	EXPECT(local == 8);
	EXPECT(errno == ERANGE);
	local = 9;
	errno = EDOM;
	lent.failed = failed;
}

static void *lend(void *arg)
{
	unsigned failed = 0;

	lent.self = pthread_self();
	local = 8;
	errno = ERANGE;
	fx_arch_context_here(&lent.lender);
	fx_arch_context_init(&lent.parked, lent.stack, sizeof(lent.stack),
			     parking, NULL, lent.lender.tls);
	/* What parking() says, tsan does not hear. */
	__atomic_store_n(&lent.ready, 1, __ATOMIC_RELEASE);
	fx_arch_switch_raw(&lent.lender, &lent.parked);
	on_main(); /* by the main thread */
	fx_arch_switch_raw(&lent.lender, &lent.main);
	EXPECT(local == 9 && errno == EDOM);
	lent.failed += failed;
	return NULL;
}

static unsigned thread_pointer(void)
{
	unsigned failed = 0;
	pthread_t thread;

	lent.ready = lent.published = lent.over = 0;
	local = 5;
	fx_arch_context_here(&lent.main);
	pthread_create(&thread, NULL, lend, NULL);
	while (!__atomic_load_n(&lent.published, __ATOMIC_ACQUIRE))
		fx_cpu_relax();
	EXPECT(__atomic_load_n(&lent.ready, __ATOMIC_ACQUIRE));
	errno = EBADF;
	fx_arch_switch_raw(&lent.main, &lent.lender);
	EXPECT(errno == EBADF && local == 5);
	EXPECT(!pthread_equal(pthread_self(), lent.self));
	__atomic_store_n(&lent.over, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	EXPECT(lent.failed == 0);
	return failed;
}

static int depth_seen;
static char frames[16][64];

static __attribute__((noinline)) void look(void)
{
	void *at[16];
	char **names;

	depth_seen = backtrace(at, 16);
	names = backtrace_symbols(at, depth_seen);
	for (int i = 0; names && i < depth_seen; i++)
		snprintf(frames[i], sizeof(frames[i]), "%s", names[i]);
	free(names);
}

static __attribute__((noinline)) int nested(int n)
{
	int below = n ? nested(n - 1) : (look(), 0);

	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

static void unwind(void *arg)
{
	fx_arch_entered(&guest);
	*(int *)arg = nested(3);
	fx_arch_switch(&guest, &home);
}

/* look, nested x 4, unwind, fx_arch_start, and there it ends. */
static unsigned backtrace_ends(void)
{
	unsigned failed = 0;
	int deep = 0;
	void *stack = begin(unwind, &deep);

	fx_arch_switch(&home, &guest);
	EXPECT(deep == 4);
	EXPECT(depth_seen >= 6 && depth_seen <= 8);
	for (int i = 0; failed && i < depth_seen; i++)
		printf("# %s\n", frames[i]);
	end(stack);
	return failed;
}

static void run(void)
{
	tap("ping-pong", ping_pong());
	tap("float state is kept", float_state());
	tap("a thread's pointer goes with its stack", thread_pointer());
	tap("backtrace of a context ends at its start", backtrace_ends());
}

int main(void)
{
	run();
	fx_arch_init();
	printf("# fsgsbase: %d\n", fx_arch_fsgsbase);
	run();
	printf("1..%u\n", nr_tests);
	return nr_failed != 0;
}
