/* SPDX-License-Identifier: MIT */
/*
 * flexsc.ko and the kernel that is to load it, for `flexsc doctor`. Whether
 * the engine works is for the library to say; this says what to do if not.
 */
#include "cli/kernel.h"

#include "bench/report.h"

#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define DEVICE "/dev/flexsc"
#define SECURE_BOOT                  \
	"/sys/firmware/efi/efivars/" \
	"SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

static enum answer as_answer(bool yes)
{
	return yes ? ANSWER_YES : ANSWER_NO;
}

/* The first line of a small file; false if it cannot be read. */
static bool read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "r");
	bool got = file && fgets(line, size, file);

	if (file)
		fclose(file);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

static enum answer is_built(const char *release)
{
	static const char *const places[] = {
		"/lib/modules/%s/updates/flexsc.ko*",
		"/lib/modules/%s/updates/dkms/flexsc.ko*",
		"/lib/modules/%s/extra/flexsc.ko*",
	};
	bool found = false;
	char pattern[256];
	glob_t matches;

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(pattern, sizeof(pattern), places[i], release);
		found = found || !glob(pattern, GLOB_NOSORT, NULL, &matches);
		globfree(&matches);
	}
	return as_answer(found);
}

/* From the configuration that distributions put beside their kernels. */
static enum answer has_notifiers(const char *release)
{
	char path[128], line[256];
	bool found = false;
	FILE *config;

	snprintf(path, sizeof(path), "/boot/config-%s", release);
	config = fopen(path, "r");
	if (!config) {
		snprintf(path, sizeof(path), "/lib/modules/%s/config", release);
		config = fopen(path, "r");
	}
	if (!config)
		return ANSWER_UNKNOWN;
	while (!found && fgets(line, sizeof(line), config))
		found = !strcmp(line, "CONFIG_PREEMPT_NOTIFIERS=y\n");
	fclose(config);
	return as_answer(found);
}

/* "none [integrity] confidentiality": the one in brackets is in force. */
static void look_at_lockdown(struct kernel_facts *facts)
{
	char line[128], *begin, *end = NULL;

	snprintf(facts->lockdown, sizeof(facts->lockdown), "unknown");
	if (!read_line("/sys/kernel/security/lockdown", line, sizeof(line)))
		return;
	begin = strchr(line, '[');
	if (begin)
		end = strchr(begin, ']');
	if (!end)
		return;
	*end = '\0';
	snprintf(facts->lockdown, sizeof(facts->lockdown), "%.20s", begin + 1);
}

/* Four bytes of attributes come before the value. */
static enum answer has_secure_boot(void)
{
	unsigned char value[5];
	int fd;
	ssize_t n;

	if (access("/sys/firmware/efi", F_OK))
		return ANSWER_NO;
	fd = open(SECURE_BOOT, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ANSWER_UNKNOWN;
	n = read(fd, value, sizeof(value));
	close(fd);
	return n == sizeof(value) ? as_answer(value[4] == 1) : ANSWER_UNKNOWN;
}

static enum answer wants_signatures(const struct kernel_facts *facts)
{
	char line[8];

	if (!strcmp(facts->lockdown, "integrity") ||
	    !strcmp(facts->lockdown, "confidentiality"))
		return ANSWER_YES;
	if (read_line("/sys/module/module/parameters/sig_enforce", line,
		      sizeof(line)))
		return as_answer(line[0] == 'Y');
	return ANSWER_UNKNOWN;
}

const struct kernel_facts *kernel_facts(void)
{
	static struct kernel_facts facts;
	struct utsname system;
	int fd;

	uname(&system);
	facts.built = is_built(system.release);
	facts.loaded = as_answer(!access("/sys/module/flexsc", F_OK));
	facts.device = as_answer(!access(DEVICE, F_OK));
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	facts.usable = as_answer(fd >= 0);
	if (fd >= 0)
		close(fd);
	facts.notifiers = has_notifiers(system.release);
	look_at_lockdown(&facts);
	facts.signatures = wants_signatures(&facts);
	facts.secure_boot = has_secure_boot();
	return &facts;
}

static const char *module_state(const struct kernel_facts *facts)
{
	if (facts->usable == ANSWER_YES)
		return "loaded, and this process may use " DEVICE;
	if (facts->device == ANSWER_YES)
		return "loaded, but this process may not open " DEVICE
		       ": it is for members of the group flexsc (as root: "
		       "adduser USER flexsc)";
	if (facts->loaded == ANSWER_YES)
		return "loaded, but there is no " DEVICE
		       " here (a container without the device?)";
	if (facts->notifiers == ANSWER_NO)
		return "impossible with this kernel: it has no preempt "
		       "notifiers (it needs CONFIG_PREEMPT_NOTIFIERS, which "
		       "CONFIG_KVM selects)";
	if (facts->built == ANSWER_YES)
		return facts->signatures == ANSWER_YES ?
			       "installed, not loaded (as root: modprobe "
			       "flexsc; this kernel wants it signed with a "
			       "key that it knows, see flexsc(4))" :
			       "installed, not loaded (as root: modprobe "
			       "flexsc)";
	return "not installed for this kernel (from the source tree, as "
	       "root: make install-kmod)";
}

static const char *word(enum answer answer)
{
	static const char *const words[] = { "no", "yes", "unknown" };

	return words[answer];
}

void kernel_print(const struct kernel_facts *facts)
{
	char line[200];

	printf("Module\n");
	report_fold("  flexsc.ko    ", module_state(facts));
	snprintf(line, sizeof(line),
		 "preempt notifiers: %s; only signed modules: %s; Secure "
		 "Boot: %s; lockdown: %s",
		 word(facts->notifiers), word(facts->signatures),
		 word(facts->secure_boot), facts->lockdown);
	report_fold("  kernel       ", line);
}

static struct json_object *answer_json(enum answer answer)
{
	return answer == ANSWER_UNKNOWN ? NULL :
					  json_object_new_boolean(answer);
}

struct json_object *kernel_json(const struct kernel_facts *facts)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "installed", answer_json(facts->built));
	json_object_object_add(o, "loaded", answer_json(facts->loaded));
	json_object_object_add(o, "device", answer_json(facts->device));
	json_object_object_add(o, "usable", answer_json(facts->usable));
	json_object_object_add(o, "preempt_notifiers",
			       answer_json(facts->notifiers));
	json_object_object_add(o, "signatures_enforced",
			       answer_json(facts->signatures));
	json_object_object_add(o, "secure_boot",
			       answer_json(facts->secure_boot));
	json_object_object_add(o, "lockdown",
			       json_object_new_string(facts->lockdown));
	return o;
}
