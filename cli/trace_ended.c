/* SPDX-License-Identifier: MIT */
/*
 * How processes ended; see cli/trace_ended.h. The kernel tells their parents
 * alone, and takes what they were out of /proc at once.
 */
#include "cli/trace_ended.h"

#include "cli/trace_print.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A limit, since children that nobody traces are waited for, too. */
enum {
	MOST = 256
};

struct ending {
	pid_t pid;
	int status;
};

/* The oldest first. */
struct endings {
	struct ending ending[MOST];
	unsigned int nr;
};

struct endings *endings_new(void)
{
	return calloc(1, sizeof(struct endings));
}

void endings_free(struct endings *endings)
{
	free(endings);
}

static void drop(struct endings *e, unsigned int i)
{
	memmove(&e->ending[i], &e->ending[i + 1],
		(--e->nr - i) * sizeof(*e->ending));
}

bool endings_take(struct endings *e, pid_t pid, int *status)
{
	for (unsigned int i = e ? e->nr : 0; i-- > 0;)
		if (e->ending[i].pid == pid) {
			*status = e->ending[i].status;
			drop(e, i);
			return true;
		}
	return false;
}

void endings_note(struct endings *e, pid_t pid, int status)
{
	int before;

	if (!e)
		return;
	endings_take(e, pid, &before);
	if (e->nr == MOST)
		drop(e, 0);
	e->ending[e->nr++] = (struct ending){ pid, status };
}

/* Return: false: it goes on, stopped perhaps. */
static bool of_info(const siginfo_t *info, pid_t *pid, int *status)
{
	*pid = info->si_pid;
	switch (info->si_code) {
	case CLD_EXITED:
		*status = W_EXITCODE(info->si_status & 0xff, 0);
		return true;
	case CLD_KILLED:
		*status = info->si_status;
		return true;
	case CLD_DUMPED:
		*status = info->si_status | WCOREFLAG;
		return true;
	default:
		return false;
	}
}

bool trace_child_ended(const struct flexsc_trace_record *record, pid_t *pid,
		       int *status)
{
	siginfo_t info = { 0 };
	const void *there;

	if (record->kind == FLEXSC_TRACE_SIGNAL) {
		memcpy(&info, record->args, sizeof(record->args));
		return info.si_signo == SIGCHLD && of_info(&info, pid, status);
	}
	if (record->kind != FLEXSC_TRACE_END || record->ret < 0)
		return false;
	if (record->nr == SYS_wait4 && record->ret > 0) {
		there = trace_part(record, 1, record->args[1], sizeof(*status));
		if (!there)
			return false;
		memcpy(status, there, sizeof(*status));
		*pid = (pid_t)record->ret;
		return WIFEXITED(*status) || WIFSIGNALED(*status);
	}
	if (record->nr != SYS_waitid)
		return false;
	there = trace_part(record, 2, record->args[2], sizeof(info));
	if (there)
		memcpy(&info, there, sizeof(info));
	return info.si_pid && of_info(&info, pid, status);
}
