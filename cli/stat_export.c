/* SPDX-License-Identifier: MIT */
/* What `flexsc stat` says to programs: JSON, and Prometheus' text form. */
#include "cli/stat.h"

#include <json-c/json.h>
#include <string.h>

#include <flexsc.h>

/* One place for what the counters of <flexsc/counters.h> are called outside. */
static const struct {
	const char *name;
	size_t offset;
} counters[] = {
#define COUNTER(field)                                          \
	{                                                       \
#field, offsetof(struct flexsc_counters, field) \
	}
	COUNTER(completed),   COUNTER(at_once),	    COUNTER(parked),
	COUNTER(queued),      COUNTER(cancelled),   COUNTER(chains),
	COUNTER(handed_over), COUNTER(fallbacks),   COUNTER(helped),
	COUNTER(batches),     COUNTER(batch_calls), COUNTER(sleeps),
	COUNTER(spins),	      COUNTER(timers),	    COUNTER(reverified),
	COUNTER(stalls),      COUNTER(ring_calls),  COUNTER(core_starts),
	COUNTER(core_calls),  COUNTER(core_sleeps),
#undef COUNTER
};

#define NR_COUNTERS (sizeof(counters) / sizeof(counters[0]))

static uint64_t counter(const struct flexsc_counters *c, unsigned int i)
{
	uint64_t value;

	memcpy(&value, (const char *)c + counters[i].offset, sizeof(value));
	return value;
}

/* JSON ------------------------------------------------------------------------ */

static void add(struct json_object *to, const char *name,
		struct json_object *what)
{
	json_object_object_add(to, name, what);
}

static void add_number(struct json_object *to, const char *name, uint64_t value)
{
	add(to, name, json_object_new_uint64(value));
}

static void add_text(struct json_object *to, const char *name,
		     const char *value)
{
	add(to, name, value ? json_object_new_string(value) : NULL);
}

static struct json_object *by_number(const uint64_t *calls)
{
	struct json_object *o = json_object_new_object();

	for (unsigned int nr = 0; nr < FLEXSC_COUNTERS_CALLS; nr++)
		if (calls[nr] && flexsc_call_name(nr))
			add_number(o, flexsc_call_name(nr), calls[nr]);
	return o;
}

/* Of calls between the two looks, in seconds. */
static struct json_object *latency_json(const struct look *before,
					const struct look *now)
{
	struct json_object *all = json_object_new_object(), *o;

	for (unsigned int nr = 0; nr < FLEXSC_TRACE_CALLS; nr++) {
		struct duration l = stat_latency(before, now, nr);

		if (!l.nr || !flexsc_call_name(nr))
			continue;
		o = json_object_new_object();
		add_number(o, "calls", l.nr);
		add(o, "mean", json_object_new_double(l.mean / 1e9));
		add(o, "half_in", json_object_new_double(l.half / 1e9));
		add(o, "99_percent_in",
		    json_object_new_double(l.most_99 / 1e9));
		add(all, flexsc_call_name(nr), o);
	}
	return all;
}

static struct json_object *owners_json(const struct look *look)
{
	struct json_object *list = json_object_new_array(), *o;

	for (unsigned int i = 0; i < look->nr_calls; i++) {
		const struct flexsc_counters *c = &look->calls[i].counters;

		o = json_object_new_object();
		add_text(o, "of", look->calls[i].of_queue ? "queue" : "loop");
		add_text(o, "engine", c->engine);
		for (unsigned int n = 0; n < NR_COUNTERS; n++)
			add_number(o, counters[n].name, counter(c, n));
		add_number(o, "syscall_threads", c->threads);
		add_number(o, "syscall_threads_most", c->threads_most);
		add(o, "calls", by_number(c->calls));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *thread_json(const struct seen_thread *t)
{
	struct json_object *o = json_object_new_object(), *args;
	char text[32];

	add_number(o, "tid", (uint64_t)t->tid);
	add_text(o, "name", t->name);
	add_text(o, "state", stat_doing_names[t->doing]);
	if (t->doing == DOING_PARKED) {
		add_text(o, "for", t->where);
		add_number(o, "ms", t->for_ms);
		add(o, "at_home", json_object_new_boolean(t->at_home));
	}
	if (t->on) {
		snprintf(text, sizeof(text), "%#lx", (unsigned long)t->on);
		add_text(o, "object", text);
	}
	if (t->has_call) {
		args = json_object_new_array();
		add_text(o, "call", flexsc_call_name(t->call.nr));
		for (unsigned int i = 0; i < t->call.nr_args && i < 6; i++)
			json_object_array_add(
				args, json_object_new_int64(
					      (int64_t)t->call.args[i]));
		add(o, "args", args);
	}
	if (t->stays)
		add_text(o, "stays", t->stays);
	return o;
}

static struct json_object *named(const uint64_t *values, char *const *names,
				 unsigned int nr)
{
	struct json_object *o = json_object_new_object();

	for (unsigned int i = 0; values && i < nr; i++)
		if (names[i])
			add_number(o, names[i], values[i]);
	return o;
}

static struct json_object *queue_json(const struct observed *observed,
				      const struct seen_queue *q)
{
	struct json_object *o = named(q->counts, observed->queue_names,
				      observed->nr_queue_names);

	add(o, "processor", json_object_new_int(q->cpu));
	add_number(o, "ready", q->ready);
	add(o, "asleep", json_object_new_boolean(q->sleeps));
	add(o, "resting", json_object_new_boolean(q->rests));
	return o;
}

static struct json_object *carrier_json(const struct seen_carrier *c)
{
	struct json_object *o = json_object_new_object();
	char state[2] = { c->state, '\0' };

	add_number(o, "tid", (uint64_t)c->tid);
	add(o, "queue", c->queue < 0 ? NULL : json_object_new_int(c->queue));
	add_text(o, "state", state);
	add_number(o, "switches", c->switches);
	add(o, "cpu_s", json_object_new_double((double)c->cpu_ns / 1e9));
	return o;
}

static void add_threads(struct json_object *o, const struct observed *observed,
			const struct look *now)
{
	struct json_object *list = json_object_new_array();

	add(o, "counts",
	    named(now->thread_counts, observed->thread_names,
		  observed->nr_thread_names));
	add(o, "homes",
	    named(now->homes, observed->reasons, observed->nr_reasons));
	for (unsigned int i = 0; i < now->nr_threads; i++)
		if (now->threads[i].doing != DOING_NOTHING)
			json_object_array_add(list,
					      thread_json(&now->threads[i]));
	add(o, "threads", list);
	list = json_object_new_array();
	for (unsigned int i = 0; i < now->nr_queues; i++)
		json_object_array_add(list,
				      queue_json(observed, &now->queues[i]));
	add(o, "queues", list);
	list = json_object_new_array();
	for (unsigned int i = 0; i < now->nr_carriers; i++)
		json_object_array_add(list, carrier_json(&now->carriers[i]));
	add(o, "carriers", list);
}

void stat_json(FILE *out, const struct observed *observed,
	       const struct look *before, const struct look *now)
{
	double seconds = (double)(now->at_ns - before->at_ns) / 1e9;
	struct json_object *o = json_object_new_object();
	struct sum a, b;

	stat_sum(before, &a);
	stat_sum(now, &b);
	add_number(o, "pid", (uint64_t)observed->pid);
	add_text(o, "program", observed->program);
	add(o, "seconds", json_object_new_double(seconds));
	add(o, "calls_per_second",
	    json_object_new_double(
		    stat_rate(a.completed, b.completed, seconds)));
	add(o, "latency", latency_json(before, now));
	add(o, "owners", owners_json(now));
	if (now->has_threads)
		add_threads(o, observed, now);
	fprintf(out, "%s\n",
		json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

/* Prometheus ------------------------------------------------------------------ */

static void metric(FILE *out, const char *name, const char *type,
		   const char *help)
{
	fprintf(out, "# HELP flexsc_%s %s\n# TYPE flexsc_%s %s\n", name, help,
		name, type);
}

/* Values of a label: backslash, quote and line end are written by escapes. */
static void label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	for (; *value; value++)
		if (*value == '\n')
			fputs("\\n", out);
		else
			fprintf(out,
				*value == '"' || *value == '\\' ? "\\%c" : "%c",
				*value);
	putc('"', out);
}

static void sample(FILE *out, const struct observed *observed, const char *name,
		   const char *key, const char *value, uint64_t n)
{
	fprintf(out, "flexsc_%s{pid=\"%d\",", name, (int)observed->pid);
	label(out, "program", observed->program);
	if (key) {
		putc(',', out);
		label(out, key, value);
	}
	fprintf(out, "} %lu\n", n);
}

static void prometheus_calls(FILE *out, const struct observed *observed,
			     const struct look *now)
{
	struct sum sum;
	uint64_t total;

	stat_sum(now, &sum);
	metric(out, "calls_total", "counter", "Calls posted, by system call.");
	for (unsigned int nr = 0; nr < FLEXSC_COUNTERS_CALLS; nr++)
		if (sum.calls[nr] && flexsc_call_name(nr))
			sample(out, observed, "calls_total", "call",
			       flexsc_call_name(nr), sum.calls[nr]);
	metric(out, "events_total", "counter",
	       "What happened to calls and their owners: see flexsc/counters.h.");
	for (unsigned int i = 0; i < NR_COUNTERS; i++) {
		total = 0;
		for (unsigned int c = 0; c < now->nr_calls; c++)
			total += counter(&now->calls[c].counters, i);
		sample(out, observed, "events_total", "event", counters[i].name,
		       total);
	}
	metric(out, "syscall_threads", "gauge", "Syscall threads alive.");
	sample(out, observed, "syscall_threads", NULL, NULL, sum.threads);
}

static void prometheus_latency(FILE *out, const struct observed *observed,
			       const struct look *now)
{
	char name[64];

	metric(out, "call_seconds", "histogram",
	       "Time in calls, by system call, while somebody asked for it.");
	for (unsigned int nr = 0; nr < FLEXSC_TRACE_CALLS; nr++) {
		const struct flexsc_trace_latency *l = &now->latency[nr];
		uint64_t sum = 0;

		if (!l->nr || !flexsc_call_name(nr))
			continue;
		snprintf(name, sizeof(name), "%s", flexsc_call_name(nr));
		for (unsigned int b = 0; b + 1 < FLEXSC_TRACE_BUCKETS; b++) {
			sum += l->bucket[b];
			fprintf(out, "flexsc_call_seconds_bucket{pid=\"%d\",",
				(int)observed->pid);
			label(out, "program", observed->program);
			fprintf(out, ",call=\"%s\",le=\"%.9g\"} %lu\n", name,
				duration_limit(b), sum);
		}
		sum += l->bucket[FLEXSC_TRACE_BUCKETS - 1];
		fprintf(out, "flexsc_call_seconds_bucket{pid=\"%d\",",
			(int)observed->pid);
		label(out, "program", observed->program);
		fprintf(out, ",call=\"%s\",le=\"+Inf\"} %lu\n", name, sum);
		fprintf(out, "flexsc_call_seconds_sum{pid=\"%d\",",
			(int)observed->pid);
		label(out, "program", observed->program);
		fprintf(out, ",call=\"%s\"} %.9f\n", name, (double)l->ns / 1e9);
		sample(out, observed, "call_seconds_count", "call", name, sum);
	}
}

static void prometheus_threads(FILE *out, const struct observed *observed,
			       const struct look *now)
{
	unsigned int nr[NR_DOINGS], nr_named = observed->nr_queue_names;
	uint64_t total;

	stat_doings(now, nr);
	metric(out, "threads", "gauge", "User threads, by what they do.");
	for (unsigned int i = 0; i < NR_DOINGS; i++)
		sample(out, observed, "threads", "state", stat_doing_names[i],
		       nr[i]);
	metric(out, "threads_total", "counter", "User threads so far.");
	for (unsigned int i = 0;
	     now->thread_counts && i < observed->nr_thread_names; i++)
		sample(out, observed, "threads_total", "event",
		       observed->thread_names[i], now->thread_counts[i]);
	metric(out, "homes_total", "counter",
	       "Goings home to the own kernel thread, by reason.");
	for (unsigned int i = 0; now->homes && i < observed->nr_reasons; i++)
		if (observed->reasons[i])
			sample(out, observed, "homes_total", "reason",
			       observed->reasons[i], now->homes[i]);
	metric(out, "queue_events_total", "counter",
	       "What run queues have counted, all together.");
	for (unsigned int i = 0; i < nr_named; i++) {
		total = 0;
		for (unsigned int q = 0; q < now->nr_queues; q++)
			total += now->queues[q].counts ?
					 now->queues[q].counts[i] :
					 0;
		sample(out, observed, "queue_events_total", "event",
		       observed->queue_names[i], total);
	}
	total = 0;
	for (unsigned int q = 0; q < now->nr_queues; q++)
		total += now->queues[q].ready;
	metric(out, "ready", "gauge", "User threads that wait for a carrier.");
	sample(out, observed, "ready", NULL, NULL, total);
	metric(out, "carriers", "gauge",
	       "Kernel threads that run user threads.");
	sample(out, observed, "carriers", NULL, NULL, now->nr_carriers);
}

void stat_prometheus(FILE *out, const struct observed *observed,
		     const struct look *now)
{
	prometheus_calls(out, observed, now);
	if (now->latency)
		prometheus_latency(out, observed, now);
	if (now->has_threads)
		prometheus_threads(out, observed, now);
}
