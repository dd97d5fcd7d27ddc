/* SPDX-License-Identifier: MIT */
/*
 * Carriers that rest when the load does without them (sched/resting.c): tasks
 * are moved, nothing that they wait for is lost, and all run again when tasks
 * compute. No time is asserted, only that it happens.
 */
#include "threads.h"

#include <sys/syscall.h>
#include <unistd.h>

#define NR_CARRIERS 4
#define NR_SLEEPERS 16
#define NR_ECHOS 16
#define PHASES 3

enum phase {
	SERVE, /* short slices */
	COMPUTE, /* long ones */
	OVER
};

static enum phase phase;

#define now_phase() __atomic_load_n(&phase, __ATOMIC_ACQUIRE)

static void burn(uint64_t ns)
{
	uint64_t end = fx_now_ns() + ns;

	while (fx_now_ns() < end)
		;
}

static void sleeper(struct thread *t)
{
	while (now_phase() != OVER) {
		if (now_phase() == SERVE) {
			sleep_ns(t, 200 * FX_NS_PER_US);
			continue;
		}
		burn(5 * FX_NS_PER_MS);
		fx_yield(&t->task);
	}
}

/* Pairs that pass bytes: what one has sent, the other gets, in this order. */
static int pipes[NR_ECHOS][2];
static uint64_t passed;

#define nr_passed() __atomic_load_n(&passed, __ATOMIC_RELAXED)

static void echo(struct thread *t)
{
	unsigned me = t->number - NR_SLEEPERS, to = me ^ 1;
	unsigned char byte = 0, sent = 0;

	if (me % 2 == 0)
		call3(&t->task, SYS_write, (uint64_t)pipes[to][1],
		      (uint64_t)(uintptr_t)&sent, 1);
	for (unsigned char wanted = 0;; wanted++) {
		int64_t n = call3(&t->task, SYS_read, (uint64_t)pipes[me][0],
				  (uint64_t)(uintptr_t)&byte, 1);

		if (n != 1)
			break;
		EXPECT(byte == wanted);
		__atomic_add_fetch(&passed, 1, __ATOMIC_RELAXED);
		if (now_phase() == OVER)
			break;
		sent = me % 2 ? byte : (unsigned char)(byte + 1);
		sleep_ns(t, 100 * FX_NS_PER_US);
		call3(&t->task, SYS_write, (uint64_t)pipes[to][1],
		      (uint64_t)(uintptr_t)&sent, 1);
	}
	close(pipes[to][1]);
}

static void serve(struct thread *t)
{
	if (t->number < NR_SLEEPERS)
		sleeper(t);
	else
		echo(t);
}

static uint64_t resting(void)
{
	struct fx_carrier_counters c;

	fx_sched_carriers(&c);
	return c.resting;
}

static void until_resting(bool some)
{
	uint64_t end = fx_now_ns() + 60 * FX_NS_PER_SEC;

	while ((resting() > 0) != some && fx_now_ns() < end)
		usleep(1000);
	EXPECT((resting() > 0) == some);
}

static void enter(enum phase next)
{
	__atomic_store_n(&phase, next, __ATOMIC_RELEASE);
}

static void by_load(void)
{
	struct thread *threads;
	uint64_t before;

	scheduler(NR_CARRIERS);
	for (unsigned i = 0; i < NR_ECHOS; i++)
		EXPECT(pipe(pipes[i]) == 0);
	threads = threads_start(NR_SLEEPERS + NR_ECHOS, serve, NULL);
	for (int i = 0; i < PHASES; i++) {
		enter(SERVE);
		until_resting(true);
		before = nr_passed();
		while (nr_passed() < before + 1000)
			usleep(1000);
		enter(COMPUTE);
		until_resting(false);
	}
	enter(OVER);
	printf("# %lu passed, %lu sent to rest\n",
	       (unsigned long)nr_passed(), (unsigned long)COUNTED(rests));
	EXPECT(COUNTED(rests) >= PHASES);
	threads_join(threads, NR_SLEEPERS + NR_ECHOS);
}

/* One carrier never rests; few threads that hardly run make none rest. */
static void without_need(void)
{
	struct thread *threads;

	scheduler(1);
	threads = threads_start(NR_SLEEPERS, sleeper, NULL);
	usleep(300000);
	EXPECT(resting() == 0);
	enter(OVER);
	threads_join(threads, NR_SLEEPERS);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "by_load", by_load },
		{ "without_need", without_need },
	};

	(void)argc;
	return tests_run(tests, FX_ARRAY_SIZE(tests), argv);
}
