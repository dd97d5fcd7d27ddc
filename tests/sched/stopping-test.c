/* SPDX-License-Identifier: MIT */
/*
 * Carriers, watchdog and engine's threads end when nobody needs them for a
 * while, and begin again: at any moment, beside others that make tasks, and
 * beside forks.
 */
#include "threads.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MAKERS = 2,
	ROUNDS = 150,
	PARKING = 16384
};

static unsigned nr_kernel_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned nr = 0;

	while ((entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	closedir(dir);
	return nr;
}

static void scheduler_that_stops(uint32_t idle_ms)
{
	struct fx_sched_options options = {
		.engine = getenv("FLEXSC_ENGINE"),
		.nr_carriers = 2,
		.idle_ms = idle_ms,
	};

	if (fx_sched_init(&options))
		abort();
}

static uint64_t nr_ended(void)
{
	struct fx_carrier_counters carriers;

	fx_sched_carriers(&carriers);
	return carriers.ended;
}

static void *task(void *arg)
{
	struct thread *t = arg;
	int ends[2];
	char byte = 'x';

	fx_task_attach(&t->task, t->parking + PARKING);
	fx_task_lend(&t->task);
	EXPECT(!fx_task_at_home(&t->task));
	EXPECT(pipe(ends) == 0);
	sleep_ns(t, 50 * FX_NS_PER_US);
	EXPECT(call3(&t->task, SYS_write, (uint64_t)ends[1], (uint64_t)&byte,
		     1) == 1);
	EXPECT(call3(&t->task, SYS_read, (uint64_t)ends[0], (uint64_t)&byte,
		     1) == 1);
	close(ends[0]);
	close(ends[1]);
	fx_go_home(&t->task);
	fx_task_detach(&t->task);
	fx_sched_need_not();
	return NULL;
}

/* Memory of tasks is never given back. */
static struct thread *memory_of_task(void)
{
	struct thread *t = aligned_alloc(64, sizeof(*t));

	memset(t, 0, sizeof(*t));
	t->parking = mmap(NULL, PARKING, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return t;
}

static void *makes(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	struct thread *t = memory_of_task();

	for (unsigned i = 0; i < ROUNDS; i++) {
		EXPECT(fx_sched_need() == 0);
		if (pthread_create(&t->pthread, NULL, task, t))
			abort();
		pthread_join(t->pthread, NULL);
		usleep((useconds_t)(rand_r(&seed) % 4000));
	}
	return NULL;
}

static void make(unsigned nr)
{
	pthread_t maker[MAKERS];

	for (unsigned i = 0; i < nr; i++)
		pthread_create(&maker[i], NULL, makes,
			       (void *)(uintptr_t)(i + 1));
	for (unsigned i = 0; i < nr; i++)
		pthread_join(maker[i], NULL);
}

static void wait_until_alone(void)
{
	while (nr_kernel_threads() > 1)
		usleep(1000);
}

static void ends(void)
{
	unsigned before = nr_kernel_threads();

	scheduler_that_stops(1);
	EXPECT(nr_kernel_threads() > before);
	for (unsigned i = 0; i < 5; i++) {
		EXPECT(fx_sched_need() == 0);
		EXPECT(nr_kernel_threads() > 1);
		fx_sched_need_not();
		wait_until_alone();
	}
	fx_sched_fini();
}

static void again(void)
{
	scheduler_that_stops(1);
	make(1);
	make(MAKERS);
	printf("# %lu carriers ended\n", (unsigned long)nr_ended());
	EXPECT(nr_ended() > 10);
	wait_until_alone();
	fx_sched_fini();
}

/* Not needed any more, and the end of all. */
static void ends_early(void)
{
	for (unsigned i = 0; i < 100; i++) {
		scheduler_that_stops(1);
		EXPECT(fx_sched_need() == 0);
		fx_sched_need_not();
		usleep(i * 40);
		fx_sched_fini();
	}
	wait_until_alone();
}

static volatile int made;

static void *makes_and_says_so(void *arg)
{
	makes(arg);
	__atomic_store_n(&made, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void forks(void)
{
	pthread_t maker;
	int status = 0;

	scheduler_that_stops(1);
	pthread_create(&maker, NULL, makes_and_says_so, NULL);
	while (!__atomic_load_n(&made, __ATOMIC_ACQUIRE)) {
		pid_t pid = fork();

		if (pid == 0) {
			fx_sched_after_fork();
			_exit(0);
		}
		EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
		usleep(300);
	}
	pthread_join(maker, NULL);
	fx_sched_fini();
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "ends", ends },
		{ "again", again },
		{ "ends_early", ends_early },
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
		{ "forks", forks }, /* see tasks-test.c */
#endif
	};

	(void)argc;
	return tests_run(tests, FX_ARRAY_SIZE(tests), argv);
}
