/* SPDX-License-Identifier: MIT */
/*
 * What every conformance test uses: a table of tests, each run in a process
 * of its own; checks that name their line; and calls that are made in two
 * ways, plainly and posted, so that the plain call is the specification.
 *
 * A check that fails ends the process of the test. A test returns with nothing
 * outstanding.
 */
#ifndef CONFORMANCE_HARNESS_H
#define CONFORMANCE_HARNESS_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <flexsc.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MS 1000000ull /* in nanoseconds */

/* Tests --------------------------------------------------------------- */

enum test_flags {
	TEST_BOTH = 1, /* run plainly, then posted: the outcomes must agree */
	TEST_BESIDE = 2, /* blocking calls must run beside the loop: not sync */
	TEST_SLOW = 4, /* three times the usual time limit */
	TEST_NO_LOOP = 8, /* the test makes its own loops */
};

struct test {
	const char *name;
	void (*fn)(void);
	unsigned int flags;
};

/* The engine under test, and the loop of the present test. */
extern const char *engine;
extern struct flexsc_loop *loop;

/**
 * run_group - run all tests, or those whose names are given, and print TAP
 * @argv: [ENGINE [TEST...]]; without, the environment variable FLEXSC_ENGINE.
 *        -TEST: all but this one
 *
 * FLEXSC_TEST_TIMEOUT: seconds for one test (10; 60 under a sanitizer).
 * FLEXSC_TEST_NO_FORK: run the one test named in this process, for a debugger.
 *
 * Return: exit status.
 */
int run_group(int argc, char **argv, const struct test *tests, size_t nr);

/* End the test as skipped, or as failed. */
__attribute__((noreturn, format(printf, 1, 2))) void skip(const char *why, ...);
__attribute__((noreturn, format(printf, 3, 4))) void
fail(const char *file, int line, const char *what, ...);

#define FAIL(...) fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond) ((cond) ? (void)0 : FAIL("%s", #cond))
#define CHECK_EQ(a, b) \
	check_eq(__FILE__, __LINE__, #a " == " #b, (int64_t)(a), (int64_t)(b))
#define CHECK_IN(x, low, high)                                         \
	check_in(__FILE__, __LINE__, #x, (int64_t)(x), (int64_t)(low), \
		 (int64_t)(high))

void check_eq(const char *file, int line, const char *what, int64_t a,
	      int64_t b);
void check_in(const char *file, int line, const char *what, int64_t x,
	      int64_t low, int64_t high);

/* Posting and waiting -------------------------------------------------- */

/* A posted call whose handler only counts. */
struct op {
	struct flexsc_event ev;
	unsigned int nr_done; /* since it was posted last */
	bool posted;
	uint64_t done_ns; /* when */
};

/* Handlers of struct op called so far, in this process. */
extern unsigned long nr_ops_done;

/* Get ready to post; ev.timeout_ns stays as it is. Sets errno to a mark. */
struct flexsc_event *op_ready(struct op *op);
/* What a posting returned must be 0 and errno must still be the mark. */
void op_posted(const char *file, int line, const char *what, int ret);

/* POST(read, &op, fd, buf, n) posts flexsc_read(), and fails if it cannot. */
#define POST(name, op, ...)                            \
	op_posted(__FILE__, __LINE__, "flexsc_" #name, \
		  flexsc_##name(op_ready(op), ##__VA_ARGS__))

/* Run the loop until it is done; its result. Fails after some seconds. */
#define WAIT(op) op_wait(__FILE__, __LINE__, op)
int64_t op_wait(const char *file, int line, struct op *op);

/* Run the loop for so long. */
void run_ms(unsigned int ms);
/* Run it until *counter reaches the value; fails after some seconds. */
#define RUN_UNTIL(counter, value) \
	run_until(__FILE__, __LINE__, #counter, &(counter), value)
void run_until(const char *file, int line, const char *what,
	       const unsigned long *counter, unsigned long value);

/* Post and wait at once. */
#define CALL(name, ...)                          \
	({                                       \
		struct op op_ = { 0 };           \
		POST(name, &op_, ##__VA_ARGS__); \
		WAIT(&op_);                      \
	})

/* Two ways of making a call ------------------------------------------- */

enum way {
	WAY_PLAIN,
	WAY_POSTED
};
extern enum way way;

/* -errno instead of -1 */
int64_t plain_result(int64_t ret);

/* Record an outcome: a number, or memory by its checksum. Returns it. */
int64_t note(const char *what, int64_t value);
void note_bytes(const char *what, const void *buf, size_t len);

/* The raw result, either way; and the same recorded. */
#define EITHER(name, ...)                                              \
	(way == WAY_PLAIN ? plain_result((int64_t)name(__VA_ARGS__)) : \
			    CALL(name, ##__VA_ARGS__))
#define DO(name, ...) note(#name, EITHER(name, ##__VA_ARGS__))
/* For results that differ between two runs (descriptors, addresses). */
#define DO_NEW(name, ...)                                       \
	({                                                      \
		int64_t new_ = EITHER(name, ##__VA_ARGS__);     \
		note(#name, new_<0 && new_> - 4096 ? new_ : 0); \
		new_;                                           \
	})
/* By number, without the C library in between. */
#define DO_NR(nr, ...) note(#nr, either_nr(nr, (long[6]){ __VA_ARGS__ }))
int64_t either_nr(unsigned int nr, const long args[6]);

/* Surroundings --------------------------------------------------------- */

uint64_t now_ns(void);
/* Time limits grow under sanitizers: the factor. */
unsigned int slowness(void);
void sleep_ms(unsigned int ms);

pthread_t thread_start(void *(*fn)(void *), void *arg);
void thread_join(pthread_t thread);
unsigned int nr_tasks(void); /* threads of this process, by /proc */
/* Wait until this thread sleeps, or the time is over. */
void wait_asleep(pid_t tid, unsigned int ms);
unsigned int nr_open(void); /* descriptors of this process */

/* Fixtures: they fail rather than return an error. */
void make_pair(int sv[2]); /* unix stream sockets */
void make_pipe(int fds[2]);
void make_tcp_pair(int sv[2]);
int make_listener(uint16_t *port); /* TCP on 127.0.0.1 */
int connect_to(uint16_t port);
int make_file(const char *path, size_t size_bytes); /* of pattern(), open */
uint8_t pattern(uint64_t offset);
void fill(uint8_t *buf, uint64_t offset, size_t len);
bool filled(const uint8_t *buf, uint64_t offset, size_t len);
int fill_up(int fd); /* write until it would block; bytes */

/* A loop for engine, made and made current. */
struct flexsc_loop *new_loop(uint32_t max_entries, uint32_t max_threads);
void end_loop(struct flexsc_loop *l); /* must have nothing outstanding */
pid_t fork_or_fail(void);
void reap_child(pid_t pid, int status); /* must end with this exit status */

#endif /* CONFORMANCE_HARNESS_H */
