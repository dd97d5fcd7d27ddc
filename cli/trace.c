/* SPDX-License-Identifier: MIT */
/*
 * `flexsc trace`: the system calls of a program as strace(1) shows them, from
 * what the program itself records. It is not stopped for that, and never waits;
 * what it records faster than can be read is lost, and counted.
 */
#include "cli/commands.h"
#include "cli/observe.h"
#include "cli/run.h"
#include "cli/trace_show.h"
#include "cli/trace_source.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_PIDS = 64,
	LOOK_NS = 4000000,
	NOT_STARTED = 126, /* as env(1) */
	NOT_FOUND = 127,
};

struct options {
	struct trace_style style;
	const char *file;
	bool follow, quiet;
	pid_t pid[MAX_PIDS];
	unsigned int nr_pids;
	char **program;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* Options --------------------------------------------------------------------------- */

static const struct argp_option option_list[] = {
	{ "attach", 'p', "PID", 0, "Trace this process; may be repeated", 0 },
	{ "follow-forks", 'f', NULL, 0, "Trace children, too", 0 },
	{ "expr", 'e', "EXPR", 0,
	  "Only these: trace=read,write, trace=%network, trace=!close, "
	  "status=failed, signal=!SIGCHLD",
	  0 },
	{ "summary-only", 'c', NULL, 0, "Count calls and time, in a table", 0 },
	{ "summary", 'C', NULL, 0, "The same, and the calls as well", 0 },
	{ "absolute-timestamps", 't', NULL, 0,
	  "Time of day; -tt with microseconds, -ttt since 1970", 1 },
	{ "relative-timestamps", 'r', NULL, 0, "Time since the line before",
	  1 },
	{ "syscall-times", 'T', NULL, 0, "Time that passed in each call", 1 },
	{ "output", 'o', "FILE", 0, "Write it there, not to standard error",
	  1 },
	{ "string-limit", 's', "BYTES", 0, "Show so much of buffers (32)", 1 },
	{ "columns", 'a', "COLUMN", 0, "Results begin there (40)", 1 },
	{ "successful-only", 'z', NULL, 0, "Only calls that succeeded", 1 },
	{ "failed-only", 'Z', NULL, 0, "Only calls that failed", 1 },
	{ "quiet", 'q', NULL, 0, "Without remarks of its own", 1 },
	{ 0 }
};

static unsigned long number(struct argp_state *state, const char *arg,
			    unsigned long most)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10);

	if (*end || !*arg || *arg == '-' || n > most)
		argp_error(state, "'%s' is no number from 0 to %lu", arg, most);
	return n;
}

static void add_pids(struct options *o, struct argp_state *state, char *list)
{
	char *rest = list, *word;

	while ((word = strsep(&rest, ", \t\n"))) {
		if (!*word)
			continue;
		if (o->nr_pids == MAX_PIDS)
			argp_error(state, "no more than %d processes",
				   MAX_PIDS);
		o->pid[o->nr_pids] = (pid_t)number(state, word, INT32_MAX);
		if (o->pid[o->nr_pids++] <= 0)
			argp_error(state, "'%s' is no process id", word);
	}
}

static error_t parse_style(int key, char *arg, struct argp_state *state)
{
	struct trace_style *style = &((struct options *)state->input)->style;

	switch (key) {
	case 'C':
	case 'c':
		style->table = true;
		style->lines = key == 'C';
		return 0;
	case 't':
		style->times += style->times < 3;
		return 0;
	case 'r':
		style->relative = true;
		return 0;
	case 'T':
		style->spent = true;
		return 0;
	case 's':
		style->most_bytes = number(state, arg, FLEXSC_TRACE_MAX_BYTES);
		return 0;
	case 'a':
		style->column = (unsigned int)number(state, arg, 1000);
		return 0;
	case 'z':
		style->filter.failed = false;
		return 0;
	case 'Z':
		style->filter.successful = false;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	char wrong[64];

	switch (key) {
	case 'p':
		add_pids(o, state, arg);
		return 0;
	case 'f':
		o->follow = true;
		return 0;
	case 'e':
		if (!trace_filter_parse(&o->style.filter, arg, wrong))
			argp_error(state,
				   "'%s' is no system call or signal, and "
				   "no set of them",
				   wrong);
		return 0;
	case 'o':
		o->file = arg;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case ARGP_KEY_ARG: /* all the rest is the program's */
		o->program = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!o->program && !o->nr_pids)
			argp_error(state, "which program, or process (-p)?");
		if (o->program && o->nr_pids)
			argp_error(state, "a program or a process, not both");
		return 0;
	default:
		return parse_style(key, arg, state);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "-p PID\nPROGRAM [ARGUMENT...]",
	.doc = "System calls of a program on FlexSC-Threads, or one that uses "
	       "libflexsc, in the form of strace(1).\v"
	       "The program records its calls itself: it is not stopped, and never "
	       "waits. Calls that the C library makes inside itself are not seen. "
	       "flexsc-trace(1) tells more.",
};

/* Starting a program ---------------------------------------------------------------- */

/* A program with libflexsc of its own is left as it is. */
static bool has_libflexsc(const char *name)
{
	char path[4096];
	const char *list = getenv("PATH");
	struct stat st;
	void *map;
	bool found;
	int fd = -1;

	if (strchr(name, '/') || !list)
		fd = open(name, O_RDONLY | O_CLOEXEC);
	while (fd < 0 && list && !strchr(name, '/')) {
		int length = (int)strcspn(list, ":");

		snprintf(path, sizeof(path), "%.*s/%s", length, list, name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		list += length;
		if (!*list++)
			break;
	}
	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size ||
	    (map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd,
			0)) == MAP_FAILED) {
		close(fd);
		return false;
	}
	found = memmem(map, (size_t)st.st_size, "libflexsc.so", 12);
	munmap(map, (size_t)st.st_size);
	close(fd);
	return found;
}

static void become(const struct options *o, struct trace_sources *sources,
		   const char *variable)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	trace_sources_mine(sources);
	if (!has_libflexsc(o->program[0]))
		run_prepare(o->program, o->quiet);
	setenv("FLEXSC_TRACE", variable, 1);
	execvp(o->program[0], o->program);
	fprintf(stderr, "flexsc trace: '%s': %s\n", o->program[0],
		strerror(errno));
	_exit(errno == ENOENT ? NOT_FOUND : NOT_STARTED);
}

/* Return: its pid; 0: it cannot be started, which has been said. */
static pid_t start(const struct options *o, struct trace_sources *sources)
{
	char variable[64];
	int bad = trace_sources_offer(sources, variable);
	pid_t pid;

	if (bad) {
		fprintf(stderr, "flexsc trace: %s\n", strerror(-bad));
		return 0;
	}
	pid = fork();
	if (pid == 0)
		become(o, sources, variable);
	if (pid < 0) {
		fprintf(stderr, "flexsc trace: %s\n", strerror(errno));
		return 0;
	}
	trace_sources_started(sources, pid);
	/* They are for the program, which is in the same group. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	return pid;
}

/* Attaching ----------------------------------------------------------------------------- */

/* Those that wait in a call already: it will be seen to end only. */
static void show_waiting(pid_t pid, struct trace_show *show)
{
	char why[OBSERVE_REASON];
	struct observed *observed = observe_new(pid, why);
	struct timespec now;
	struct look look;

	if (!observed)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (observe_look(observed, &look) == 0)
		for (unsigned int i = 0; i < look.nr_threads; i++) {
			const struct seen_thread *t = &look.threads[i];
			struct flexsc_trace_record r = {
				.size = sizeof(r),
				.kind = FLEXSC_TRACE_BEGIN,
				.nr = t->call.nr,
				.at_ns = (uint64_t)now.tv_sec * 1000000000 +
					 (uint64_t)now.tv_nsec,
			};

			if (!t->has_call || t->doing != DOING_PARKED)
				continue;
			memcpy(r.args, t->call.args, sizeof(r.args));
			trace_show_take(show, &r, pid, t->tid);
		}
	look_free(&look);
	observe_free(observed);
}

static bool attach(const struct options *o, struct trace_sources *sources,
		   struct trace_show *show)
{
	char why[OBSERVE_REASON];
	int bad;

	if (o->style.lines)
		trace_sources_share(sources);
	for (unsigned int i = 0; i < o->nr_pids; i++) {
		pid_t pid = o->pid[i];

		bad = trace_sources_attach(sources, pid);
		if (bad) {
			observe_free(observe_new(pid, why));
			fprintf(stderr, "flexsc trace: %d: %s\n", (int)pid,
				why);
			return false;
		}
		show_waiting(pid, show);
		if (!o->quiet)
			fprintf(stderr, "flexsc trace: process %d attached\n",
				(int)pid);
	}
	return true;
}

/* The work ------------------------------------------------------------------------------- */

struct work {
	struct trace_sources *sources;
	struct trace_show *show;
	pid_t started; /* 0: none */
	pid_t child; /* 0: none, or it has ended */
	int status;
	bool count;
	uint64_t lost, told_ns; /* how many were, as far as it was said; when */
};

static void see(const struct flexsc_trace_record *record, pid_t pid, pid_t tid,
		void *arg)
{
	struct work *w = arg;

	trace_show_take(w->show, record, pid, tid);
}

/* The one that was started is waited for: that says how it ended. */
static void ended(pid_t pid, int status, void *arg)
{
	struct work *w = arg;

	if (pid != w->started)
		trace_show_gone(w->show, pid, status);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void tell_lost(struct work *w, uint64_t lost)
{
	if (lost != w->lost)
		fprintf(stderr, "flexsc trace: %lu records were lost\n",
			lost - w->lost);
	w->lost = lost;
}

static unsigned int look(struct work *w)
{
	uint64_t until_ns = now_ns();
	unsigned int alive = trace_sources_read(w->sources, see, ended, w);
	uint64_t lost = trace_sources_lost(w->sources);

	trace_show_until(w->show, until_ns);
	if (lost != w->lost && until_ns - w->told_ns >= 1000000000) {
		tell_lost(w, lost);
		w->told_ns = until_ns;
	}
	return alive;
}

/* Counted there, and not here by their records. */
static void count(struct work *w)
{
	struct trace_count counts[FLEXSC_TRACE_CALLS];

	trace_sources_counts(w->sources, counts);
	for (unsigned int nr = 0; nr < FLEXSC_TRACE_CALLS; nr++)
		trace_show_counted(w->show, nr, counts[nr].calls,
				   counts[nr].errors, counts[nr].ns);
}

static void work(struct work *w, bool follow)
{
	const struct timespec between = { 0, LOOK_NS };
	pid_t child = w->child;
	unsigned int alive;
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	do {
		sigtimedwait(&wanted, NULL, &between);
		alive = look(w);
		if (!w->child || waitpid(child, &w->status, WNOHANG) != child)
			continue;
		/* What it did last is in the file. */
		w->child = 0;
		alive = look(w);
		trace_show_gone(w->show, child, w->status);
		trace_show_until(w->show, UINT64_MAX);
		if (!follow)
			break;
	} while (!stopped && (w->child || alive));
	look(w);
	trace_show_until(w->show, UINT64_MAX);
	if (w->count)
		count(w);
	trace_show_end(w->show);
	tell_lost(w, trace_sources_lost(w->sources));
	if (trace_sources_lapses(w->sources))
		fprintf(stderr, "flexsc trace: was stopped itself for so long "
				"that nothing was recorded meanwhile\n");
}

/* The program's end is ours. */
static int pass_on(int status)
{
	const struct rlimit none = { 0, 0 };

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static void want(struct trace_wish *wish, unsigned int nr)
{
	wish->calls[nr / 64] |= 1ull << nr % 64;
}

static void prepare(struct options *o, struct trace_wish *wish)
{
	struct sigaction action = { .sa_handler = stop };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	o->style.out = stderr;
	o->style.pid_always = o->file && o->follow;
	o->style.in_file = o->file;
	*wish = (struct trace_wish){
		.bytes = (uint32_t)o->style.most_bytes,
		.follow = o->follow,
		.count = !o->style.lines,
	};
	memcpy(wish->calls, o->style.filter.calls, sizeof(wish->calls));
	/* They say how children ended. */
	if (o->follow) {
		want(wish, SYS_wait4);
		want(wish, SYS_waitid);
	}
}

static int run(struct options *o, const struct trace_wish *wish)
{
	struct work w = { .sources = trace_sources_new(wish),
			  .count = wish->count };
	bool begun;

	w.show = trace_show_new(&o->style);
	if (!w.sources || !w.show) {
		fprintf(stderr, "flexsc trace: %s\n", strerror(ENOMEM));
		return NOT_STARTED;
	}
	if (!o->quiet)
		fprintf(stderr, "flexsc trace: calls that the C library makes "
				"inside itself are not seen\n");
	if (o->program)
		w.child = w.started = start(o, w.sources);
	begun = o->program ? w.child : attach(o, w.sources, w.show);
	if (begun) {
		work(&w, o->follow);
		if (o->program && !trace_sources_any(w.sources) && !o->quiet)
			fprintf(stderr,
				"flexsc trace: '%s' does not use "
				"FlexSC: nothing was seen\n",
				o->program[0]);
	}
	trace_show_free(w.show);
	trace_sources_free(w.sources);
	if (!begun)
		return o->program ? NOT_STARTED : 1;
	return o->program && !w.child ? pass_on(w.status) : 0;
}

int trace_main(int argc, char **argv)
{
	struct options o = {
		.style = { .most_bytes = 32, .column = 40, .lines = true }
	};
	struct trace_wish wish;

	trace_filter_all(&o.style.filter);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
	prepare(&o, &wish);
	if (o.file) {
		o.style.out = fopen(o.file, "we");
		if (!o.style.out) {
			fprintf(stderr, "flexsc trace: '%s': %s\n", o.file,
				strerror(errno));
			return NOT_STARTED;
		}
	}
	return run(&o, &wish);
}
