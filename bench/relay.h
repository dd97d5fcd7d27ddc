/* SPDX-License-Identifier: MIT */
/*
 * A script of scripts/servers measures, its lines become rows: one JSON object
 * for each figure of each run ("case", "runner", "metric", "unit", "value"),
 * one that a case is over ("done"), notes ("note"), progress ("now").
 */
#ifndef BENCH_RELAY_H
#define BENCH_RELAY_H

/**
 * relay_script - run a script and report what it finds
 * @bench:     name of the rows
 * @name:      file name of the script
 * @arguments: behind its name and --flexsc, ends with NULL
 *
 * Return: an exit status; not 0 if the script ended with another one, or could
 * not be started, which has been said then.
 */
int relay_script(const char *bench, const char *name,
		 const char *const *arguments);

#endif /* BENCH_RELAY_H */
