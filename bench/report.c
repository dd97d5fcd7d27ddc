/* SPDX-License-Identifier: MIT */
/*
 * Printing results as a table or as JSON lines; for a picture the same lines
 * go to plot.py. Holds the machine-wide lock of measurements, so that two do
 * not disturb each other.
 */
#include "bench/report.h"

#include "bench/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK "/tmp/flexsc-measure.lock"
#define PYTHON "/usr/bin/python3"
#define COLUMNS 80
#define CASE_WIDTH 25
#define ROW "%-25s %-7s %8s %-14s %8s %6s %6s"

static const struct bench_options *options;
static FILE *plot;
static bool progress_shown;
static char last_case[96], last_section[64];

bool report_lock(bool wait)
{
	int fd = open(LOCK, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fd = open(LOCK, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return true; /* not writable: nobody else can hold it */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true; /* held until we exit */
	if (!wait) {
		close(fd);
		return false;
	}
	fprintf(stderr, "flexsc: another measurement is running; waiting "
			"for it (" LOCK ")\n");
	return flock(fd, LOCK_EX) == 0;
}

static void progress_clear(void)
{
	if (progress_shown)
		fprintf(stderr, "\r\033[K");
	progress_shown = false;
}

static void print_json(struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(
		o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (options->json) {
		printf("%s\n", text);
		fflush(stdout);
	}
	if (plot)
		fprintf(plot, "%s\n", text);
	json_object_put(o);
}

static const char *plot_script(void)
{
	static const char *const places[] = { FLEXSC_PLOT_INSTALLED,
					      FLEXSC_PLOT_SOURCE };

	for (int i = 0; i < 2; i++)
		if (access(places[i], R_OK) == 0)
			return places[i];
	return NULL;
}

/* Before measuring for minutes: can it be drawn at all? */
static int plot_open(void)
{
	const char *script = plot_script();
	char command[1024];

	if (!script) {
		fprintf(stderr, "flexsc: plot.py is not installed; run "
				"`make install`, or leave out --plot\n");
		return 1;
	}
	setenv("FLEXSC_PLOT_FILE", options->plot, 1);
	snprintf(command, sizeof(command),
		 PYTHON " '%s' --check \"$FLEXSC_PLOT_FILE\"", script);
	if (system(command) != 0)
		return 1; /* it has said why */
	snprintf(command, sizeof(command), PYTHON " '%s' \"$FLEXSC_PLOT_FILE\"",
		 script);
	plot = popen(command, "we");
	if (!plot) {
		fprintf(stderr, "flexsc: cannot start %s: %s\n", PYTHON,
			strerror(errno));
		return 1;
	}
	return 0;
}

static void add_number(struct json_object *o, const char *name, double value)
{
	struct json_object *number = NULL;
	char text[32];

	if (isfinite(value)) {
		snprintf(text, sizeof(text), "%.6g", value);
		number = json_object_new_double_s(value, text);
	}
	json_object_object_add(o, name, number);
}

static void add_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name,
			       text ? json_object_new_string(text) : NULL);
}

void report_fold(const char *head, const char *text)
{
	int margin = (int)strlen(head), room = COLUMNS - 1 - margin;

	printf("%s", head);
	while ((int)strlen(text) > room) {
		int n = room;

		while (n > 1 && text[n] != ' ')
			n--;
		if (text[n] != ' ')
			n = room;
		printf("%.*s\n%*s", n, text, margin, "");
		text += n + (text[n] == ' ');
	}
	printf("%s\n", text);
}

static void print_facts(double trip, const char *cases)
{
	const struct machine *m = machine();
	char line[512];
	int used = snprintf(line, sizeof(line), "%s, %d CPUs, Linux %s", m->cpu,
			    m->nr_cpus, m->kernel);

	if (!isnan(trip))
		snprintf(line + used, sizeof(line) - (size_t)used,
			 ", cache line round trip %.0f ns", trip);
	report_fold("", line);
	report_fold("mitigations: ", m->mitigations);
	if (options->quick)
		printf("--quick: the figures mean nothing\n");
	else
		printf("Medians of %u turns; spread: largest less smallest, by "
		       "the median.\n",
		       options->runs);
	if (cases)
		report_fold("Cases: ", cases);
	printf("\n" ROW "\n", "case", "engine", "value", "rival", "value",
	       "ratio", "spread");
}

int report_begin(const struct bench_options *asked, const char *cases)
{
	struct json_object *facts;
	double trip;

	options = asked;
	if (options->plot && plot_open())
		return 1;
	if (!options->quick)
		report_lock(true);
	facts = machine_json();
	trip = cost_roundtrip_ns();
	machine_pin(machine()->cpu_app);
	add_number(facts, "roundtrip_ns", trip);
	json_object_object_add(facts, "quick",
			       json_object_new_boolean(options->quick));
	print_json(facts);
	if (!options->json)
		print_facts(trip, cases);
	fflush(stdout);
	return 0;
}

/* At most 8 characters, whatever the size. */
static const char *show(double value, char text[16])
{
	if (!isfinite(value))
		snprintf(text, 16, "-");
	else if (value == floor(value)) /* a count */
		snprintf(text, 16, "%.0f", value);
	else if (fabs(value) < 100)
		snprintf(text, 16, "%.2f", value);
	else
		snprintf(text, 16, "%.0f", value);
	return text;
}

static void print_text(const struct report_row *row, double ratio)
{
	char value[16], rival[16], quotient[16], spread[16], section[64];
	const char *label = row->label;
	char line[128];
	int end;

	progress_clear();
	snprintf(section, sizeof(section), "%s, %s", row->metric, row->unit);
	if (strcmp(section, last_section) != 0) {
		printf("\n%s\n", section);
		snprintf(last_section, sizeof(last_section), "%s", section);
		last_case[0] = 0;
	}
	if (strcmp(label, last_case) == 0)
		label = "";
	else
		snprintf(last_case, sizeof(last_case), "%s", label);
	if (strlen(label) > CASE_WIDTH) {
		printf("%s\n", label);
		label = "";
	}
	/* Beyond that it says one thing only. */
	if (row->spread > 9.99)
		snprintf(spread, sizeof(spread), ">999 %%");
	else
		snprintf(spread, sizeof(spread), "%.0f %%", row->spread * 100);
	end = snprintf(line, sizeof(line), ROW, label, row->engine,
		       show(row->value, value), row->rival ? row->rival : "",
		       row->rival ? show(row->rival_value, rival) : "",
		       row->rival ? show(ratio, quotient) : "",
		       row->runs > 1 ? spread : "");
	while (end > 0 && line[end - 1] == ' ')
		end--;
	printf("%.*s\n", end, line);
	fflush(stdout);
}

static void add_range(struct json_object *o, const char *low_name,
		      const char *high_name, double low, double high)
{
	bool known = low != 0 || high != 0;

	add_number(o, low_name, known ? low : NAN);
	add_number(o, high_name, known ? high : NAN);
}

void report_row(const struct report_row *row)
{
	double ratio = row->rival && isfinite(row->rival_value) ?
			       row->value / row->rival_value :
			       NAN;
	struct json_object *o;

	if (isnan(row->value))
		return;
	if (!options->json)
		print_text(row, ratio);
	o = json_object_new_object();
	add_text(o, "bench", row->bench);
	add_text(o, "case", row->label);
	add_text(o, "engine", row->engine);
	add_text(o, "metric", row->metric);
	add_text(o, "unit", row->unit);
	add_number(o, "value", row->value);
	add_text(o, "rival", row->rival);
	add_number(o, "rival_value", row->rival ? row->rival_value : NAN);
	add_number(o, "ratio", ratio);
	json_object_object_add(o, "runs", json_object_new_int((int)row->runs));
	add_number(o, "spread", row->spread);
	add_range(o, "low", "high", row->low, row->high);
	add_range(o, "rival_low", "rival_high", row->rival_low,
		  row->rival_high);
	add_number(o, "roundtrip_ns", row->roundtrip_ns);
	print_json(o);
}

void report_pair(struct report_row row, const struct series *s,
		 const struct series *rival)
{
	row.engine = s->name;
	row.value = series_median(s);
	row.spread = series_spread(s);
	row.runs = s->nr;
	series_range(s, &row.low, &row.high);
	if (rival) {
		row.rival = rival->name;
		row.rival_value = series_median(rival);
		series_range(rival, &row.rival_low, &row.rival_high);
	}
	report_row(&row);
}

static void say(const char *bench, const char *kind, const char *head,
		const char *text)
{
	struct json_object *o = json_object_new_object();

	progress_clear();
	if (!options->json)
		report_fold(head, text);
	add_text(o, "bench", bench);
	add_text(o, kind, text);
	print_json(o);
}

void report_note(const char *bench, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(bench, "note", "note: ", text);
}

void report_verdict(const char *bench, const char *sentence)
{
	say(bench, "verdict", "", sentence);
}

void report_progress(const char *format, ...)
{
	va_list args;

	if (!isatty(STDERR_FILENO))
		return;
	progress_clear();
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fflush(stderr);
	progress_shown = true;
}

int report_end(void)
{
	int status;

	progress_clear();
	if (!plot)
		return 0;
	status = pclose(plot);
	if (status)
		fprintf(stderr, "flexsc: drawing %s failed\n", options->plot);
	return status ? 1 : 0;
}
