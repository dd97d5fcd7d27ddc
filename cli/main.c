/* SPDX-License-Identifier: MIT */
/*
 * The `flexsc` command: finds the subcommand and hands over. Options of a
 * subcommand are its own business.
 */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include <flexsc.h>

static const struct command {
	const char *name, *summary;
	int (*main)(int argc, char **argv);
} commands[] = {
	{ "doctor", "what FlexSC can use on this machine, and what it costs",
	  doctor_main },
	{ "run", "run an unmodified program on FlexSC-Threads", run_main },
	{ "stat", "what a process that uses FlexSC is doing", stat_main },
	{ "top", "the same, live, for all of them", top_main },
	{ "trace", "the system calls of a program, as they happen", trace_main },
	{ "compare", "run your server with and without FlexSC, and compare",
	  compare_main },
	{ "bench", "measure FlexSC beside its rivals", bench_main },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help(FILE *out)
{
	fprintf(out, "Usage: flexsc COMMAND [OPTION...]\n"
		     "\n"
		     "Asynchronous system calls without exceptions.\n"
		     "\n"
		     "Commands:\n");
	for (unsigned int i = 0; i < NR_COMMANDS; i++)
		fprintf(out, "  %-8s  %s\n", commands[i].name,
			commands[i].summary);
	fprintf(out, "\n"
		     "Start with `flexsc doctor`. Each command has --help; "
		     "flexsc(1) tells more.\n"
		     "\n"
		     "  --help, --version\n");
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	char title[64];

	for (unsigned int i = 0; i < NR_COMMANDS; i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		snprintf(title, sizeof(title), "flexsc %s", name);
		argv[1] = title;
		return commands[i].main(argc - 1, argv + 1);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0) {
		help(stdout);
		return 0;
	}
	if (strcmp(name, "--version") == 0) {
		printf("flexsc %s\n", flexsc_version());
		return 0;
	}
	if (*name)
		fprintf(stderr, "flexsc: there is no command '%s'\n\n", name);
	help(stderr);
	return 64;
}
