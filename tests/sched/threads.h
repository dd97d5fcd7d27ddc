/* SPDX-License-Identifier: MIT */
/*
 * For tests of src/sched: real threads of the C library as tasks, and cases
 * that each run in a process of their own with a time limit. TAP.
 */
#ifndef FX_TESTS_SCHED_THREADS_H
#define FX_TESTS_SCHED_THREADS_H

#include "base/clock.h"
#include "sched/sched.h"

#include <pthread.h>
#include <stdio.h>

struct thread {
	struct fx_task task;
	void (*fn)(struct thread *self);
	void *arg;
	unsigned number;
	pthread_t pthread;
	char *parking;
} __attribute__((aligned(64)));

#define EXPECT(cond) \
	((cond) ? (void)0 : expect_failed(__FILE__, __LINE__, #cond))
void expect_failed(const char *file, int line, const char *what);
extern unsigned nr_failed_expectations;

/* Threads 0 to @nr - 1, lent before @fn is called, back home after it. */
struct thread *threads_start(unsigned nr, void (*fn)(struct thread *self),
			     void *arg);
void threads_join(struct thread *threads, unsigned nr);
void threads_run(unsigned nr, void (*fn)(struct thread *self), void *arg);

void scheduler(uint32_t nr_carriers);
uint64_t counted(size_t offset);
#define COUNTED(field) counted(offsetof(struct fx_queue_counters, field))

/* How many times slower than usual this machine may be: FLEXSC_TEST_TIMEOUT. */
unsigned slowness(void);

struct fx_deadline in_ns(enum fx_clock clock, uint64_t ns);
void sleep_ns(struct thread *t, uint64_t ns);

int64_t call3(struct fx_task *me, unsigned nr, uint64_t a, uint64_t b,
	      uint64_t c);

struct test {
	const char *name;
	void (*fn)(void);
};
/* @argv[1]: only this one; "-l" lists. */
int tests_run(const struct test *tests, unsigned nr, char **argv);

#endif /* FX_TESTS_SCHED_THREADS_H */
