/* SPDX-License-Identifier: MIT */
/*
 * Lines of recorded calls; see cli/trace_show.h. A thread of the program waits
 * for one call at a time, but where a handler interrupts it; a loop of libflexsc
 * has many, whose lines are written when they are over, or have lasted.
 */
#include "cli/trace_show.h"

#include "cli/trace_ended.h"
#include "cli/trace_print.h"
#include "cli/trace_table.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a parent may take that is told of a child's end, and gets no processor. */
#define UNTOLD_NS 10000000000ull

enum {
	HELD_NS = 1000000000, /* a posted call, before it counts as lasting */
	NR_BUCKETS = 1024,
	TRACE_GONE = 0x1000, /* a kind of our own: the process has ended */
};

/* A record that came, and is not written down yet. */
struct event {
	uint64_t at_ns, number;
	pid_t pid, tid;
	struct flexsc_trace_record *record;
};

/* A call that has begun. */
struct open_call {
	struct open_call *next;
	pid_t pid, tid;
	uint64_t id;
	struct flexsc_trace_record *begin;
	bool begun; /* its beginning is written */
	unsigned int shown; /* arguments of it that are */
};

/* A process that has ended, nobody knows how; its parent may be about to say. */
struct gone {
	struct gone *next;
	pid_t pid;
	uint64_t at_ns;
};

struct trace_show {
	struct trace_style style;
	struct event *event;
	size_t nr_events, room;
	uint64_t nr_taken;
	struct open_call *open[NR_BUCKETS]; /* of a thread: latest first */
	struct open_call *on_line; /* whose line is not ended */
	struct endings *endings;
	struct gone *gone;
	struct text line;
	size_t written; /* of `line`, before it was ended */
	int64_t real_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	uint64_t last_ns; /* -r */
	pid_t first_tid;
	bool many; /* threads */
	struct trace_table *table;
};

/* What comes before the name ----------------------------------------------------- */

static void add_time(struct trace_show *s, uint64_t at_ns)
{
	int64_t real = (int64_t)at_ns + s->real_ns;
	time_t seconds = (time_t)(real / 1000000000);
	long us = (long)(real % 1000000000 / 1000);
	uint64_t since = s->last_ns && at_ns > s->last_ns ? at_ns - s->last_ns :
							    0;
	char clock[16];
	struct tm tm;

	if (s->style.relative)
		text_add(&s->line, "%6lu.%06lu ", since / 1000000000,
			 since % 1000000000 / 1000);
	s->last_ns = at_ns;
	if (!s->style.times)
		return;
	localtime_r(&seconds, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (s->style.times == 3)
		text_add(&s->line, "%ld.%06ld ", (long)seconds, us);
	else if (s->style.times == 2)
		text_add(&s->line, "%s.%06ld ", clock, us);
	else
		text_add(&s->line, "%s ", clock);
}

static void begin_line(struct trace_show *s, pid_t tid, uint64_t at_ns)
{
	text_clear(&s->line);
	s->written = 0;
	if (s->style.pid_always)
		text_add(&s->line, "%-5d ", (int)tid);
	else if (s->many && s->style.in_file)
		text_add(&s->line, "%-5d ", (int)tid);
	else if (s->many)
		text_add(&s->line, "[pid %5d] ", (int)tid);
	add_time(s, at_ns);
}

/* As far as it goes; a call that waits is to be seen while it does. */
static void put_part(struct trace_show *s)
{
	if (s->style.lines && s->line.length > s->written)
		fputs(s->line.chars + s->written, s->style.out);
	s->written = s->line.length;
}

static void put_line(struct trace_show *s, const char *end)
{
	put_part(s);
	if (s->style.lines)
		fputs(end, s->style.out);
	s->on_line = NULL;
}

/* Another one's line is in the way. */
static void interrupt_line(struct trace_show *s)
{
	if (s->on_line)
		put_line(s, " <unfinished ...>\n");
}

/* Calls ----------------------------------------------------------------------------- */

static struct open_call **bucket(struct trace_show *s, pid_t tid)
{
	return &s->open[(unsigned int)tid % NR_BUCKETS];
}

static struct open_call **find(struct trace_show *s, pid_t pid, pid_t tid,
			       uint64_t id, unsigned int nr)
{
	struct open_call **at = bucket(s, tid);

	while (*at && ((*at)->pid != pid || (*at)->tid != tid ||
		       (*at)->id != id || (*at)->begin->nr != nr))
		at = &(*at)->next;
	return at;
}

static void drop(struct trace_show *s, struct open_call **at)
{
	struct open_call *call = *at;

	*at = call->next;
	if (s->on_line == call)
		s->on_line = NULL;
	free(call->begin);
	free(call);
}

/* Up to where the results begin. */
static int pad(const struct trace_show *s)
{
	return s->line.length < s->style.column ?
		       (int)(s->style.column - s->line.length) :
		       1;
}

static void add_result(struct trace_show *s, const struct trace_call *call,
		       unsigned int from, uint64_t begun_ns)
{
	uint64_t spent = call->end->at_ns - begun_ns;

	trace_print_rest(&s->line, call, from);
	text_add(&s->line, "%*s= ", pad(s), "");
	trace_print_result(&s->line, call);
	if (s->style.spent && begun_ns)
		text_add(&s->line, " <%lu.%06lu>", spent / 1000000000,
			 spent % 1000000000 / 1000);
}

static bool is_shown(const struct trace_show *s, int64_t ret)
{
	return ret < 0 && ret >= -4095 ? s->style.filter.failed :
					 s->style.filter.successful;
}

static void write_begin(struct trace_show *s, struct open_call *open)
{
	struct trace_call call = { .begin = open->begin,
				   .most_bytes = s->style.most_bytes };

	interrupt_line(s);
	begin_line(s, open->tid, open->begin->at_ns);
	open->shown = trace_print_begin(&s->line, &call);
	open->begun = true;
	s->on_line = open;
}

/* The beginning was written, and another line since. */
static void write_resumed(struct trace_show *s, const struct event *e)
{
	interrupt_line(s);
	begin_line(s, e->tid, e->at_ns);
	text_add(&s->line, "<... ");
	trace_print_name(&s->line, e->record->nr);
	text_add(&s->line, " resumed>");
}

static void take_end(struct trace_show *s, struct event *e)
{
	struct open_call **at =
		find(s, e->pid, e->tid, e->record->id, e->record->nr);
	struct open_call *open = *at;
	struct trace_call call = { .begin = open ? open->begin : NULL,
				   .end = e->record,
				   .most_bytes = s->style.most_bytes };
	uint64_t begun_ns = open ? open->begin->at_ns : e->record->begun_ns;
	unsigned int from = open ? open->shown : 0;

	trace_table_add(s->table, e->record, begun_ns);
	if (!is_shown(s, e->record->ret)) {
		if (open)
			drop(s, at);
		return;
	}
	if (open && open->begun && s->on_line != open) {
		write_resumed(s, e);
	} else if (!open || !open->begun) {
		interrupt_line(s);
		begin_line(s, e->tid, begun_ns ? begun_ns : e->at_ns);
		from = trace_print_begin(&s->line, &call);
	}
	add_result(s, &call, from, begun_ns);
	put_line(s, "\n");
	if (open)
		drop(s, at);
}

/* It goes on as another program. */
static void finish_exec(struct trace_show *s, const struct event *e)
{
	struct open_call **at = find(s, e->pid, e->tid, 0, SYS_execve);
	struct flexsc_trace_record end;
	struct event over = *e;

	if (!*at)
		return;
	end = *(*at)->begin;
	end.kind = FLEXSC_TRACE_END;
	end.size = sizeof(end);
	end.at_ns = e->at_ns;
	end.ret = 0;
	over.record = &end;
	take_end(s, &over);
}

/* A call that has no result. */
static void write_endless(struct trace_show *s, pid_t tid,
			  const struct flexsc_trace_record *begin)
{
	struct trace_call call = { .begin = begin,
				   .most_bytes = s->style.most_bytes };
	unsigned int from;

	interrupt_line(s);
	begin_line(s, tid, begin->at_ns);
	from = trace_print_begin(&s->line, &call);
	call.end = begin;
	trace_print_rest(&s->line, &call, from);
	text_add(&s->line, "%*s= ?", pad(s), "");
	put_line(s, "\n");
}

/* Posted, and nobody wants the result: it is not recorded. */
static void take_unwanted(struct trace_show *s, struct open_call **at)
{
	if (s->style.filter.successful)
		write_endless(s, (*at)->tid, (*at)->begin);
	drop(s, at);
}

static void take_begin(struct trace_show *s, struct event *e)
{
	struct open_call *open = calloc(1, sizeof(*open)), **at;

	if (!open)
		return;
	*open = (struct open_call){ .pid = e->pid,
				    .tid = e->tid,
				    .id = e->record->id,
				    .begin = e->record };
	finish_exec(s, e);
	at = bucket(s, e->tid);
	e->record = NULL;
	open->next = *at;
	*at = open;
	if (open->id == 1) {
		take_unwanted(s, at);
		return;
	}
	/* By status nothing can be said yet. */
	if (!open->id && s->style.filter.failed && s->style.filter.successful)
		write_begin(s, open);
}

static void take_signal(struct trace_show *s, const struct event *e)
{
	if (!trace_filter_has_signal(&s->style.filter, e->record->nr))
		return;
	interrupt_line(s);
	begin_line(s, e->tid, e->at_ns);
	trace_print_signal(&s->line, e->record);
	put_line(s, "\n");
}

static void write_ended(struct trace_show *s, pid_t tid, uint64_t at_ns,
			int status)
{
	char name[16];

	interrupt_line(s);
	begin_line(s, tid, at_ns);
	if (status == TRACE_UNKNOWN_END)
		text_add(&s->line, "+++ ended +++");
	else if (WIFSIGNALED(status))
		text_add(&s->line, "+++ killed by %s%s +++",
			 trace_signal_name(WTERMSIG(status), name),
			 WCOREDUMP(status) ? " (core dumped)" : "");
	else
		text_add(&s->line, "+++ exited with %d +++",
			 WEXITSTATUS(status));
	put_line(s, "\n");
}

/* It says so itself, about to end: a thread, or a process. */
static void take_exit(struct trace_show *s, const struct event *e)
{
	int status = (int)(e->record->args[0] & 0xff) << 8;

	if (trace_filter_has(&s->style.filter, e->record->nr) &&
	    s->style.filter.failed && s->style.filter.successful)
		write_endless(s, e->tid, e->record);
	/* Nobody sees the end of a process that is not known here. */
	if (e->record->nr == SYS_exit || !e->pid) {
		write_ended(s, e->tid, e->at_ns, status);
		return;
	}
	endings_note(s->endings, e->pid, status);
}

static void end_gone(struct trace_show *s, struct gone **at, int status)
{
	struct gone *gone = *at;

	*at = gone->next;
	write_ended(s, gone->pid, gone->at_ns, status);
	free(gone);
}

/* Those for which it is too late to hear of how it was. */
static void end_unknown(struct trace_show *s, uint64_t until_ns)
{
	for (struct gone **at = &s->gone; *at;)
		if ((*at)->at_ns + UNTOLD_NS <= until_ns)
			end_gone(s, at, TRACE_UNKNOWN_END);
		else
			at = &(*at)->next;
}

/* Whatever is shown of it: a parent was told. */
static void note_child(struct trace_show *s,
		       const struct flexsc_trace_record *record)
{
	struct gone **at = &s->gone;
	int status;
	pid_t pid;

	if (!trace_child_ended(record, &pid, &status))
		return;
	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	if (*at)
		end_gone(s, at, status);
	else
		endings_note(s->endings, pid, status);
}

/* The end may be told later. Return: whether it will be. */
static bool hold_gone(struct trace_show *s, const struct event *e)
{
	struct gone *gone = malloc(sizeof(*gone));

	if (gone) {
		*gone = (struct gone){ s->gone, e->pid, e->at_ns };
		s->gone = gone;
	}
	return gone;
}

static void take_gone(struct trace_show *s, const struct event *e)
{
	int status = (int)e->record->ret, said;

	for (unsigned int i = 0; i < NR_BUCKETS; i++)
		for (struct open_call **at = &s->open[i]; *at;)
			if ((*at)->pid == e->pid) {
				if (s->on_line == *at)
					interrupt_line(s);
				drop(s, at);
			} else {
				at = &(*at)->next;
			}
	if (endings_take(s->endings, e->pid, &said) &&
	    status == TRACE_UNKNOWN_END)
		status = said;
	if (status != TRACE_UNKNOWN_END || !hold_gone(s, e))
		write_ended(s, e->pid, e->at_ns, status);
}

static void take(struct trace_show *s, struct event *e)
{
	if (!s->first_tid)
		s->first_tid = e->tid;
	s->many |= e->tid != s->first_tid;
	note_child(s, e->record);
	switch ((int)e->record->kind) {
	case FLEXSC_TRACE_SIGNAL:
		take_signal(s, e);
		return;
	case FLEXSC_TRACE_EXIT:
		take_exit(s, e);
		return;
	case TRACE_GONE:
		take_gone(s, e);
		return;
	default:
		break;
	}
	if (!trace_filter_has(&s->style.filter, e->record->nr))
		return;
	if (e->record->kind == FLEXSC_TRACE_BEGIN)
		take_begin(s, e);
	else if (e->record->kind == FLEXSC_TRACE_END)
		take_end(s, e);
}

/* Posted, and it lasts: the beginning is worth knowing. */
static void write_lasting(struct trace_show *s, uint64_t until_ns)
{
	for (unsigned int i = 0; i < NR_BUCKETS; i++)
		for (struct open_call *c = s->open[i]; c; c = c->next) {
			if (c->begun || !c->id ||
			    c->begin->at_ns + HELD_NS > until_ns ||
			    !s->style.filter.failed ||
			    !s->style.filter.successful)
				continue;
			write_begin(s, c);
			interrupt_line(s);
		}
}

/* Events ------------------------------------------------------------------------------ */

void trace_show_take(struct trace_show *s,
		     const struct flexsc_trace_record *record, pid_t pid,
		     pid_t tid)
{
	struct event *grown = s->event;
	struct flexsc_trace_record *copy;

	if (s->nr_events == s->room) {
		size_t room = s->room ? 2 * s->room : 256;

		grown = reallocarray(s->event, room, sizeof(*grown));
		if (!grown)
			return;
		s->event = grown;
		s->room = room;
	}
	copy = malloc(record->size);
	if (!copy)
		return;
	memcpy(copy, record, record->size);
	s->event[s->nr_events++] =
		(struct event){ record->at_ns, s->nr_taken++, pid, tid, copy };
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

void trace_show_until(struct trace_show *s, uint64_t until_ns)
{
	size_t n = 0;

	qsort(s->event, s->nr_events, sizeof(*s->event), by_time);
	for (size_t i = 1; i < s->nr_events; i++)
		s->many |= s->event[i].tid != s->event[0].tid;
	for (; n < s->nr_events && s->event[n].at_ns < until_ns; n++) {
		take(s, &s->event[n]);
		free(s->event[n].record);
	}
	s->nr_events -= n;
	if (n)
		memmove(s->event, s->event + n,
			s->nr_events * sizeof(*s->event));
	end_unknown(s, until_ns);
	write_lasting(s, until_ns);
	if (s->on_line)
		put_part(s);
	fflush(s->style.out);
}

void trace_show_gone(struct trace_show *s, pid_t pid, int status)
{
	struct timespec now;
	struct flexsc_trace_record gone = { .size = sizeof(gone),
					    .kind = TRACE_GONE,
					    .ret = status };

	clock_gettime(CLOCK_MONOTONIC, &now);
	gone.at_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	trace_show_take(s, &gone, pid, pid);
}

void trace_show_counted(struct trace_show *s, unsigned int nr, uint64_t calls,
			uint64_t errors, uint64_t ns)
{
	if (trace_filter_has(&s->style.filter, nr))
		trace_table_count(s->table, nr, calls, errors, ns);
}

void trace_show_end(struct trace_show *s)
{
	write_lasting(s, UINT64_MAX);
	interrupt_line(s);
	if (s->style.table)
		trace_table_print(s->table, s->style.out);
	fflush(s->style.out);
}

struct trace_show *trace_show_new(const struct trace_style *style)
{
	struct trace_show *s = calloc(1, sizeof(*s));
	struct timespec real, mono;

	if (!s)
		return NULL;
	s->style = *style;
	s->table = trace_table_new();
	s->endings = endings_new();
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &real);
	s->real_ns = (real.tv_sec - mono.tv_sec) * 1000000000l +
		     (real.tv_nsec - mono.tv_nsec);
	return s;
}

void trace_show_free(struct trace_show *s)
{
	for (size_t n = 0; n < s->nr_events; n++)
		free(s->event[n].record);
	for (unsigned int i = 0; i < NR_BUCKETS; i++)
		while (s->open[i])
			drop(s, &s->open[i]);
	endings_free(s->endings);
	trace_table_free(s->table);
	text_free(&s->line);
	free(s->event);
	free(s);
}
