/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `servers`: the distribution's Apache and MariaDB, as they are, on
 * NPTL and under FlexSC-Threads; or one that is driven by libflexsc (ports/),
 * beside the original. Scripts of scripts/servers start and drive them.
 */
#include "bench/bench.h"
#include "bench/relay.h"
#include "bench/report.h"

#include <stdio.h>

static int run(const struct bench_options *o)
{
	char runs[16];
	const char *arguments[6] = { "--runs", runs };
	int nr = 2;

	snprintf(runs, sizeof(runs), "%u", o->runs);
	if (o->quick)
		arguments[nr++] = "--quick";
	if (o->server) {
		if (o->engine) {
			arguments[nr++] = "--engine";
			arguments[nr++] = o->engine;
		}
		report_progress("servers: building the module for nginx");
		return relay_script("servers", "measure_nginx.py", arguments);
	}
	report_progress("servers: making a database");
	return relay_script("servers", "measure.py", arguments);
}

const struct bench bench_servers = {
	.name = "servers",
	.summary = "unmodified Apache and MariaDB: NPTL and FlexSC-Threads",
	.cases = "server / connections; 70 % load: of what NPTL can do",
	.run = run,
};
