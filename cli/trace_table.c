/* SPDX-License-Identifier: MIT */
/* Calls counted by number; see cli/trace_table.h. */
#include "cli/trace_table.h"

#include <stdlib.h>

#include <flexsc.h>

struct row {
	unsigned int nr;
	uint64_t calls, errors, ns;
};

struct trace_table {
	struct row row[FLEXSC_TRACE_CALLS];
};

struct trace_table *trace_table_new(void)
{
	struct trace_table *table = calloc(1, sizeof(*table));

	for (unsigned int i = 0; table && i < FLEXSC_TRACE_CALLS; i++)
		table->row[i].nr = i;
	return table;
}

void trace_table_free(struct trace_table *table)
{
	free(table);
}

void trace_table_add(struct trace_table *table,
		     const struct flexsc_trace_record *end, uint64_t begun_ns)
{
	struct row *row;

	if (!table || end->nr >= FLEXSC_TRACE_CALLS)
		return;
	row = &table->row[end->nr];
	row->calls++;
	row->errors += end->ret < 0 && end->ret >= -4095;
	if (begun_ns)
		row->ns += end->at_ns - begun_ns;
}

void trace_table_count(struct trace_table *table, unsigned int nr,
		       uint64_t calls, uint64_t errors, uint64_t ns)
{
	if (!table || nr >= FLEXSC_TRACE_CALLS)
		return;
	table->row[nr].calls += calls;
	table->row[nr].errors += errors;
	table->row[nr].ns += ns;
}

void trace_count_add(struct trace_count count[FLEXSC_TRACE_CALLS],
		     const struct flexsc_trace_latency *before,
		     const struct flexsc_trace_latency *now)
{
	for (unsigned int i = 0; now && i < FLEXSC_TRACE_CALLS; i++) {
		count[i].calls += now[i].nr - (before ? before[i].nr : 0);
		count[i].errors +=
			now[i].errors - (before ? before[i].errors : 0);
		count[i].ns += now[i].ns - (before ? before[i].ns : 0);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->calls < y->calls) - (x->calls > y->calls);
}

static void print_row(FILE *out, const struct row *row, uint64_t all_ns,
		      const char *name)
{
	char errors[24] = "";

	if (row->errors)
		snprintf(errors, sizeof(errors), "%lu", row->errors);
	fprintf(out, "%6.2f %11.6f %11lu %9lu %9s %s\n",
		all_ns ? 100.0 * (double)row->ns / (double)all_ns : 0.0,
		(double)row->ns / 1e9,
		row->calls ? row->ns / row->calls / 1000 : 0, row->calls,
		errors, name);
}

void trace_table_print(const struct trace_table *table, FILE *out)
{
	static const char rule[] = "------ ----------- ----------- --------- "
				   "--------- ----------------\n";
	struct trace_table sorted;
	struct row all = { 0 };
	char number[32];

	if (!table)
		return;
	sorted = *table;
	qsort(sorted.row, FLEXSC_TRACE_CALLS, sizeof(*sorted.row), by_time);
	for (unsigned int i = 0; i < FLEXSC_TRACE_CALLS; i++) {
		all.calls += sorted.row[i].calls;
		all.errors += sorted.row[i].errors;
		all.ns += sorted.row[i].ns;
	}
	fprintf(out,
		"%% time     seconds  usecs/call     calls    errors "
		"syscall\n%s",
		rule);
	for (unsigned int i = 0; i < FLEXSC_TRACE_CALLS; i++) {
		const struct row *row = &sorted.row[i];
		const char *name = flexsc_call_name(row->nr);

		snprintf(number, sizeof(number), "syscall_%#x", row->nr);
		if (row->calls)
			print_row(out, row, all.ns, name ? name : number);
	}
	fprintf(out, "%s", rule);
	print_row(out, &all, all.ns, "total");
}
