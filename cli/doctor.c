/* SPDX-License-Identifier: MIT */
/*
 * `flexsc doctor`: which engines work here and why not, what the machine is,
 * and what its basic operations cost. Measures for less than three seconds
 * and changes nothing.
 */
#include "bench/loops.h"
#include "bench/machine.h"
#include "bench/report.h"
#include "cli/activation.h"
#include "cli/commands.h"
#include "cli/kernel.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	BATCH = 64,
	ROUNDS = 301,
	REASON = 256
};

struct engine_report {
	const char *name;
	char reason[REASON];
	bool usable;
	double overhead_ns; /* posting and reaping one call; NAN: unknown */
	double threshold; /* calls in a batch; INFINITY: never pays */
};

struct diagnosis {
	struct engine_report engines[NR_ENGINES];
	char chosen[16], chosen_reason[REASON];
	double crossing, getppid, roundtrip, futex;
	bool busy; /* somebody else is measuring */
};

/* What the library's own part of a call costs ----------------------------- */

static struct flexsc_event events[BATCH];
static unsigned int nr_done;

static void done(struct flexsc_event *ev)
{
	nr_done++;
}

static double batch_cost(struct flexsc_loop *loop, bool elsewhere)
{
	uint64_t begin = ticks(), sum;

	for (int i = 0; i < BATCH; i++)
		flexsc_post(&events[i], SYS_getppid, 0, 0, 0, 0, 0, 0);
	if (!elsewhere) {
		loop_finish(loop, &nr_done, BATCH);
		return ticks_ns(ticks() - begin, 1) / BATCH;
	}
	sum = ticks() - begin;
	spin_ns(30000); /* the application's own work */
	begin = ticks();
	loop_finish(loop, &nr_done, BATCH);
	return ticks_ns(sum + ticks() - begin, 2) / BATCH;
}

/*
 * (wrapped-system-call.txt, 3.1) Of an engine on this core the call's own
 * work is taken off; the one on another core leaves that work to it.
 */
static double overhead(struct flexsc_loop *loop, const struct diagnosis *d,
		       bool elsewhere)
{
	double rounds[ROUNDS], cost;

	for (int i = 0; i < BATCH; i++)
		events[i].handler = done;
	batch_cost(loop, elsewhere);
	for (int i = 0; i < ROUNDS; i++)
		rounds[i] = batch_cost(loop, elsewhere);
	cost = median(rounds, ROUNDS);
	return elsewhere ? cost : fmax(cost - (d->getppid - d->crossing), 0);
}

/* wrapped-system-call.txt, equation 5: M > T_sys / (T_sys - overheads) */
static double threshold(double t_sys, double overheads)
{
	return t_sys > overheads ? floor(t_sys / (t_sys - overheads)) + 1 :
				   INFINITY;
}

static void look_at_engine(struct diagnosis *d, struct engine_report *e)
{
	struct flexsc_loop *loop = NULL;
	int bad = loop_open(&loop, e->name);
	const char *reason, *end;

	e->overhead_ns = NAN;
	e->threshold = NAN;
	if (!loop) {
		snprintf(e->reason, REASON, "no loop can be made: %s",
			 strerror(-bad));
		return;
	}
	reason = flexsc_loop_engine_reason(loop);
	e->usable = !bad;
	/* "chosen by hand; why" or "wanted why not; the one taken, and why" */
	end = strstr(reason, "; ");
	if (e->usable)
		snprintf(e->reason, REASON, "%s", end ? end + 2 : reason);
	else if (!end)
		snprintf(e->reason, REASON, "%s", reason);
	else /* without the name, which the line begins with */
		snprintf(e->reason, REASON, "%.*s",
			 (int)(end - reason - (long)strlen(e->name) - 1),
			 reason + strlen(e->name) + 1);
	if (e->usable) {
		e->overhead_ns = overhead(loop, d,
					  !strcmp(e->name, "uthread") ||
						  !strcmp(e->name, "kcore"));
		e->threshold = threshold(d->crossing, e->overhead_ns);
	}
	flexsc_loop_shutdown(loop);
	flexsc_loop_free(loop);
}

static void look_at_choice(struct diagnosis *d)
{
	struct flexsc_loop *loop;
	int bad = loop_open(&loop, "auto");
	const char *why;

	if (bad) {
		snprintf(d->chosen, sizeof(d->chosen), "none");
		snprintf(d->chosen_reason, REASON, "%s", strerror(-bad));
		return;
	}
	snprintf(d->chosen, sizeof(d->chosen), "%s", flexsc_loop_engine(loop));
	/* "chosen automatically: NAME WHY" */
	why = strstr(flexsc_loop_engine_reason(loop), d->chosen);
	snprintf(d->chosen_reason, REASON, "%s",
		 why ? why : flexsc_loop_engine_reason(loop));
	flexsc_loop_free(loop);
}

static void diagnose(struct diagnosis *d)
{
	d->busy = !report_lock(false);
	machine_pin(machine()->cpu_app);
	d->crossing = cost_crossing_ns();
	d->getppid = cost_getppid_ns();
	d->roundtrip = cost_roundtrip_ns();
	d->futex = cost_futex_ns();
	for (int i = 0; i < NR_ENGINES; i++) {
		d->engines[i].name = engine_names[i];
		look_at_engine(d, &d->engines[i]);
	}
	machine_unpin();
	look_at_choice(d);
}

/* For people ---------------------------------------------------------------- */

static void print_engine(const struct engine_report *e)
{
	char head[64], line[128];

	snprintf(head, sizeof(head), "  %-8s %-11s ", e->name,
		 e->usable ? "usable" : "not usable");
	report_fold(head, e->reason);
	if (!e->usable)
		return;
	if (isinf(e->threshold))
		snprintf(line, sizeof(line),
			 "%.0f ns to post and reap a call, more than the "
			 "crossing it may save: batches alone do not pay",
			 e->overhead_ns);
	else
		snprintf(line, sizeof(line),
			 "%.0f ns to post and reap a call: pays from %.0f "
			 "in a batch",
			 e->overhead_ns, e->threshold);
	snprintf(head, sizeof(head), "%23s", "");
	report_fold(head, line);
}

static const char *io_uring_state(int sysctl)
{
	switch (sysctl) {
	case -1:
		return "no sysctl of this kernel forbids it";
	case 0:
		return "the kernel allows it (kernel.io_uring_disabled = 0)";
	case 1:
		return "for its group and root only "
		       "(kernel.io_uring_disabled = 1)";
	default:
		return "the kernel forbids it; to allow it, as root: "
		       "sysctl kernel.io_uring_disabled=0";
	}
}

static void print_cost(const char *what, double ns)
{
	if (isnan(ns))
		printf("  %-30s     needs a second processor\n", what);
	else
		printf("  %-30s %9.0f ns\n", what, ns);
}

static void print_machine(void)
{
	const struct machine *m = machine();
	char line[256];

	printf("Machine\n");
	printf("  kernel       %s\n", m->kernel);
	snprintf(line, sizeof(line), "%s, %d of %d allowed", m->cpu, m->nr_cpus,
		 m->nr_online);
	report_fold("  processor    ", line);
	report_fold("  mitigations  ", m->mitigations);
	printf("  FSGSBASE     %s\n",
	       m->fsgsbase ? "yes" :
			     "no (needs Linux 5.9 and a CPU that has it)");
	report_fold("  io_uring     ", io_uring_state(m->io_uring_disabled));
	printf("  membarrier   %s\n",
	       m->membarrier ? "yes" :
			       "no (sleeping costs the library a fence)");
	printf("  descriptors  %llu", (unsigned long long)m->nofile.rlim_cur);
	if (m->nofile.rlim_cur < m->nofile.rlim_max)
		printf(", up to %llu with `ulimit -n`",
		       (unsigned long long)m->nofile.rlim_max);
	printf("\n");
}

static void print_text(const struct diagnosis *d)
{
	printf("Engines\n");
	for (int i = 0; i < NR_ENGINES; i++)
		print_engine(&d->engines[i]);
	printf("\nAutomatic choice: %s\n", d->chosen);
	report_fold("  ", d->chosen_reason);
	printf("  Another one by hand: FLEXSC_ENGINE=uthread PROGRAM\n"
	       "  What each is good for: flexsc(7)\n\n");
	print_machine();
	printf("\n");
	kernel_print(kernel_facts());
	printf("\nCosts%s\n", d->busy ? " (disturbed: a measurement is running "
					"beside this one)" :
					"");
	print_cost("crossing into the kernel", d->crossing);
	print_cost("getppid", d->getppid);
	print_cost("cache line, to a CPU and back", d->roundtrip);
	print_cost("futex wake, to a CPU and back", d->futex);
	printf("\nMeasure more: flexsc bench --list\n");
}

/* For programs ----------------------------------------------------------------- */

static struct json_object *number(double value)
{
	char text[32];

	if (!isfinite(value))
		return NULL;
	snprintf(text, sizeof(text), "%.6g", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *engine_json(const struct engine_report *e)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(e->name));
	json_object_object_add(o, "usable", json_object_new_boolean(e->usable));
	json_object_object_add(o, "reason", json_object_new_string(e->reason));
	json_object_object_add(o, "overhead_ns", number(e->overhead_ns));
	json_object_object_add(o, "batch_threshold", number(e->threshold));
	json_object_object_add(
		o, "batching_pays",
		e->usable ? json_object_new_boolean(!isinf(e->threshold)) :
			    NULL);
	return o;
}

static void print_json(const struct diagnosis *d)
{
	const struct machine *m = machine();
	struct json_object *o = machine_json(), *list = json_object_new_array();

	for (int i = 0; i < NR_ENGINES; i++)
		json_object_array_add(list, engine_json(&d->engines[i]));
	json_object_object_add(o, "engines", list);
	json_object_object_add(o, "auto", json_object_new_string(d->chosen));
	json_object_object_add(o, "auto_reason",
			       json_object_new_string(d->chosen_reason));
	json_object_object_add(o, "cpus_online",
			       json_object_new_int(m->nr_online));
	json_object_object_add(o, "fsgsbase",
			       json_object_new_boolean(m->fsgsbase));
	json_object_object_add(
		o, "io_uring_disabled",
		m->io_uring_disabled < 0 ?
			NULL :
			json_object_new_int(m->io_uring_disabled));
	json_object_object_add(o, "membarrier",
			       json_object_new_boolean(m->membarrier));
	json_object_object_add(
		o, "nofile_soft",
		json_object_new_int64((int64_t)m->nofile.rlim_cur));
	json_object_object_add(
		o, "nofile_hard",
		json_object_new_int64((int64_t)m->nofile.rlim_max));
	json_object_object_add(o, "module", kernel_json(kernel_facts()));
	json_object_object_add(o, "crossing_ns", number(d->crossing));
	json_object_object_add(o, "getppid_ns", number(d->getppid));
	json_object_object_add(o, "roundtrip_ns", number(d->roundtrip));
	json_object_object_add(o, "futex_roundtrip_ns", number(d->futex));
	json_object_object_add(o, "disturbed",
			       json_object_new_boolean(d->busy));
	printf("%s\n", json_object_to_json_string_ext(
			       o, JSON_C_TO_STRING_PLAIN |
					  JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

/* The command ---------------------------------------------------------------- */

static const struct argp_option option_list[] = {
	{ "json", 'j', NULL, 0, "Print one JSON object", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

struct request {
	bool json;
	pid_t pid; /* 0: this machine */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct request *r = state->input;
	char *end;

	switch (key) {
	case 'j':
		r->json = true;
		return 0;
	case ARGP_KEY_ARG:
		r->pid = (pid_t)strtol(arg, &end, 10);
		if (state->arg_num || *end || r->pid <= 0)
			argp_error(state, "'%s' is no process id", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[PID]",
	.doc = "Say which engines FlexSC can use on this machine and why, "
	       "which one it chooses, and what system calls cost here. "
	       "Changes nothing; takes less than three seconds. With PID: say "
	       "of a process and its descendants which are on FlexSC, which "
	       "are not, and why.",
};

int doctor_main(int argc, char **argv)
{
	static struct diagnosis d;
	struct request r = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &r);
	if (r.pid)
		return activation_print(r.pid, r.json);
	diagnose(&d);
	if (r.json)
		print_json(&d);
	else
		print_text(&d);
	return 0;
}
