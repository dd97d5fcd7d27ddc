/* SPDX-License-Identifier: MIT */
/*
 * Runs cases, one process each, killed with its group when its time is over.
 */
#include "cases.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>

enum {
	EXIT_SKIP = 77,
	LIMIT_SECONDS = 120
};

void fail(const char *file, int line, const char *format, ...)
{
	const char *slash = strrchr(file, '/');
	char text[400];
	va_list rest;

	va_start(rest, format);
	vsnprintf(text, sizeof(text), format, rest);
	va_end(rest);
	dprintf(1, "# %s:%d: %s\n", slash ? slash + 1 : file, line, text);
	_exit(1);
}

void skip(const char *why)
{
	dprintf(1, "# skipped: %s\n", why);
	_exit(EXIT_SKIP);
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sleep_ms(unsigned ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

unsigned nr_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned nr = 0;

	while (dir && (entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return nr;
}

void in_child(void (*fn)(void *arg), void *arg)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		fn(arg);
		_exit(0);
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status)
		fail(__FILE__, __LINE__, "the child ended with status 0x%x",
		     (unsigned)status);
}

/* Wait status, or -1 if its time was over. */
static int run_case(const struct test_case *one)
{
	uint64_t end = now_ns() + LIMIT_SECONDS * 1000000000ull;
	int status;
	pid_t pid = fork();

	if (!pid) {
		setpgid(0, 0);
		one->fn();
		_exit(0);
	}
	if (pid < 0)
		return -1;
	for (;;) {
		pid_t ended = waitpid(pid, &status, WNOHANG);

		if (ended == pid || now_ns() > end) {
			kill(-pid, SIGKILL);
			if (ended == pid)
				return status;
			waitpid(pid, &status, 0);
			return -1;
		}
		sleep_ms(2);
	}
}

int run_cases(const struct test_case *cases, unsigned nr)
{
	int status, failed = 0;

	if (access(FLEXSC_DEVICE, F_OK)) {
		printf("SKIP: no %s\n", FLEXSC_DEVICE);
		return EXIT_SKIP;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%u\n", nr);
	for (unsigned i = 0; i < nr; i++) {
		status = run_case(&cases[i]);
		if (status < 0)
			printf("# not finished after %d s\n", LIMIT_SECONDS);
		else if (WIFSIGNALED(status))
			printf("# signal %d\n", WTERMSIG(status));
		if (status >= 0 && WIFEXITED(status) &&
		    WEXITSTATUS(status) == EXIT_SKIP) {
			printf("ok %u - %s # SKIP\n", i + 1, cases[i].name);
			continue;
		}
		failed |= status;
		printf("%sok %u - %s\n", status ? "not " : "", i + 1,
		       cases[i].name);
	}
	return failed ? 1 : 0;
}
