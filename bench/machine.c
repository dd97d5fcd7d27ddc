/* SPDX-License-Identifier: MIT */
/*
 * What the machine is: read from the kernel's files, without measuring. What
 * its operations cost is in bench/cost.c.
 */
#include "bench/machine.h"

#include <dirent.h>
#include <linux/membarrier.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define VULNERABILITIES "/sys/devices/system/cpu/vulnerabilities"
#define FSGSBASE_BIT 2ul /* of AT_HWCAP2 */

/* First line of a file without its end; false if it cannot be read. */
static bool read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");
	bool good;

	if (!f)
		return false;
	good = fgets(line, size, f) != NULL;
	fclose(f);
	if (good)
		line[strcspn(line, "\n")] = 0;
	return good;
}

static void read_cpu(struct machine *m)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(m->cpu, sizeof(m->cpu), "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		colon[1 + strcspn(colon + 1, "\n")] = 0;
		snprintf(m->cpu, sizeof(m->cpu), "%s",
			 colon + 1 + strspn(colon + 1, " "));
		break;
	}
	if (f)
		fclose(f);
}

/* "spectre_v2: Enhanced IBRS, ...": of each only what was done first. */
static void add_mitigation(struct machine *m, const char *name)
{
	size_t used = strlen(m->mitigations);
	char path[512], line[256], *what = line;

	snprintf(path, sizeof(path), VULNERABILITIES "/%s", name);
	if (!read_line(path, line, sizeof(line)) ||
	    strncmp(line, "Not affected", 12) == 0)
		return;
	if (strncmp(line, "Mitigation: ", 12) == 0)
		what = line + 12;
	what[strcspn(what, ";")] = 0;
	snprintf(m->mitigations + used, sizeof(m->mitigations) - used,
		 "%s%s: %s", used ? ", " : "", name, what);
}

static void read_mitigations(struct machine *m)
{
	struct dirent **names;
	int nr = scandir(VULNERABILITIES, &names, NULL, alphasort);

	for (int i = 0; i < nr; i++) {
		if (names[i]->d_name[0] != '.')
			add_mitigation(m, names[i]->d_name);
		free(names[i]);
	}
	if (nr >= 0)
		free(names);
	if (!m->mitigations[0])
		snprintf(m->mitigations, sizeof(m->mitigations), "%s",
			 nr < 0 ? "unknown" : "none needed");
}

static void read_cpus(struct machine *m)
{
	m->cpu_other = -1;
	if (sched_getaffinity(0, sizeof(m->allowed), &m->allowed))
		CPU_SET(0, &m->allowed);
	m->nr_cpus = CPU_COUNT(&m->allowed);
	m->nr_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	while (!CPU_ISSET((size_t)m->cpu_app, &m->allowed))
		m->cpu_app++;
	for (int i = m->cpu_app + 1; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET((size_t)i, &m->allowed)) {
			m->cpu_other = i;
			break;
		}
	}
}

static struct machine the_machine;

static void read_machine(void)
{
	struct machine *m = &the_machine;
	struct utsname names;
	char line[64];
	long commands;

	uname(&names);
	snprintf(m->kernel, sizeof(m->kernel), "%s", names.release);
	read_cpu(m);
	read_mitigations(m);
	read_cpus(m);
	m->io_uring_disabled = -1;
	if (read_line("/proc/sys/kernel/io_uring_disabled", line, sizeof(line)))
		m->io_uring_disabled = atoi(line);
	m->fsgsbase = getauxval(AT_HWCAP2) & FSGSBASE_BIT;
	commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	m->membarrier = commands > 0 &&
			(commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	getrlimit(RLIMIT_NOFILE, &m->nofile);
}

const struct machine *machine(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_machine);
	return &the_machine;
}

struct json_object *machine_json(void)
{
	const struct machine *m = machine();
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "kernel", json_object_new_string(m->kernel));
	json_object_object_add(o, "cpu", json_object_new_string(m->cpu));
	json_object_object_add(o, "cpus", json_object_new_int(m->nr_cpus));
	json_object_object_add(o, "mitigations",
			       json_object_new_string(m->mitigations));
	return o;
}

void machine_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

void machine_unpin(void)
{
	sched_setaffinity(0, sizeof(cpu_set_t), &machine()->allowed);
}
