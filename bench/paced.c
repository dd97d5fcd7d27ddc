/* SPDX-License-Identifier: MIT */
/*
 * The client as a program of its own, for measurements whose server this
 * program does not start: `flexsc bench --workload client PORT CONNECTIONS
 * RATE SECONDS PATH`.
 */
#include "bench/child.h"
#include "bench/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int client_main(int argc, char **argv)
{
	char message[512];
	struct client_job job = { .message = message, .warm_ns = 200000000 };
	struct client_says warm, end;
	int report[2], bad;
	double seconds;

	if (argc != 5 || pipe(report))
		return 64;
	job.message_size = (size_t)snprintf(
		message, sizeof(message),
		"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", argv[4]);
	job.server.port = (uint16_t)atoi(argv[0]);
	job.nr_connections = (unsigned int)atoi(argv[1]);
	job.rate = atof(argv[2]);
	seconds = atof(argv[3]);
	job.measure_ns = (uint64_t)(seconds * 1e9);
	job.report = report[1];
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
