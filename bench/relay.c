/* SPDX-License-Identifier: MIT */
/* Rows from a script; see bench/relay.h. */
#include "bench/relay.h"

#include "bench/child.h"
#include "bench/machine.h"
#include "bench/report.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
#define MAX_WORDS 64

#define MAX_METRICS 8

/* The figures of one case; [0] the rival, [1] FlexSC. */
struct metric {
	char name[32], unit[32];
	struct series of[2];
};

struct table {
	const char *bench;
	char label[64];
	char runners[2][32]; /* NPTL and FlexSC-Threads, unless it names them */
	double trip;
	unsigned int nr;
	struct metric metrics[MAX_METRICS];
};

static const char *text_of(struct json_object *line, const char *field)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(line, field, &value) && value ?
		       json_object_get_string(value) :
		       NULL;
}

static struct metric *metric_of(struct table *t, const char *name,
				const char *unit)
{
	struct metric *m;

	for (unsigned int i = 0; i < t->nr; i++)
		if (strcmp(t->metrics[i].name, name) == 0)
			return &t->metrics[i];
	if (t->nr == MAX_METRICS)
		return NULL;
	m = &t->metrics[t->nr++];
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->unit, sizeof(m->unit), "%s", unit);
	for (int i = 0; i < 2; i++)
		m->of[i] = (struct series){ .name = t->runners[i] };
	return m;
}

static void note_value(struct table *t, struct json_object *line)
{
	const char *name = text_of(line, "metric");
	const char *unit = text_of(line, "unit");
	const char *runner = text_of(line, "runner");
	const char *label = text_of(line, "case");
	struct metric *m;
	struct series *s;

	if (!name || !unit || !runner || !label)
		return;
	if (!t->nr) {
		snprintf(t->label, sizeof(t->label), "%s", label);
		report_progress("%s: %s", t->bench, label);
	}
	m = metric_of(t, name, unit);
	if (!m)
		return;
	s = &m->of[strcmp(runner, t->runners[1]) == 0];
	if (s->nr < BENCH_MAX_RUNS)
		s->samples[s->nr++] = json_object_get_double(
			json_object_object_get(line, "value"));
}

static void finish_case(struct table *t)
{
	for (unsigned int i = 0; i < t->nr; i++) {
		const struct metric *m = &t->metrics[i];
		struct report_row r = { .bench = t->bench,
					.label = t->label,
					.metric = m->name,
					.unit = m->unit,
					.roundtrip_ns = t->trip };

		if (m->of[1].nr)
			report_pair(r, &m->of[1], &m->of[0]);
		else
			report_pair(r, &m->of[0], NULL);
	}
	t->nr = 0;
	t->trip = cost_roundtrip_ns();
}

/* {"rival": ..., "contender": ...}: of the rows that follow. */
static void name_runners(struct table *t, struct json_object *line)
{
	static const char *const fields[] = { "rival", "contender" };

	for (int i = 0; i < 2; i++) {
		const char *name = text_of(line, fields[i]);

		snprintf(t->runners[i], sizeof(t->runners[i]), "%s",
			 name ? name : runner_names[i]);
	}
}

static void take_line(struct table *t, const char *text)
{
	struct json_object *line = json_tokener_parse(text);
	const char *note = text_of(line, "note");
	const char *now = text_of(line, "now");
	const char *verdict = text_of(line, "verdict");

	if (text_of(line, "rival"))
		name_runners(t, line);
	else if (now)
		report_progress("%s: %s", t->bench, now);
	else if (verdict)
		report_verdict(t->bench, verdict);
	else if (note)
		report_note(t->bench, "%s", note);
	else if (text_of(line, "done"))
		finish_case(t);
	else
		note_value(t, line);
	json_object_put(line);
}

/* Where it is installed, or in the source. */
static bool find_script(const char *name, char path[512])
{
	static const char *const places[] = { FLEXSC_SERVERS_INSTALLED,
					      FLEXSC_SERVERS_SOURCE };

	for (int i = 0; i < 2; i++) {
		snprintf(path, 512, "%s/%s", places[i], name);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

/* Return: its output, NULL if it could not be started; errno says why. */
static FILE *start(char *const *words, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	extern char **environ;
	int ends[2], bad;

	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	bad = posix_spawn(pid, PYTHON, &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!bad)
		return fdopen(ends[0], "re");
	close(ends[0]);
	errno = bad;
	return NULL;
}

int relay_script(const char *bench, const char *name,
		 const char *const *arguments)
{
	char path[512], self[512], line[4096];
	const char *words[MAX_WORDS] = { PYTHON, path, "--flexsc", self };
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct table t = { .bench = bench };
	int nr = 4, status;
	FILE *said;
	pid_t pid;

	if (!find_script(name, path) || n <= 0) {
		fprintf(stderr,
			"flexsc: servers/%s is not installed; "
			"run `make install`\n",
			name);
		return 1;
	}
	self[n] = 0;
	name_runners(&t, NULL);
	while (*arguments && nr < MAX_WORDS - 1)
		words[nr++] = *arguments++;
	t.trip = cost_roundtrip_ns();
	machine_unpin();
	said = start((char *const *)words, &pid);
	if (!said) {
		fprintf(stderr, "flexsc: " PYTHON ": %s\n", strerror(errno));
		return 1;
	}
	while (fgets(line, sizeof(line), said))
		take_line(&t, line);
	fclose(said);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status != 0;
}
