/* SPDX-License-Identifier: MIT */
/* What the screens of `flexsc top` show, as lines of text. */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include "cli/observe.h"

enum accent {
	ACCENT_NONE,
	ACCENT_TITLE,
	ACCENT_HEAD,
	ACCENT_CHOSEN
};

/* Lines are written in order. */
struct screen {
	int width, height;
	int line; /* the next one */
	void (*write)(int line, const char *text, enum accent accent);
};

void screen_line(struct screen *screen, enum accent accent, const char *format,
		 ...) __attribute__((format(printf, 3, 4)));

/* How the threads of a process are sorted. */
enum order {
	ORDER_STATE, /* who can run first, then those parked the shortest */
	ORDER_TIME, /* those parked the longest first */
	ORDER_WAIT, /* by what they wait for */
	ORDER_TID,
	NR_ORDERS
};

extern const char *const order_names[NR_ORDERS];

enum view {
	VIEW_THREADS,
	VIEW_CALLS,
	VIEW_CARRIERS,
	NR_VIEWS
};

/* One process; @first is the first line of the list that is shown. */
void top_process(struct screen *screen, const struct observed *observed,
		 const struct look *before, const struct look *now,
		 enum view view, enum order order, unsigned int first);

/* What can be observed here, the busiest first. */
struct candidate {
	pid_t pid;
	char name[16];
	unsigned int nr_threads;
	double calls; /* a second; below 0: not known yet */
	uint64_t completed; /* so far */
	uint64_t at_ns;
};

/**
 * top_find() - all processes that use FlexSC and may be observed
 * @list: of before, to tell what went on since; replaced
 *
 * Return: how many.
 */
unsigned int top_find(struct candidate **list, unsigned int nr);
void top_list(struct screen *screen, const struct candidate *list,
	      unsigned int nr, unsigned int chosen);

#endif /* CLI_TOP_H */
