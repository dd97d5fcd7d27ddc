/* SPDX-License-Identifier: MIT */
/*
 * Loops on each engine that works here, and files to work on. An engine that
 * the library would replace by another one counts as not usable.
 */
#include "bench/loops.h"

#include "bench/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const engine_names[NR_ENGINES] = { "kmod",	  "kcore", "hybrid",
					       "uthread", "poll",  "uring",
					       "sync" };

bool engine_wanted(const char *only, int i)
{
	if (only)
		return strcmp(only, engine_names[i]) == 0;
	return strcmp(engine_names[i], "hybrid") != 0;
}

int loop_open(struct flexsc_loop **loop, const char *name)
{
	struct flexsc_options options = { .size = sizeof(options),
					  .engine = name };
	int bad = flexsc_loop_new(loop, &options);

	if (bad)
		return bad;
	if (strcmp(name, "auto") != 0 &&
	    strcmp(flexsc_loop_engine(*loop), name) != 0)
		return -ENOSYS;
	return 0;
}

unsigned int loops_open(struct engine_loop *loops, const char *only)
{
	unsigned int nr = 0;

	machine_pin(machine()->cpu_app);
	for (int i = 0; i < NR_ENGINES; i++) {
		struct flexsc_loop *loop = NULL;
		int bad;

		if (!engine_wanted(only, i))
			continue;
		bad = loop_open(&loop, engine_names[i]);
		if (!bad)
			loops[nr++] =
				(struct engine_loop){ engine_names[i], loop };
		else if (bad == -ENOSYS)
			flexsc_loop_free(loop);
	}
	return nr;
}

void loops_close(struct engine_loop *loops, unsigned int nr)
{
	while (nr--) {
		flexsc_loop_shutdown(loops[nr].loop);
		flexsc_loop_free(loops[nr].loop);
	}
}

void loop_finish(struct flexsc_loop *loop, const unsigned int *done,
		 unsigned int wanted)
{
	unsigned int begin = *done;

	while (*done - begin < wanted)
		if (flexsc_loop_poll(loop, -1) < 0)
			return;
}

/* What an interrupt has to remove; nothing here allocates or takes a lock. */
static struct scratch *to_remove;

static void interrupted(int signal_number)
{
	static const char *const prefixes[] = { "", "to" };
	char path[96];

	for (unsigned int i = 0; to_remove && i < 2 * to_remove->nr_files;
	     i++) {
		scratch_path(to_remove, prefixes[i % 2], i / 2, path,
			     sizeof(path));
		unlink(path);
	}
	if (to_remove)
		rmdir(to_remove->folder);
	/* Not before: timeout(1) sends it twice, and the second would end us. */
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void remove_when_interrupted(struct scratch *s)
{
	/* SIGPIPE: nobody reads the table any more, as with `| head`. */
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	struct sigaction action = { .sa_handler = interrupted }, before;

	to_remove = s;
	sigfillset(&action.sa_mask);
	for (unsigned int i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &before) == 0 &&
		    before.sa_handler != SIG_IGN) /* nohup */
			sigaction(ends[i], &action, NULL);
}

int scratch_new(struct scratch *s, unsigned int nr)
{
	static const char block[4096];
	const char *top = getenv("TMPDIR");

	/* A long one would not fit: paths are kept short. */
	if (!top || !*top || strlen(top) > 32)
		top = "/tmp";
	snprintf(s->folder, sizeof(s->folder), "%s/flexsc-bench.XXXXXX", top);
	if (!mkdtemp(s->folder))
		return -errno;
	s->nr_files = nr;
	remove_when_interrupted(s);
	for (unsigned int i = 0; i < nr; i++) {
		char path[96];
		int fd, bad = 0;

		scratch_path(s, "", i, path, sizeof(path));
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, block, sizeof(block)) < 0)
			bad = -errno;
		if (fd >= 0)
			close(fd);
		if (bad) {
			scratch_free(s);
			return bad;
		}
	}
	return 0;
}

void scratch_path(const struct scratch *s, const char *prefix, unsigned int i,
		  char *path, unsigned long size)
{
	snprintf(path, size, "%s/%s%u", s->folder, prefix, i);
}

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

void scratch_free(struct scratch *s)
{
	nftw(s->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	to_remove = NULL;
}

int scratch_open(struct scratch *s, int flags, char *path, unsigned long size)
{
	int bad = scratch_new(s, 1), fd;

	if (bad) {
		fprintf(stderr, "flexsc: cannot make files in /tmp: %s\n",
			strerror(-bad));
		return -1;
	}
	scratch_path(s, "", 0, path, size);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "flexsc: cannot open %s: %s\n", path,
			strerror(errno));
		scratch_free(s);
	}
	return fd;
}

void open_close_plain(const char *path)
{
	close(open(path, O_RDONLY | O_CLOEXEC));
}

void open_close_post(struct flexsc_event *ev, const char *path)
{
	flexsc_chain_begin();
	flexsc_open(NULL, path, O_RDONLY | O_CLOEXEC, 0);
	flexsc_close(ev, FLEXSC_RESULT(0));
	flexsc_chain_end();
}
