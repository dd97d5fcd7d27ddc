/* SPDX-License-Identifier: MIT */
/*
 * Until a thread waits in a call: a condition in place of a time, which on a
 * busy machine is too short. Natively the kernel says so; under the library it
 * is in what that shows to observers.
 */
#ifndef TESTS_THREADS_UNTIL_H
#define TESTS_THREADS_UNTIL_H

#include <dirent.h>
#include <dlfcn.h>
#include <flexsc/observe.h>
#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* In system call @nr with @first as its first argument; -1: any. */
static bool thread_is_in(pid_t tid, long nr, long first)
{
	char path[64];
	FILE *file;
	long now, arg;
	bool is;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	is = fscanf(file, "%ld %li", &now, &arg) == 2 && now >= 0 &&
	     (nr == -1 || nr == now) && (first == -1 || first == arg);
	fclose(file);
	return is;
}

/* Is any thread of the process, of the library's too? */
static inline bool some_thread_is_in(long nr, long first)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	bool is = false;

	while (!is && (entry = readdir(dir)))
		is = thread_is_in(atoi(entry->d_name), nr, first);
	closedir(dir);
	return is;
}

static uint64_t word_at(uint64_t record, uint16_t offset)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)(record + offset),
			       __ATOMIC_ACQUIRE);
}

/* Parked, with such a call posted. */
static bool waits_parked(pid_t tid, int fd)
{
	struct flexsc_process **shown = dlsym(RTLD_DEFAULT, "flexsc_process");
	const struct flexsc_thread_layout *at;
	uint64_t record, next, on, state;

	if (!shown || !*shown || (*shown)->declined[0])
		return false;
	at = &(*shown)->thread;
	next = word_at((*shown)->threads, 0);
	do {
		record = next;
		next = word_at(record, at->next);
	} while (*(int32_t *)(uintptr_t)(record + at->tid) != tid &&
		 next != record);
	state = word_at(record, at->state);
	on = word_at(record, at->on);
	if ((state & 0xff) != FLEXSC_THREAD_PARKED || !(on & FLEXSC_ON_CALL) ||
	    *(int32_t *)(uintptr_t)(record + at->tid) != tid)
		return false;
	return ((struct flexsc_entry *)(uintptr_t)(on - FLEXSC_ON_CALL))
		       ->args[0] == (uint64_t)fd;
}

/* @tid: set by the thread itself; it stays in the call. */
static inline void until_waits(const volatile pid_t *tid, int fd)
{
	while (!*tid ||
	       !(thread_is_in(*tid, -1, fd) || waits_parked(*tid, fd)))
		usleep(1000);
}

#endif /* TESTS_THREADS_UNTIL_H */
