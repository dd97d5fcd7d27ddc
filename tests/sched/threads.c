/* SPDX-License-Identifier: MIT */
/* Threads as tasks, and running cases; what is tested is elsewhere. */
#include "threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASE_SECONDS 60
#define PARKING_SIZE 16384

unsigned nr_failed_expectations;

void expect_failed(const char *file, int line, const char *what)
{
	if (__atomic_fetch_add(&nr_failed_expectations, 1, __ATOMIC_RELAXED) <
	    20)
		dprintf(1, "# %s:%d: %s\n", file, line, what);
}

static void *begin(void *arg)
{
	struct thread *t = arg;

	fx_task_attach(&t->task, t->parking + PARKING_SIZE);
	fx_task_lend(&t->task);
	t->fn(t);
	fx_go_home(&t->task);
	fx_task_detach(&t->task);
	return NULL;
}

struct thread *threads_start(unsigned nr, void (*fn)(struct thread *self),
			     void *arg)
{
	struct thread *threads = aligned_alloc(64, nr * sizeof(*threads));
	char *parking =
		mmap(NULL, (size_t)nr * PARKING_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_attr_t attr;

	memset(threads, 0, nr * sizeof(*threads));
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	for (unsigned i = 0; i < nr; i++) {
		struct thread *t = &threads[i];

		t->fn = fn;
		t->arg = arg;
		t->number = i;
		t->parking = parking + (size_t)i * PARKING_SIZE;
		if (pthread_create(&t->pthread, &attr, begin, t))
			abort();
	}
	pthread_attr_destroy(&attr);
	return threads;
}

void threads_join(struct thread *threads, unsigned nr)
{
	char *parking = threads[0].parking;

	for (unsigned i = 0; i < nr; i++)
		pthread_join(threads[i].pthread, NULL);
	munmap(parking, (size_t)nr * PARKING_SIZE);
	/* Timers may still know a task: the scheduler goes first. */
	fx_sched_fini();
	free(threads);
}

void threads_run(unsigned nr, void (*fn)(struct thread *self), void *arg)
{
	threads_join(threads_start(nr, fn, arg), nr);
}

void scheduler(uint32_t nr_carriers)
{
	struct fx_sched_options options = {
		.engine = getenv("FLEXSC_ENGINE"),
		.nr_carriers = nr_carriers,
	};

	if (fx_sched_init(&options))
		abort();
}

uint64_t counted(size_t offset)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < fx_sched_nr_queues(); i++) {
		struct fx_queue_counters c;
		uint64_t value;

		fx_sched_counters(i, &c);
		memcpy(&value, (char *)&c + offset, sizeof(value));
		sum += value;
	}
	return sum;
}

unsigned slowness(void)
{
	const char *limit_s = getenv("FLEXSC_TEST_TIMEOUT");

	return limit_s && atoi(limit_s) > 10 ? (unsigned)atoi(limit_s) / 10 : 1;
}

struct fx_deadline in_ns(enum fx_clock clock, uint64_t ns)
{
	struct timespec ts;

	clock_gettime(clock == FX_CLOCK_REALTIME ? CLOCK_REALTIME :
						   CLOCK_MONOTONIC,
		      &ts);
	return (struct fx_deadline){
		.at_ns = (uint64_t)ts.tv_sec * FX_NS_PER_SEC +
			 (uint64_t)ts.tv_nsec + ns,
		.clock = clock,
	};
}

void sleep_ns(struct thread *t, uint64_t ns)
{
	struct fx_deadline until = in_ns(FX_CLOCK_MONOTONIC, ns);

	EXPECT(fx_sleep(&t->task, &until, 0) == FX_WOKEN_TIMEOUT);
}

int64_t call3(struct fx_task *me, unsigned nr, uint64_t a, uint64_t b,
	      uint64_t c)
{
	struct flexsc_entry call = { .nr = (uint16_t)nr, .nr_args = 3 };

	call.args[0] = a;
	call.args[1] = b;
	call.args[2] = c;
	return fx_call(me, &call, "call", NULL, 0, NULL);
}

static bool run_one(const struct test *test, unsigned number)
{
	int status = 0;
	pid_t pid;
	bool ok;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(CASE_SECONDS * (slowness() > 2 ? 2 : 1));
		test->fn();
		fflush(stdout);
		_exit(nr_failed_expectations != 0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (WIFSIGNALED(status))
		printf("# ended by signal %d\n", WTERMSIG(status));
	printf("%sok %u - %s\n", ok ? "" : "not ", number, test->name);
	return ok;
}

int tests_run(const struct test *tests, unsigned nr, char **argv)
{
	unsigned failed = 0, ran = 0;

	for (unsigned i = 0; i < nr; i++) {
		if (argv[1] && strcmp(argv[1], tests[i].name))
			continue;
		failed += !run_one(&tests[i], ++ran);
	}
	printf("1..%u\n", ran);
	return failed != 0;
}
