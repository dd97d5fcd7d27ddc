/* SPDX-License-Identifier: MIT */
/*
 * The client as a program of its own, for measurements whose server this
 * program does not start: `flexsc bench --workload client PORT CONNECTIONS
 * RATE SECONDS PATH`. In place of a path to get, @FILE: messages, each behind
 * a line "KIND SIZE".
 */
#include "bench/child.h"
#include "bench/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MAX 65536

/* 1: there was one; 0: the end; or -errno. */
static int read_message(FILE *from, struct client_message *m)
{
	char *text;
	int nr = fscanf(from, "%u %zu", &m->kind, &m->size);

	if (nr == EOF)
		return 0;
	if (nr != 2 || getc(from) != '\n' || m->kind >= CLIENT_KINDS ||
	    m->size > MESSAGE_MAX)
		return -EINVAL;
	text = malloc(m->size);
	if (!text)
		return -ENOMEM;
	m->text = text;
	return fread(text, m->size, 1, from) == 1 ? 1 : -EINVAL;
}

/* They live as long as the program. */
static int read_messages(struct client_job *job, const char *path)
{
	FILE *from = fopen(path, "re");
	struct client_message *all = NULL;
	int more = from ? 1 : -errno;

	while (more > 0) {
		struct client_message *longer =
			realloc(all, (job->nr_messages + 1) * sizeof(*all));

		if (!longer) {
			more = -ENOMEM;
			break;
		}
		all = longer;
		more = read_message(from, &all[job->nr_messages]);
		job->nr_messages += more > 0;
	}
	job->messages = all;
	if (from)
		fclose(from);
	return more ? more : job->nr_messages ? 0 : -EINVAL;
}

int client_main(int argc, char **argv)
{
	char text[512];
	struct client_message get = { .text = text };
	struct client_job job = { .messages = &get, .warm_ns = 200000000 };
	struct client_says warm, end;
	int report[2], bad = 0;
	double seconds;

	if (argc != 5 || pipe(report))
		return 64;
	if (argv[4][0] == '@') {
		bad = read_messages(&job, argv[4] + 1);
	} else {
		get.size = (size_t)snprintf(
			text, sizeof(text),
			"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", argv[4]);
		job.nr_messages = 1;
	}
	job.server.port = (uint16_t)atoi(argv[0]);
	job.nr_connections = (unsigned int)atoi(argv[1]);
	job.rate = atof(argv[2]);
	seconds = atof(argv[3]);
	job.measure_ns = (uint64_t)(seconds * 1e9);
	job.report = report[1];
	if (!bad)
		bad = client_run(&job);
	if (bad || read(report[0], &warm, sizeof(warm)) != sizeof(warm) ||
	    read(report[0], &end, sizeof(end)) != sizeof(end)) {
		fprintf(stderr, "flexsc: client: %s\n", strerror(-bad));
		return 1;
	}
	workload_say("requests", (double)end.nr_answers);
	workload_say("rate", (double)(end.nr_answers - warm.nr_answers) * 1e9 /
				     (double)(end.ns - warm.ns));
	workload_say("p50_us", end.p50_us);
	workload_say("p99_us", end.p99_us);
	return 0;
}
