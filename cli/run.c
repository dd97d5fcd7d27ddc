/* SPDX-License-Identifier: MIT */
/*
 * `flexsc run`: starts an unmodified program on FlexSC-Threads. Sets the
 * environment that libflexsc-threads.so reads and becomes the program, so
 * signals and exit status are the program's own. Where the library cannot
 * work the program runs as if without `flexsc run`.
 */
#include "bench/loops.h"
#include "cli/commands.h"
#include "cli/program.h"
#include "cli/run.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIBRARY "libflexsc-threads.so"
#define NO_RSEQ "glibc.pthread.rseq=0"

enum {
	MAX_CORES = 1024,
	NOT_STARTED = 126, /* as env(1) */
	NOT_FOUND = 127,
	ARCH_SHSTK_STATUS = 0x5005, /* of arch_prctl(2), Linux 6.6 */
	SHADOW_STACK = 1,
};

struct run {
	const char *engine, *cores, *stats;
	bool quiet, verbose, no_inherit;
	char **program; /* with its arguments */
};

/* The library, and whether it can work -------------------------------------- */

/* A build tree has its own, and its `flexsc` takes that one. */
static bool find_library(char *path)
{
	char self[PATH_MAX] = "";
	size_t build = strlen(FLEXSC_BUILD "/");

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0 &&
	    strncmp(self, FLEXSC_BUILD "/", build) == 0)
		snprintf(path, PATH_MAX, "%s", FLEXSC_BUILD "/src/" LIBRARY);
	else
		snprintf(path, PATH_MAX, "%s", FLEXSC_LIBDIR "/" LIBRARY);
	return access(path, R_OK) == 0;
}

static bool shadow_stacks_are_active(void)
{
#ifdef __x86_64__
	unsigned long features = 0;

	return syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS, &features) == 0 &&
	       (features & SHADOW_STACK);
#else
	return false;
#endif
}

/* Returns whether the program gets the library; if not, says why. */
static bool can_work(const struct run *r, char *library)
{
	char why[2 * PATH_MAX];

	if (!find_library(library))
		snprintf(why, sizeof(why), "%s is missing", library);
	else if (strpbrk(library, ": "))
		snprintf(why, sizeof(why),
			 "%s has a blank or a colon in its path, which "
			 "LD_PRELOAD cannot express",
			 library);
	else if (shadow_stacks_are_active())
		snprintf(why, sizeof(why),
			 "shadow stacks are active, which forbid switching "
			 "between user threads");
	else if (!program_obstacle(r->program[0], why, sizeof(why)))
		return true;
	if (!r->quiet)
		fprintf(stderr, "flexsc run: %s; running without it\n", why);
	return false;
}

/* The environment ------------------------------------------------------------ */

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1) < 0) {
		fprintf(stderr, "flexsc run: %s\n", strerror(errno));
		exit(NOT_STARTED);
	}
}

/* Puts a value before or after those in a list with colons, unless the list
 * has it there already. */
static void add(const char *name, const char *value, bool first)
{
	const char *old = getenv(name);
	size_t length = old ? strlen(old) : 0, own = strlen(value);
	const char *place = first || length < own ? old : old + length - own;
	char *list;

	if (!length) {
		set(name, value);
		return;
	}
	if (strncmp(place, value, own) == 0 &&
	    (first ? strchr(": ", place[own]) != NULL :
		     place == old || place[-1] == ':'))
		return;
	if (asprintf(&list, "%s:%s", first ? value : old, first ? old : value) <
	    0) {
		fprintf(stderr, "flexsc run: out of memory\n");
		exit(NOT_STARTED);
	}
	set(name, list);
	free(list);
}

/* The program may change its directory before the file is written. */
static void set_stats(const char *file)
{
	char path[PATH_MAX], *here = NULL;

	if (*file != '/')
		here = getcwd(NULL, 0);
	snprintf(path, sizeof(path), "%s%s%s", here ? here : "",
		 here ? "/" : "", file);
	set("FLEXSC_STATS", path);
	free(here);
}

static void prepare(const struct run *r, const char *library)
{
	char pid[16];

	add("LD_PRELOAD", library, true);
	add("GLIBC_TUNABLES", NO_RSEQ, false);
	/* It would end programs that were built with it. */
	add("ASAN_OPTIONS", "verify_asan_link_order=0", false);
	if (r->engine)
		set("FLEXSC_ENGINE", r->engine);
	if (r->cores)
		set("FLEXSC_CORES", r->cores);
	if (r->stats)
		set_stats(r->stats);
	if (r->quiet)
		set("FLEXSC_QUIET", "1");
	if (r->verbose)
		set("FLEXSC_VERBOSE", "1");
	if (r->no_inherit) {
		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		set("FLEXSC_PROCESS", pid);
	}
}

/* The command ---------------------------------------------------------------- */

void run_prepare(char **program, bool quiet)
{
	struct run r = { .program = program, .quiet = quiet };
	char library[PATH_MAX];

	if (can_work(&r, library))
		prepare(&r, library);
}

static const struct argp_option option_list[] = {
	{ "engine", 'e', "ENGINE", 0, "Carry out system calls with this engine",
	  0 },
	{ "cores", 'c', "N", 0,
	  "Run user threads on N processors; all that are allowed by default",
	  0 },
	{ "stats", 's', "FILE", 0, "Write counters there at exit, as JSON", 0 },
	{ "quiet", 'q', NULL, 0,
	  "Say nothing when the program runs without FlexSC-Threads", 0 },
	{ "verbose", 'v', NULL, 0,
	  "Say so when a process begins to run on FlexSC-Threads", 0 },
	{ "no-inherit", 'n', NULL, 0,
	  "Programs that this one starts run without FlexSC-Threads", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static void check_engine(const char *name, struct argp_state *state)
{
	if (strcmp(name, "auto") == 0)
		return;
	for (int i = 0; i < NR_ENGINES; i++)
		if (strcmp(name, engine_names[i]) == 0)
			return;
	argp_error(state, "there is no engine '%s'", name);
}

static void check_cores(const char *arg, struct argp_state *state)
{
	char *end;
	long n = strtol(arg, &end, 10);

	if (*end || n < 1 || n > MAX_CORES)
		argp_error(state, "'%s' is not a number of processors", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run *r = state->input;

	switch (key) {
	case 'e':
		check_engine(arg, state);
		r->engine = arg;
		return 0;
	case 'c':
		check_cores(arg, state);
		r->cores = arg;
		return 0;
	case 's':
		if (!*arg)
			argp_error(state, "--stats needs the name of a file");
		r->stats = arg;
		return 0;
	case 'q':
		r->quiet = true;
		return 0;
	case 'v':
		r->verbose = true;
		return 0;
	case 'n':
		r->no_inherit = true;
		return 0;
	case ARGP_KEY_ARG: /* all the rest is the program's */
		r->program = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which program?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[--] PROGRAM [ARGUMENT...]",
	.doc = "Run an unmodified program on FlexSC-Threads. Its signals and "
	       "its exit status are its own. flexsc-run(1) tells more.",
};

int run_main(int argc, char **argv)
{
	struct run r = { 0 };
	char library[PATH_MAX];

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &r);
	if (can_work(&r, library))
		prepare(&r, library);
	execvp(r.program[0], r.program);
	fprintf(stderr, "flexsc run: '%s': %s\n", r.program[0],
		strerror(errno));
	return errno == ENOENT ? NOT_FOUND : NOT_STARTED;
}
