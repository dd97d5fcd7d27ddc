/* SPDX-License-Identifier: MIT */
/* What this kernel says about flexsc.ko: is it there, and could it be? */
#ifndef CLI_KERNEL_H
#define CLI_KERNEL_H

#include <json-c/json.h>

enum answer {
	ANSWER_NO,
	ANSWER_YES,
	ANSWER_UNKNOWN
};

struct kernel_facts {
	enum answer built; /* a module file for this kernel is installed */
	enum answer loaded;
	enum answer device; /* there is one */
	enum answer usable; /* this process may open it */
	enum answer notifiers; /* CONFIG_PREEMPT_NOTIFIERS */
	enum answer signatures; /* only signed modules are loaded */
	enum answer secure_boot;
	char lockdown[32]; /* none, integrity, confidentiality, or unknown */
};

const struct kernel_facts *kernel_facts(void);
void kernel_print(const struct kernel_facts *facts);
struct json_object *kernel_json(const struct kernel_facts *facts);

#endif /* CLI_KERNEL_H */
