/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `servers`: the distribution's Apache and MariaDB, as they are, on
 * NPTL and under FlexSC-Threads. scripts/servers/measure.py starts and drives
 * them; its lines become rows here.
 */
#include "bench/child.h"
#include "bench/machine.h"
#include "bench/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_METRICS 8

/* The figures of one case; [0] NPTL, [1] FlexSC-Threads. */
struct metric {
	char name[32], unit[32];
	struct series of[2];
};

struct table {
	const struct bench_options *options;
	char label[64];
	double trip;
	unsigned int nr;
	struct metric metrics[MAX_METRICS];
};

static const char *text_of(struct json_object *line, const char *field)
{
	struct json_object *value = json_object_object_get(line, field);

	return value ? json_object_get_string(value) : NULL;
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
		m->of[i] = (struct series){ .name = runner_names[i] };
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
		report_progress("servers: %s", label);
	}
	m = metric_of(t, name, unit);
	if (!m)
		return;
	s = &m->of[strcmp(runner, runner_names[RUNNER_THREADS]) == 0];
	if (s->nr < BENCH_MAX_RUNS)
		s->samples[s->nr++] = json_object_get_double(
			json_object_object_get(line, "value"));
}

static void finish_case(struct table *t)
{
	for (unsigned int i = 0; i < t->nr; i++) {
		const struct metric *m = &t->metrics[i];
		struct report_row r = { .bench = "servers",
					.label = t->label,
					.metric = m->name,
					.unit = m->unit,
					.roundtrip_ns = t->trip };

		if (m->of[RUNNER_THREADS].nr)
			report_pair(r, &m->of[RUNNER_THREADS],
				    &m->of[RUNNER_NPTL]);
		else
			report_pair(r, &m->of[RUNNER_NPTL], NULL);
	}
	t->nr = 0;
	t->trip = cost_roundtrip_ns();
}

static void take_line(struct table *t, const char *text)
{
	struct json_object *line = json_tokener_parse(text);
	const char *note = text_of(line, "note");

	if (note)
		report_note("servers", "%s", note);
	else if (text_of(line, "done"))
		finish_case(t);
	else
		note_value(t, line);
	json_object_put(line);
}

static const char *script(void)
{
	static const char *const places[] = { FLEXSC_SERVERS_INSTALLED,
					      FLEXSC_SERVERS_SOURCE };

	for (int i = 0; i < 2; i++)
		if (access(places[i], R_OK) == 0)
			return places[i];
	return NULL;
}

static int run(const struct bench_options *o)
{
	static struct table t;
	const char *program = script();
	char self[512], command[1400], line[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *f;

	if (!program || n <= 0) {
		fprintf(stderr, "flexsc: servers/measure.py is not installed; "
				"run `make install`\n");
		return 1;
	}
	self[n] = 0;
	t.options = o;
	t.trip = cost_roundtrip_ns();
	snprintf(command, sizeof(command),
		 "exec /usr/bin/python3 '%s' --flexsc '%s' --runs %u%s",
		 program, self, o->runs, o->quick ? " --quick" : "");
	report_progress("servers: making a database");
	machine_unpin();
	f = popen(command, "re");
	if (!f) {
		fprintf(stderr, "flexsc: %s\n", strerror(errno));
		return 1;
	}
	while (fgets(line, sizeof(line), f))
		take_line(&t, line);
	return pclose(f) != 0;
}

const struct bench bench_servers = {
	.name = "servers",
	.summary = "unmodified Apache and MariaDB: NPTL and FlexSC-Threads",
	.cases = "server / connections; 70 % load: of what NPTL can do",
	.run = run,
};
