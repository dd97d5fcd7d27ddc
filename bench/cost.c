/* SPDX-License-Identifier: MIT */
/*
 * What the machine's basic operations cost: crossing into the kernel, a cache
 * line to the other processor and back, waking a thread there. Each takes
 * milliseconds and is bounded in time on a machine that is busy elsewhere.
 */
#include "bench/machine.h"

#include "bench/series.h"

#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	NR_CHUNKS = 21,
	CALLS_A_CHUNK = 500,
	TRIPS_A_CHUNK = 100,
	WAKES_A_CHUNK = 10
};

#define BUDGET_NS 60000000u

#define NR_PAIRS 1000

static double ns_per_tick, ticks_overhead;

static void calibrate(void)
{
	uint64_t t0 = ticks(), n0 = now_ns();
	double pairs[NR_PAIRS];

	while (now_ns() - n0 < 5000000)
		;
	ns_per_tick = (double)(now_ns() - n0) / (double)(ticks() - t0);
	for (int i = 0; i < NR_PAIRS; i++) {
		uint64_t a = ticks(), b = ticks();

		pairs[i] = (double)(b - a);
	}
	/* The counter moves in steps of 10 ns here: only a mean is right. */
	ticks_overhead = middle_mean(pairs, NR_PAIRS);
}

double ticks_ns(uint64_t nr_ticks, uint64_t nr)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	double net;

	pthread_once(&once, calibrate);
	net = (double)nr_ticks - (double)nr * ticks_overhead;
	return net > 0 ? net * ns_per_tick : 0;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void spin_ns(double ns)
{
	uint64_t begin = ticks();

	while (ticks_ns(ticks() - begin, 0) < ns)
		_mm_pause();
}

/* Straight to the kernel, without libc's wrapper. */
static long raw_call(long nr)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr)
			 : "rcx", "r11", "memory");
	return ret;
}

static double cost_of_call(long nr)
{
	double chunks[NR_CHUNKS];

	for (int i = 0; i < NR_CHUNKS; i++) {
		uint64_t begin = ticks();

		for (int j = 0; j < CALLS_A_CHUNK; j++)
			raw_call(nr);
		chunks[i] = ticks_ns(ticks() - begin, 1) / CALLS_A_CHUNK;
	}
	return median(chunks, NR_CHUNKS);
}

double cost_crossing_ns(void)
{
	return cost_of_call(1000000); /* no such number */
}

double cost_getppid_ns(void)
{
	return cost_of_call(SYS_getppid);
}

/* Two threads on two processors hand one number to and fro. */
struct pair {
	_Alignas(64) atomic_uint turn;
	bool sleeps;
	_Alignas(64) atomic_bool ready;
};

#define STOP 0x80000000u

static void hand_over(struct pair *p, unsigned int turn)
{
	atomic_store_explicit(&p->turn, turn, memory_order_release);
	if (p->sleeps)
		syscall(SYS_futex, &p->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
			0);
}

/* Wait while the number is @turn; returns the new one. */
static unsigned int await(struct pair *p, unsigned int turn)
{
	unsigned int now;

	while ((now = atomic_load_explicit(&p->turn, memory_order_acquire)) ==
	       turn)
		if (p->sleeps)
			syscall(SYS_futex, &p->turn, FUTEX_WAIT_PRIVATE, turn,
				NULL, NULL, 0);
	return now;
}

static void *answer(void *arg)
{
	struct pair *p = arg;
	unsigned int turn = 0;

	machine_pin(machine()->cpu_other);
	atomic_store(&p->ready, true);
	while (!((turn = await(p, turn)) & STOP))
		hand_over(p, ++turn);
	return NULL;
}

static double ping_pong(bool sleeps, int trips)
{
	struct pair p = { .sleeps = sleeps };
	double chunks[NR_CHUNKS];
	cpu_set_t before;
	pthread_t thread;
	unsigned int turn = 0, n = 0;
	uint64_t end;

	if (machine()->cpu_other < 0)
		return NAN;
	sched_getaffinity(0, sizeof(before), &before);
	machine_pin(machine()->cpu_app);
	if (pthread_create(&thread, NULL, answer, &p))
		return NAN;
	while (!atomic_load(&p.ready))
		sched_yield();
	end = now_ns() + BUDGET_NS;
	do {
		uint64_t begin = ticks();

		for (int i = 0; i < trips; i++) {
			hand_over(&p, turn + 1);
			turn = await(&p, turn + 1);
		}
		chunks[n++] = ticks_ns(ticks() - begin, 1) / trips;
	} while (n < NR_CHUNKS && now_ns() < end);
	hand_over(&p, STOP);
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(before), &before);
	return median(chunks, n);
}

double cost_roundtrip_ns(void)
{
	return ping_pong(false, TRIPS_A_CHUNK);
}

double cost_futex_ns(void)
{
	return ping_pong(true, WAKES_A_CHUNK);
}
