/* SPDX-License-Identifier: MIT */
/*
 * `flexsc doctor PID`: did it work? A preloaded library may fail to be loaded
 * without a word; here each process of a tree is asked, from outside.
 */
#include "cli/activation.h"

#include "cli/observe.h"
#include "cli/proc.h"
#include "cli/program.h"

#include <dirent.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libflexsc-threads"

enum {
	TEXT = 2 * PATH_MAX,
	MAX_DEPTH = 64
};

struct process {
	pid_t pid, parent;
};

struct tree {
	struct process *all;
	unsigned int nr;
	bool json;
};

/* What can be said of one --------------------------------------------------- */

enum verdict {
	ON_THREADS,
	ON_LOOPS, /* libflexsc, by itself */
	NOT_YET, /* the library is there and has nothing to do */
	DECLINED,
	NOT_LOADED,
	UNKNOWN
};

static const char *const verdict_names[] = {
	[ON_THREADS] = "FlexSC-Threads", [ON_LOOPS] = "libflexsc",
	[NOT_YET] = "no threads yet",	 [DECLINED] = "declined",
	[NOT_LOADED] = "not loaded",	 [UNKNOWN] = "unknown",
};

static const char *engine_of(const struct look *look)
{
	return look->nr_calls ? look->calls[0].counters.engine : "none";
}

static enum verdict of_look(const struct observed *observed,
			    const struct look *look, char *text)
{
	unsigned int kept = 0;

	if (*observed->declined) {
		snprintf(text, TEXT, "%s", observed->declined);
		return DECLINED;
	}
	if (!look->has_threads) {
		snprintf(text, TEXT, "engine %s, %u loops", engine_of(look),
			 look->nr_calls);
		return ON_LOOPS;
	}
	for (unsigned int i = 0; i < look->nr_threads; i++)
		kept += look->threads[i].doing == DOING_NOTHING;
	snprintf(text, TEXT, "engine %s, %u threads, %u carriers",
		 engine_of(look), look->nr_threads - kept, look->nr_carriers);
	return ON_THREADS;
}

/* It is not there: was it to be, and what was in the way? */
static enum verdict of_program(pid_t pid, char *text)
{
	char path[64], why[TEXT];

	if (!proc_has_variable(pid, "LD_PRELOAD", LIBRARY)) {
		snprintf(text, TEXT,
			 "its environment does not ask for it: not started "
			 "by flexsc run, or with --no-inherit, or what "
			 "started it has cleared the environment");
		return NOT_LOADED;
	}
	/* Says "/proc/PID/exe is ..." */
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (program_obstacle(path, why, TEXT))
		snprintf(text, TEXT, "it%.*s", TEXT - 3,
			 strncmp(why, path, strlen(path)) == 0 ?
				 why + strlen(path) :
				 why);
	else
		snprintf(text, TEXT,
			 "its environment asks for it, the loader has not "
			 "put it in place; what it said is on its standard "
			 "error");
	return NOT_LOADED;
}

static enum verdict judge(pid_t pid, char text[TEXT])
{
	char why[OBSERVE_REASON];
	struct observed *observed = observe_new(pid, why);
	enum verdict verdict = UNKNOWN;
	struct look look;

	snprintf(text, TEXT, "%s", why);
	if (observed) {
		if (observe_look(observed, &look) == 0)
			verdict = of_look(observed, &look, text);
		look_free(&look);
		observe_free(observed);
	} else if (!proc_may_read(pid)) {
		verdict = UNKNOWN;
	} else if (proc_maps_library(pid, LIBRARY)) {
		snprintf(text, TEXT,
			 "it begins with the first thread that is made");
		verdict = NOT_YET;
	} else {
		verdict = of_program(pid, text);
	}
	return verdict;
}

/* The tree -------------------------------------------------------------------- */

static void read_processes(struct tree *tree)
{
	DIR *proc = opendir("/proc");
	struct process *grown;
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid <= 0)
			continue;
		grown = reallocarray(tree->all, tree->nr + 1, sizeof(*grown));
		if (!grown)
			break;
		tree->all = grown;
		tree->all[tree->nr++] =
			(struct process){ pid, proc_parent(pid) };
	}
	if (proc)
		closedir(proc);
}

static void print(const struct tree *tree, pid_t pid, int depth)
{
	enum verdict verdict;
	struct json_object *o;
	char name[16], text[TEXT];

	proc_name(pid, 0, name, sizeof(name));
	verdict = judge(pid, text);
	if (!tree->json) {
		printf("%*s%d %s: %s: %s\n", 2 * depth, "", (int)pid, name,
		       verdict_names[verdict], text);
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "pid", json_object_new_int(pid));
	json_object_object_add(o, "parent",
			       json_object_new_int(proc_parent(pid)));
	json_object_object_add(o, "program", json_object_new_string(name));
	json_object_object_add(o, "state",
			       json_object_new_string(verdict_names[verdict]));
	json_object_object_add(o, "reason", json_object_new_string(text));
	printf("%s\n", json_object_to_json_string_ext(
			       o, JSON_C_TO_STRING_PLAIN |
					  JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

static void walk(const struct tree *tree, pid_t pid, int depth)
{
	print(tree, pid, depth);
	for (unsigned int i = 0; depth < MAX_DEPTH && i < tree->nr; i++)
		if (tree->all[i].parent == pid)
			walk(tree, tree->all[i].pid, depth + 1);
}

int activation_print(pid_t pid, bool json)
{
	struct tree tree = { .json = json };

	if (!proc_start(pid)) {
		fprintf(stderr, "flexsc doctor: %d: there is no such process\n",
			(int)pid);
		return 1;
	}
	read_processes(&tree);
	walk(&tree, pid, 0);
	free(tree.all);
	return 0;
}
