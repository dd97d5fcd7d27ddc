/* SPDX-License-Identifier: MIT */
/* What /proc says; see cli/proc.h. */
#include "cli/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PATH = 64,
	STAT = 1024,
	/* Fields of stat behind the name, which may have blanks: proc(5). */
	STATE = 0,
	PARENT = 1,
	USER_TIME = 11,
	SYSTEM_TIME = 12,
	START = 19,
	NR_THREADS = 17,
	EXIT_CODE = 49
};

static FILE *open_of(pid_t pid, pid_t tid, const char *name)
{
	char path[PATH];

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid,
			 (int)tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

/* The field of that number behind the name; empty if there is none. */
static const char *stat_field(pid_t pid, pid_t tid, int number, char line[STAT])
{
	FILE *in = open_of(pid, tid, "stat");
	const char *at = NULL;

	if (!in)
		return "";
	if (fgets(line, STAT, in))
		at = strrchr(line, ')');
	fclose(in);
	if (!at || !at[1])
		return "";
	for (at += 2; number && *at; at++)
		number -= *at == ' ';
	return at;
}

uint64_t proc_start(pid_t pid)
{
	char line[STAT];

	return strtoull(stat_field(pid, 0, START, line), NULL, 10);
}

pid_t proc_parent(pid_t pid)
{
	char line[STAT];

	return (pid_t)atoi(stat_field(pid, 0, PARENT, line));
}

bool proc_ended(pid_t pid, int *status)
{
	char line[STAT];

	/* The first thread may have ended before the others. */
	if (*stat_field(pid, 0, STATE, line) != 'Z' ||
	    atoi(stat_field(pid, 0, NR_THREADS, line)) > 1)
		return false;
	*status = atoi(stat_field(pid, 0, EXIT_CODE, line));
	return true;
}

bool proc_may_read(pid_t pid)
{
	FILE *in = open_of(pid, 0, "maps");

	if (in)
		fclose(in);
	return in;
}

bool proc_has_variable(pid_t pid, const char *name, const char *part)
{
	FILE *in = open_of(pid, 0, "environ");
	size_t size = 0, length = strlen(name);
	char *text = NULL;
	bool found = false;

	while (in && !found && getdelim(&text, &size, '\0', in) > 0)
		found = strncmp(text, name, length) == 0 &&
			text[length] == '=' && strstr(text + length, part);
	free(text);
	if (in)
		fclose(in);
	return found;
}

void proc_thread(pid_t pid, pid_t tid, char *state, uint64_t *cpu_ns)
{
	char line[STAT];
	const char *user = stat_field(pid, tid, USER_TIME, line), *system;
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	*state = '?';
	*cpu_ns = 0;
	if (!tid || !*user)
		return;
	system = strchr(user, ' ');
	*cpu_ns = (strtoull(user, NULL, 10) +
		   (system ? strtoull(system, NULL, 10) : 0)) *
		  tick_ns;
	*state = strrchr(line, ')')[2];
}

void proc_name(pid_t pid, pid_t tid, char *name, size_t size)
{
	FILE *in = open_of(pid, tid, "comm");

	name[0] = '\0';
	if (!in)
		return;
	if (fgets(name, (int)size, in))
		name[strcspn(name, "\n")] = '\0';
	fclose(in);
	/* It is shown on terminals. */
	for (; *name; name++)
		if (!isprint((unsigned char)*name))
			*name = '?';
}

bool proc_filtered(pid_t pid)
{
	FILE *in = open_of(pid, 0, "status");
	bool filtered = false;
	char line[STAT];

	while (in && fgets(line, sizeof(line), in))
		if (strncmp(line, "Seccomp:", 8) == 0)
			filtered = atoi(line + 8);
	if (in)
		fclose(in);
	return filtered;
}

bool proc_maps_library(pid_t pid, const char *name)
{
	FILE *in = open_of(pid, 0, "maps");
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	while (in && !found && getline(&line, &size, in) > 0)
		found = strstr(line, name);
	free(line);
	if (in)
		fclose(in);
	return found;
}

/* Of NSpid in status: how many levels below ours, and the id in the last. */
static unsigned int levels(pid_t pid, pid_t tid, pid_t *last)
{
	FILE *in = open_of(pid, tid, "status");
	unsigned int nr = 0;
	char line[STAT], *at, *end;

	*last = tid ? tid : pid;
	while (in && fgets(line, sizeof(line), in)) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		for (at = line + 6;; at = end) {
			long id = strtol(at, &end, 10);

			if (end == at)
				break;
			*last = (pid_t)id;
			nr++;
		}
		break;
	}
	if (in)
		fclose(in);
	return nr;
}

pid_t proc_own_pid(pid_t pid)
{
	pid_t own;

	levels(pid, 0, &own);
	return own;
}

struct pair {
	pid_t there, here;
};

struct tids {
	pid_t pid;
	bool same;
	struct pair *pairs; /* by `there` */
	size_t nr;
};

static int by_there(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return (x->there > y->there) - (x->there < y->there);
}

struct tids *tids_new(pid_t pid)
{
	struct tids *tids = calloc(1, sizeof(*tids));
	pid_t own;

	if (!tids)
		return NULL;
	tids->pid = pid;
	tids->same = levels(pid, 0, &own) <= 1;
	return tids;
}

void tids_free(struct tids *tids)
{
	if (tids)
		free(tids->pairs);
	free(tids);
}

void tids_renew(struct tids *tids)
{
	char path[PATH];
	struct dirent *entry;
	struct pair *grown;
	DIR *folder;

	tids->nr = 0;
	if (tids->same)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)tids->pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		pid_t here = (pid_t)atoi(entry->d_name), there;

		if (!here)
			continue;
		levels(tids->pid, here, &there);
		grown = reallocarray(tids->pairs, tids->nr + 1, sizeof(*grown));
		if (!grown)
			break;
		tids->pairs = grown;
		tids->pairs[tids->nr++] = (struct pair){ there, here };
	}
	if (folder)
		closedir(folder);
	if (tids->nr)
		qsort(tids->pairs, tids->nr, sizeof(*tids->pairs), by_there);
}

pid_t tids_here(struct tids *tids, pid_t there)
{
	struct pair key = { .there = there }, *found;

	if (tids->same)
		return there;
	if (!tids->nr)
		return 0;
	found = bsearch(&key, tids->pairs, tids->nr, sizeof(key), by_there);
	return found ? found->here : 0;
}
