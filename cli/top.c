/* SPDX-License-Identifier: MIT */
/*
 * `flexsc top`: processes that use FlexSC, and one of them, live. The terminal
 * and its keys; what is shown comes from cli/top_list.c and cli/top_process.c.
 * Into a file it is what `flexsc stat` prints, again and again.
 */
#include "cli/commands.h"
#include "cli/stat.h"
#include "cli/top.h"

#include <argp.h>
#include <curses.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	ESCAPE = 27
};

struct top {
	pid_t asked; /* on the command line, or 0 */
	double interval;

	/* One process: NULL while the list is shown. */
	struct observed *observed;
	struct look before, now;
	bool has_before;
	enum view view;
	enum order order;
	unsigned int first;

	struct candidate *list;
	unsigned int nr, chosen;
	char message[OBSERVE_REASON + 64];
	bool help, still; /* shows its keys; does not go on */
};

/* Choosing ---------------------------------------------------------------- */

static void leave(struct top *t)
{
	look_free(&t->before);
	look_free(&t->now);
	memset(&t->before, 0, sizeof(t->before));
	memset(&t->now, 0, sizeof(t->now));
	t->has_before = false;
	observe_free(t->observed);
	t->observed = NULL;
	t->first = 0;
}

static void enter(struct top *t, pid_t pid)
{
	char why[OBSERVE_REASON];

	leave(t);
	t->observed = observe_new(pid, why);
	if (!t->observed) {
		snprintf(t->message, sizeof(t->message), "%d: %s", (int)pid,
			 why);
		return;
	}
	if (observe_look(t->observed, &t->now))
		leave(t);
}

/* A new look; what was the last one is what rates are told from. */
static void look_again(struct top *t)
{
	struct look fresh;

	if (!t->observed) {
		t->nr = top_find(&t->list, t->nr);
		if (t->chosen >= t->nr)
			t->chosen = t->nr ? t->nr - 1 : 0;
		return;
	}
	/* The process counts it for us: only while it is shown. */
	t->observed->interval_ms = (uint32_t)(t->interval * 1000);
	t->observed->latency_ms = t->view == VIEW_CALLS ||
						  !t->now.has_threads ?
					  t->observed->interval_ms * 5 / 4 + 100 :
					  0;
	if (observe_look(t->observed, &fresh)) {
		snprintf(t->message, sizeof(t->message),
			 "%s (%d) has ended, or become another program",
			 t->observed->program, (int)t->observed->pid);
		look_free(&fresh);
		leave(t);
		t->nr = top_find(&t->list, t->nr);
		return;
	}
	look_free(&t->before);
	t->before = t->now;
	t->now = fresh;
	t->has_before = t->before.at_ns;
}

/* Drawing ----------------------------------------------------------------- */

static void write_line(int line, const char *text, enum accent accent)
{
	static const attr_t attributes[] = { [ACCENT_NONE] = A_NORMAL,
					     [ACCENT_TITLE] = A_BOLD,
					     [ACCENT_HEAD] = A_REVERSE,
					     [ACCENT_CHOSEN] = A_STANDOUT };

	attrset(attributes[accent]);
	if (accent == ACCENT_HEAD)
		mvhline(line, 0, ' ', COLS);
	mvaddnstr(line, 0, text, COLS);
	attrset(A_NORMAL);
}

static const char *const help_text[] = {
	"Up, Down, PgUp, PgDn   through the list",
	"Enter                  look at the chosen process",
	"Escape                 back to the processes",
	"t  c  k                threads, calls, carriers of a process",
	"o                      the next order of its threads",
	"space                  stand still, and go on",
	"q                      quit",
	"",
	"running: on a carrier; ready: waits for one; parked: waits for what stands",
	"behind it; at home: on its own kernel thread. flexsc-top(1) tells more.",
};

static void draw(struct top *t)
{
	struct screen s = { .width = COLS,
			    .height = LINES - 1,
			    .write = write_line };

	erase();
	if (t->help)
		for (unsigned int i = 0;
		     i < sizeof(help_text) / sizeof(*help_text); i++)
			screen_line(&s, ACCENT_NONE, "%s", help_text[i]);
	else if (t->observed)
		top_process(&s, t->observed,
			    t->has_before ? &t->before : &t->now, &t->now,
			    t->view, t->order, t->first);
	else
		top_list(&s, t->list, t->nr, t->chosen);
	if (*t->message)
		write_line(LINES - 1, t->message, ACCENT_TITLE);
	else if (t->observed)
		mvprintw(LINES - 1, 0,
			 "t threads  c calls  k carriers  o order (%s)  "
			 "Esc back  h help  q quit%s",
			 order_names[t->order], t->still ? "  STILL" : "");
	else
		mvprintw(LINES - 1, 0, "Enter look  h help  q quit%s",
			 t->still ? "  STILL" : "");
	refresh();
}

/* Keys -------------------------------------------------------------------- */

static unsigned int length(const struct top *t)
{
	if (!t->observed)
		return t->nr;
	return t->view == VIEW_THREADS ? t->now.nr_threads :
					 FLEXSC_COUNTERS_CALLS;
}

static void move_by(struct top *t, int by)
{
	unsigned int *at = t->observed ? &t->first : &t->chosen;
	long to = (long)*at + by, last = (long)length(t) - 1;

	if (to > last)
		to = last;
	*at = to < 0 ? 0 : (unsigned int)to;
}

static void show(struct top *t, enum view view)
{
	t->view = view;
	t->first = 0;
}

/* Return: false: that was all. */
static bool key(struct top *t, int pressed)
{
	bool was_help = t->help;

	*t->message = '\0';
	t->help = false;
	switch (pressed) {
	case 'q':
		return false;
	case ESCAPE:
		if (t->observed && !was_help) {
			leave(t);
			look_again(t);
		}
		break;
	case 'h':
	case '?':
		t->help = !was_help;
		break;
	case ' ':
		t->still = !t->still;
		break;
	case '\n':
	case KEY_ENTER:
		if (!t->observed && t->nr)
			enter(t, t->list[t->chosen].pid);
		break;
	case 't':
		show(t, VIEW_THREADS);
		break;
	case 'c':
		show(t, VIEW_CALLS);
		break;
	case 'k':
		show(t, VIEW_CARRIERS);
		break;
	case 'o':
		t->order = (t->order + 1) % NR_ORDERS;
		t->first = 0;
		break;
	case KEY_UP:
		move_by(t, -1);
		break;
	case KEY_DOWN:
		move_by(t, 1);
		break;
	case KEY_PPAGE:
		move_by(t, -(LINES - 6));
		break;
	case KEY_NPAGE:
		move_by(t, LINES - 6);
		break;
	case KEY_HOME:
		move_by(t, -(int)length(t));
		break;
	default: /* also KEY_RESIZE: it is only drawn again */
		break;
	}
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void run(struct top *t)
{
	uint64_t next_ms = now_ms(), now;
	int pressed;

	for (;;) {
		now = now_ms();
		if (!t->still && now >= next_ms) {
			look_again(t);
			next_ms = now + (uint64_t)(t->interval * 1000);
		}
		draw(t);
		timeout(t->still ? -1 :
				   (int)(next_ms > now ? next_ms - now : 0));
		pressed = getch();
		/* No key in that time, or none any more: the terminal is gone. */
		if (pressed == ERR && (t->still || !isatty(STDIN_FILENO)))
			return;
		if (pressed != ERR && !key(t, pressed))
			return;
	}
}

/* The command ------------------------------------------------------------- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct top *t = state->input;
	char *end;

	switch (key) {
	case 'i':
		t->interval = strtod(arg, &end);
		if (*end || !(t->interval >= 0.1 && t->interval <= 3600))
			argp_error(state,
				   "'%s' is no interval: 0.1 to 3600 seconds",
				   arg);
		return 0;
	case ARGP_KEY_ARG:
		t->asked = (pid_t)strtol(arg, &end, 10);
		if (state->arg_num || *end || t->asked <= 0)
			argp_error(state, "'%s' is no process id", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option argp_options[] = {
	{ "interval", 'i', "SECONDS", 0, "Between two looks (1)", 0 },
	{ 0 }
};

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "[PID]",
	.doc = "Processes that use FlexSC, live; with PID that one."
	       "\v"
	       "Nothing is done to a process: its memory is read. h shows the keys.",
};

/* Into a file or a pipe: text, without anything that moves a cursor. */
static void print_line(int line, const char *text, enum accent accent)
{
	puts(text);
}

static int print(const struct top *t)
{
	struct screen s = { .width = 80,
			    .height = INT_MAX,
			    .write = print_line };
	struct candidate *list = NULL;
	char name[] = "flexsc stat", interval[32], pid[16];
	char *words[] = { name, interval, pid, NULL };
	unsigned int nr;

	if (t->asked) {
		snprintf(interval, sizeof(interval), "--interval=%g",
			 t->interval);
		snprintf(pid, sizeof(pid), "%d", (int)t->asked);
		return stat_main(3, words);
	}
	nr = top_find(&list, 0);
	usleep((useconds_t)(t->interval * 1e6));
	nr = top_find(&list, nr);
	top_list(&s, list, nr, UINT_MAX);
	free(list);
	return 0;
}

static int start_terminal(void)
{
	const char *type = getenv("TERM");

	setlocale(LC_CTYPE, "");
	/* Not initscr(), which would end the program by itself. */
	if (!newterm(NULL, stdout, stdin)) {
		fprintf(stderr,
			"flexsc top: terminals of type '%s' are not known "
			"here\n",
			type ? type : "");
		return 1;
	}
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	set_escdelay(50);
	return 0;
}

int top_main(int argc, char **argv)
{
	struct top t = { .interval = 1 };
	int bad;

	argp_parse(&argp, argc, argv, 0, NULL, &t);
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return print(&t);
	if (t.asked)
		enter(&t, t.asked);
	if (t.asked && !t.observed) {
		fprintf(stderr, "flexsc top: %s\n", t.message);
		return 1;
	}
	bad = start_terminal();
	if (!bad) {
		run(&t);
		endwin();
	}
	leave(&t);
	free(t.list);
	return bad;
}
