/* SPDX-License-Identifier: MIT */
/* Asking about threads by kernel id; see base/thread.h. */
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UNSHARE 2u /* flag of close_range */

uint64_t fx_thread_cpu_ns(pid_t tid)
{
	/* As pthread_getcpuclockid() makes it, which asks for a pthread_t. */
	clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6);
	struct timespec ts;

	if (!tid || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * FX_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Raw calls: the descriptors of some threads are none of a sanitizer's. */
static bool read_task(pid_t tid, const char *name, char *text, size_t size)
{
	char path[48];
	int saved = errno;
	long fd, got = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, name);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = syscall(SYS_read, fd, text, size - 1);
		syscall(SYS_close, fd);
	}
	errno = saved;
	return got > 0;
}

bool fx_thread_runnable(pid_t tid)
{
	char text[64] = { 0 }, *state = NULL;

	if (read_task(tid, "stat", text, sizeof(text)))
		state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'R';
}

uint64_t fx_thread_delay_ns(pid_t tid)
{
	char text[64] = { 0 }, *second = NULL;

	if (read_task(tid, "schedstat", text, sizeof(text)))
		second = strchr(text, ' ');
	return second ? strtoull(second, NULL, 10) : 0;
}

bool fx_thread_unshare_files(void)
{
	int saved = errno;
	long bad = syscall(SYS_close_range, 0, UINT32_MAX, UNSHARE);

	errno = saved;
	return !bad;
}

const void *fx_thread_cpus;
size_t fx_thread_cpus_size;

void fx_thread_spread(void)
{
	int saved = errno;

	if (fx_thread_cpus)
		sched_setaffinity(0, fx_thread_cpus_size, fx_thread_cpus);
	errno = saved;
}
