/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `servers`: the distribution's Apache and MariaDB, as they are, on
 * NPTL and under FlexSC-Threads; or one that is driven by libflexsc (ports/),
 * beside the original. Scripts of scripts/servers start and drive them.
 */
#include "bench/bench.h"
#include "bench/count.h"
#include "bench/relay.h"
#include "bench/report.h"

#include <stdio.h>

static int run(const struct bench_options *o)
{
	char runs[16];
	const char *arguments[9] = { "--runs", runs };
	int nr = 2;

	snprintf(runs, sizeof(runs), "%u", o->runs);
	if (o->quick)
		arguments[nr++] = "--quick";
	if (o->server) {
		arguments[nr++] = "--server";
		arguments[nr++] = o->server;
		if (!o->quick && count_possible())
			arguments[nr++] = "--count";
		if (o->engine) {
			arguments[nr++] = "--engine";
			arguments[nr++] = o->engine;
		}
		report_progress("servers: building what is measured");
		return relay_script("servers", "measure_ports.py", arguments);
	}
	report_progress("servers: making a database");
	return relay_script("servers", "measure.py", arguments);
}

const struct bench bench_servers = {
	.name = "servers",
	.summary = "unmodified Apache and MariaDB: NPTL and FlexSC-Threads",
	.cases = "server / connections; 70 % load: of what the original can do",
	.run = run,
};
