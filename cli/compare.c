/* SPDX-License-Identifier: MIT */
/*
 * `flexsc compare`: a server of the user's own, as it is and under `flexsc run`,
 * under the user's own load. scripts/servers/compare.py starts and drives it;
 * the table, the JSON lines and the picture are those of `flexsc bench`.
 */
#include "bench/bench.h"
#include "bench/relay.h"
#include "bench/report.h"
#include "cli/commands.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_RUNS = 100,
	MAX_WORDS = 48
};

struct compare {
	struct bench_options options;
	const char *load, *ready, *ready_cmd, *cores, *wait;
	char **server;
	int nr_server;
};

static const struct argp_option argp_options[] = {
	{ "cores", 'c', "N", 0, "Under flexsc run, on N processors", 0 },
	{ "engine", 'e', "ENGINE", 0, "Under flexsc run, with this engine", 0 },
	{ "json", 'j', NULL, 0, "Rows and verdict as JSON objects, one a line",
	  0 },
	{ "load", 'l', "COMMAND", 0,
	  "What to drive the server with, for a shell; needed", 0 },
	{ "plot", 'p', "FILE.svg", 0, "Draw a picture, too", 0 },
	{ "ready", 'r', "PORT", 0, "The server is ready when it accepts there",
	  0 },
	{ "ready-cmd", 'R', "COMMAND", 0,
	  "The server is ready when this command succeeds", 0 },
	{ "runs", 'n', "N", 0, "Turns of both (5; fewer prove nothing)", 0 },
	{ "wait", 'w', "SECONDS", 0,
	  "How long it may take to start, or to end (60)", 0 },
	{ 0 }
};

static error_t parse_number(const char *arg, long most,
			    struct argp_state *state)
{
	char *end;
	long value = strtol(arg, &end, 10);

	if (*end || value < 1 || value > most)
		argp_error(state, "'%s' is not a number from 1 to %ld", arg,
			   most);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct compare *c = state->input;

	switch (key) {
	case 'c':
		c->cores = arg;
		return parse_number(arg, 1024, state);
	case 'e':
		c->options.engine = arg;
		return 0;
	case 'j':
		c->options.json = true;
		return 0;
	case 'l':
		c->load = arg;
		return 0;
	case 'p':
		c->options.plot = arg;
		return 0;
	case 'r':
		c->ready = arg;
		return parse_number(arg, 65535, state);
	case 'R':
		c->ready_cmd = arg;
		return 0;
	case 'n':
		c->options.runs = (unsigned int)atoi(arg);
		return parse_number(arg, MAX_RUNS, state);
	case 'w':
		c->wait = arg;
		return parse_number(arg, 86400, state);
	case ARGP_KEY_ARGS:
		c->server = state->argv + state->next;
		c->nr_server = state->argc - state->next;
		return 0;
	case ARGP_KEY_END:
		if (!c->nr_server)
			argp_error(
				state,
				"which server? flexsc compare --load COMMAND "
				"-- SERVER ARGUMENT...");
		if (!c->load)
			argp_error(state,
				   "--load says what to drive the server with");
		if (c->ready && c->ready_cmd)
			argp_error(state,
				   "--ready and --ready-cmd are two ways");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "[--] SERVER [ARGUMENT...]",
	.doc = "Run a server as it is and on FlexSC-Threads, in turns, under a load of "
	       "your own, and compare."
	       "\v"
	       "Each turn starts the server, runs the load once, and ends the server "
	       "by SIGTERM. What wrk, ab, hey, sysbench, memtier_benchmark and pgbench "
	       "print is understood; with another load a run of it is the unit. "
	       "Example:\n"
	       "  flexsc compare --load 'wrk --latency -c 64 http://127.0.0.1:8080/' "
	       "--ready 8080 -- ./server --port 8080",
};

static void add(const char **words, int *nr, const char *option,
		const char *value)
{
	if (!value || *nr > MAX_WORDS - 3)
		return;
	words[(*nr)++] = option;
	words[(*nr)++] = value;
}

int compare_main(int argc, char **argv)
{
	struct compare c = { .options = { .runs = 5 } };
	const char *words[MAX_WORDS + 1] = { NULL };
	char runs[16];
	int nr = 0, status;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &c);
	if (c.nr_server > MAX_WORDS / 2) {
		fprintf(stderr,
			"flexsc compare: put so long a command into a script\n");
		return 64;
	}
	snprintf(runs, sizeof(runs), "%u", c.options.runs);
	add(words, &nr, "--runs", runs);
	add(words, &nr, "--load", c.load);
	add(words, &nr, "--ready", c.ready);
	add(words, &nr, "--ready-cmd", c.ready_cmd);
	add(words, &nr, "--cores", c.cores);
	add(words, &nr, "--engine", c.options.engine);
	add(words, &nr, "--wait", c.wait);
	words[nr++] = "--";
	for (int i = 0; i < c.nr_server; i++)
		words[nr++] = c.server[i];
	words[nr] = NULL;
	status = report_begin(&c.options,
			      "program; ratio: FlexSC-Threads / as it is");
	if (!status)
		status = relay_script("compare", "compare.py", words);
	return report_end() | status;
}
