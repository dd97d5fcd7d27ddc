/* SPDX-License-Identifier: MIT */
/*
 * Runs the tests of a group: one process each, killed with all its children
 * when its time is over, and prints what came out as TAP. Checks and the two
 * ways of making a call are in check.c, sockets and files in fixture.c.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "trace.h"

enum {
	EXIT_SKIP = 77
};

const char *engine;
struct flexsc_loop *loop;

/* Shared with the test's process: why it was skipped. */
static char *reason;
enum {
	REASON_SIZE = 512
};

void skip(const char *why, ...)
{
	va_list args;

	va_start(args, why);
	vsnprintf(reason, REASON_SIZE, why, args);
	va_end(args);
	_exit(EXIT_SKIP);
}

void fail(const char *file, int line, const char *what, ...)
{
	const char *slash = strrchr(file, '/');
	char text[400];
	va_list args;

	va_start(args, what);
	vsnprintf(text, sizeof(text), what, args);
	va_end(args);
	dprintf(STDERR_FILENO, "# %s:%d: %s%s\n", slash ? slash + 1 : file,
		line, way == WAY_PLAIN ? "(plain call) " : "", text);
	_exit(EXIT_FAILURE);
}

struct flexsc_loop *new_loop(uint32_t max_entries, uint32_t max_threads)
{
	struct flexsc_options options = {
		.size = sizeof(options),
		.engine = engine,
		.max_entries = max_entries,
		.max_threads = max_threads,
	};
	struct flexsc_loop *made = NULL;
	int ret = flexsc_loop_new(&made, &options);

	if (ret)
		FAIL("flexsc_loop_new: %s", strerror(-ret));
	CHECK(made != NULL);
	CHECK(flexsc_loop_current() == made);
	return made;
}

void end_loop(struct flexsc_loop *l)
{
	CHECK_EQ(flexsc_loop_outstanding(l), 0);
	CHECK_EQ(flexsc_loop_free(l), 0);
}

static void enter_folder(const char *name)
{
	if (mkdir(name, 0700) || chdir(name))
		FAIL("folder %s: %s", name, strerror(errno));
}

/* In the test's own process. */
static void run_test(const struct test *test)
{
	way = WAY_POSTED;
	if (!(test->flags & TEST_NO_LOOP))
		loop = new_loop(0, 0);
	if (test->flags & TEST_BOTH) {
		way = WAY_PLAIN;
		enter_folder("plain");
		test->fn();
		trace_rewind();
		way = WAY_POSTED;
		if (chdir(".."))
			FAIL("chdir: %s", strerror(errno));
		enter_folder("posted");
	}
	test->fn();
	trace_end();
	if (!loop)
		return;
	end_loop(loop);
	CHECK(flexsc_loop_current() == NULL);
}

static unsigned int time_limit(const struct test *test)
{
	return 10 * slowness() * (test->flags & TEST_SLOW ? 3 : 1);
}

/* What its threads were doing when the time was over. */
static void print_threads(pid_t pid)
{
	static const char *const facts[] = { "comm", "wchan", "syscall" };
	char path[300], text[200];
	struct dirent *entry;
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		dprintf(STDERR_FILENO, "#   thread %s:", entry->d_name);
		for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
			ssize_t len = 0;

			snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", pid,
				 entry->d_name, facts[i]);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd >= 0) {
				len = read(fd, text, 60);
				close(fd);
			}
			text[len > 0 ? len : 0] = 0;
			text[strcspn(text, "\n")] = 0;
			dprintf(STDERR_FILENO, " %s", text);
		}
		dprintf(STDERR_FILENO, "\n");
	}
	if (dir)
		closedir(dir);
}

/* Wait status of the test, or -1 if its time was over. */
static int await_test(pid_t pid, unsigned int seconds)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ready = { .fd = pidfd, .events = POLLIN };
	int status = 0, nr;

	if (pidfd < 0)
		FAIL("pidfd_open: %s", strerror(errno));
	do
		nr = poll(&ready, 1, (int)seconds * 1000);
	while (nr < 0 && errno == EINTR);
	if (nr == 0)
		print_threads(pid);
	/* Its children too: they are in its process group. */
	if (nr == 0)
		kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		FAIL("waitpid: %s", strerror(errno));
	kill(-pid, SIGKILL);
	close(pidfd);
	return nr == 0 ? -1 : status;
}

static int remove_entry(const char *path, const struct stat *st, int flag,
			struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void start_test(const struct test *test, const char *folder)
{
	struct rlimit files;

	setpgid(0, 0);
	if (chdir(folder))
		FAIL("%s: %s", folder, strerror(errno));
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	run_test(test);
	_exit(EXIT_SUCCESS);
}

/* True if the test did not fail. */
static bool report_test(unsigned int number, const struct test *test)
{
	char folder[] = "/tmp/flexsc-test-XXXXXX";
	int status;
	pid_t pid;

	if ((test->flags & TEST_BESIDE) && !strcmp(engine, "sync")) {
		printf("ok %u - %s # SKIP engine sync makes blocking calls on "
		       "the loop's own thread\n",
		       number, test->name);
		return true;
	}
	if (!mkdtemp(folder))
		FAIL("mkdtemp: %s", strerror(errno));
	reason[0] = 0;
	fflush(NULL);
	if (getenv("FLEXSC_TEST_NO_FORK"))
		start_test(test, folder);
	pid = fork_or_fail();
	if (!pid)
		start_test(test, folder);
	setpgid(pid, pid);
	status = await_test(pid, time_limit(test));
	nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	if (status == 0) {
		printf("ok %u - %s\n", number, test->name);
	} else if (status == -1) {
		printf("not ok %u - %s\n# %s: not done after %u s\n", number,
		       test->name, test->name, time_limit(test));
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP) {
		printf("ok %u - %s # SKIP %s\n", number, test->name, reason);
		return true;
	} else {
		printf("not ok %u - %s\n", number, test->name);
		if (WIFSIGNALED(status))
			printf("# %s: killed by signal %d, %s\n", test->name,
			       WTERMSIG(status), strsignal(WTERMSIG(status)));
	}
	fflush(stdout);
	return status == 0;
}

/* Is the wanted engine the one a loop gets? Asked in a child of its own. */
static bool engine_usable(void)
{
	int status;
	pid_t pid = fork_or_fail();

	if (!pid) {
		loop = new_loop(0, 0);
		if (strcmp(flexsc_loop_engine(loop), engine))
			skip("%s is in use instead of %s: %s",
			     flexsc_loop_engine(loop), engine,
			     flexsc_loop_engine_reason(loop));
		end_loop(loop);
		_exit(EXIT_SUCCESS);
	}
	status = await_test(pid, 10 * slowness());
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP)
		return false;
	if (status) {
		printf("Bail out! making a loop ends with status %#x\n",
		       (unsigned int)status);
		exit(EXIT_FAILURE);
	}
	return true;
}

static bool selected(int argc, char **argv, const char *name)
{
	bool named = false;

	for (int i = 2; i < argc; i++) {
		if (argv[i][0] == '-' && !strcmp(argv[i] + 1, name))
			return false;
		if (!strcmp(argv[i], name))
			return true;
		named |= argv[i][0] != '-';
	}
	return !named;
}

int run_group(int argc, char **argv, const struct test *tests, size_t nr)
{
	unsigned int number = 0;
	bool good = true;

	way = WAY_POSTED;
	engine = argc > 1 ? argv[1] : getenv("FLEXSC_ENGINE");
	if (!engine || !*engine)
		engine = "poll";
	setenv("FLEXSC_ENGINE", engine, 1);
	reason = mmap(NULL, REASON_SIZE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reason == MAP_FAILED)
		FAIL("mmap: %s", strerror(errno));
	if (!getenv("FLEXSC_TEST_NO_FORK") && !engine_usable()) {
		printf("1..0 # SKIP %s\n", reason);
		return 0;
	}
	for (size_t i = 0; i < nr; i++) {
		if (selected(argc, argv, tests[i].name))
			good = report_test(++number, &tests[i]) && good;
	}
	printf("1..%u\n", number);
	return good && number ? EXIT_SUCCESS : EXIT_FAILURE;
}
