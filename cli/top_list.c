/* SPDX-License-Identifier: MIT */
/* The processes that `flexsc top` can show. */
#include "cli/stat.h"
#include "cli/top.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct candidate *c, const struct observed *observed,
		 const struct look *look)
{
	unsigned int nr[NR_DOINGS];
	struct sum sum;

	stat_sum(look, &sum);
	stat_doings(look, nr);
	c->pid = observed->pid;
	memcpy(c->name, observed->program, sizeof(c->name));
	c->nr_threads = look->nr_threads - nr[DOING_NOTHING];
	c->completed = sum.completed;
	c->at_ns = look->at_ns;
	c->calls = -1;
}

static int by_calls(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* False: it does not use FlexSC, or is not ours to look at. */
static bool look_at(pid_t pid, struct candidate *c)
{
	char why[OBSERVE_REASON];
	struct observed *observed = observe_new(pid, why);
	struct look look;
	bool good;

	if (!observed)
		return false;
	good = observe_look(observed, &look) == 0 &&
	       (look.has_threads || look.nr_calls);
	if (good)
		fill(c, observed, &look);
	look_free(&look);
	observe_free(observed);
	return good;
}

static void since(struct candidate *c, const struct candidate *before,
		  unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		if (before[i].pid == c->pid && c->at_ns > before[i].at_ns)
			c->calls = stat_rate(
				before[i].completed, c->completed,
				(double)(c->at_ns - before[i].at_ns) / 1e9);
}

unsigned int top_find(struct candidate **list, unsigned int nr)
{
	struct candidate *found = NULL, *grown, one;
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned int nr_found = 0;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid <= 0 || !look_at(pid, &one))
			continue;
		since(&one, *list, nr);
		grown = reallocarray(found, nr_found + 1, sizeof(*found));
		if (!grown)
			break;
		found = grown;
		found[nr_found++] = one;
	}
	if (proc)
		closedir(proc);
	if (nr_found)
		qsort(found, nr_found, sizeof(*found), by_calls);
	free(*list);
	*list = found;
	return nr_found;
}

void top_list(struct screen *s, const struct candidate *list, unsigned int nr,
	      unsigned int chosen)
{
	char calls[32];

	screen_line(s, ACCENT_TITLE, "Processes that use FlexSC: %u", nr);
	screen_line(s, ACCENT_NONE, "%s",
		    nr ? "" :
			 "None that you may look at. Start one: flexsc run -- "
			 "PROGRAM");
	if (!nr)
		return;
	screen_line(s, ACCENT_HEAD, "%8s %-16s %8s %14s", "PROCESS", "NAME",
		    "THREADS", "CALLS/S");
	for (unsigned int i = 0; i < nr; i++) {
		snprintf(calls, sizeof(calls), list[i].calls < 0 ? "-" : "%.0f",
			 list[i].calls);
		screen_line(s, i == chosen ? ACCENT_CHOSEN : ACCENT_NONE,
			    "%8d %-16s %8u %14s", (int)list[i].pid,
			    list[i].name, list[i].nr_threads, calls);
	}
}
