/* SPDX-License-Identifier: MIT */
/*
 * Printing results: a table for people, one JSON object a line for programs.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/series.h"

/**
 * struct report_row - one figure beside its rival
 * @label: the case; @rival may be NULL
 */
struct report_row {
	const char *bench, *label, *engine, *metric, *unit, *rival;
	double value, rival_value, spread, roundtrip_ns;
	unsigned int runs;
	/* Smallest and largest of the runs; 0 both: not known. */
	double low, high, rival_low, rival_high;
};

/*
 * Takes the lock, pins, prints the machine's facts and how cases are named
 * (@cases may be NULL). 0 or an exit status.
 */
int report_begin(const struct bench_options *options, const char *cases);
void report_row(const struct report_row *row);
/* One contestant against another; nothing if the first was not measured. */
void report_pair(struct report_row row, const struct series *s,
		 const struct series *rival);
/* Something the reader should know: "no libuv in this build". */
void report_note(const char *bench, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* What a reader may conclude, in a sentence. */
void report_verdict(const char *bench, const char *sentence);
/* What is being measured, on a terminal's last line. */
void report_progress(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* Draws the picture if one was asked for. 0 or an exit status. */
int report_end(void);

/* @text after @head, folded between words into the columns that are left. */
void report_fold(const char *head, const char *text);

/* The lock that measurements on one machine share. False: somebody has it. */
bool report_lock(bool wait);

#endif /* BENCH_REPORT_H */
