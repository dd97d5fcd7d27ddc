/* SPDX-License-Identifier: MIT */
/*
 * Tests of flexsc.ko through its ABI alone: one process a case, TAP, and a
 * page set as small as user space can make it.
 */
#ifndef TESTS_KMOD_CASES_H
#define TESTS_KMOD_CASES_H

#include <errno.h>
#include <linux/flexsc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct test_case {
	const char *name;
	void (*fn)(void);
};

/* Runs them all; returns main()'s status. 77: no device. */
int run_cases(const struct test_case *cases, unsigned nr);

#define CASE(fn)        \
	{               \
#fn, fn \
	}

_Noreturn void fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void skip(const char *why);

#define CHECK(condition)                                            \
	do {                                                        \
		if (!(condition))                                   \
			fail(__FILE__, __LINE__, "%s", #condition); \
	} while (0)

#define CHECK_EQ(got, wanted)                                                 \
	do {                                                                  \
		long long got_ = (got), wanted_ = (wanted);                   \
                                                                              \
		if (got_ != wanted_)                                          \
			fail(__FILE__, __LINE__, "%s is %lld, not %s (%lld)", \
			     #got, got_, #wanted, wanted_);                   \
	} while (0)

/* Runs @fn in a child; fails unless it exits with 0. */
void in_child(void (*fn)(void *arg), void *arg);

uint64_t now_ns(void);
void sleep_ms(unsigned ms);
unsigned nr_threads(void);

/* A registered set; entry numbers are chosen by the test, up to ENTRIES. */
struct kset {
	int fd;
	uint32_t max_entries, next_index;
	size_t map_size;
	struct flexsc_set *shared;
	uint32_t *sq;
	uint64_t *cq;
	struct flexsc_entry *entries;
	uint64_t sq_tail, cq_head;
	uint32_t segment; /* of both rings: one that holds all from the start */
};

/* ioctl() with results as the kernel has them: >= 0 or -errno. */
long request(int fd, unsigned long what, unsigned long argument);

/* 0 or -errno; nothing is left behind on failure. */
int kset_init(struct kset *set, uint32_t max_entries, uint32_t max_threads);
void kset_fini(struct kset *set);

struct call {
	unsigned nr, nr_args, flags;
	uint64_t args[6];
};

/* Fills entry @index and puts it on the ring. */
void kset_post(struct kset *set, uint32_t index, const struct call *call);
/* Only puts something on the ring. */
void kset_publish(struct kset *set, uint32_t value);
#define POST(set, index, number, ...)                                      \
	kset_post(set, index,                                              \
		  &(struct call){ .nr = (number),                          \
				  .nr_args = sizeof((uint64_t[]){          \
						     0, ##__VA_ARGS__ }) / \
						     8 -                   \
					     1,                            \
				  .args = { __VA_ARGS__ } })
#define ARG(value) ((uint64_t)(uintptr_t)(value))

/* One completion that is there: false if there is none. */
bool kset_reap(struct kset *set, uint32_t *index, int64_t *ret);
/* Runs until something completes; fails after some seconds. */
int64_t kset_next(struct kset *set, uint32_t *index);
/* Posts one call and waits for its result. */
int64_t kset_call(struct kset *set, const struct call *call);
#define CALL(set, number, ...)                                             \
	kset_call(set,                                                     \
		  &(struct call){ .nr = (number),                          \
				  .nr_args = sizeof((uint64_t[]){          \
						     0, ##__VA_ARGS__ }) / \
						     8 -                   \
					     1,                            \
				  .args = { __VA_ARGS__ } })

long kset_run(struct kset *set, uint64_t sleep_ns);
struct flexsc_stats kset_stats(struct kset *set);

/* A thread that lends itself until STOP or the set's end. */
struct lent {
	pthread_t thread;
	struct kset *set;
	uint32_t flags;
	long result;
};
void lend(struct lent *lent, struct kset *set, uint32_t flags);
/* After STOP: what WAIT returned. */
long unlend(struct lent *lent);

#endif /* TESTS_KMOD_CASES_H */
