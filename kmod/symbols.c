// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finding functions that are not exported, by a kprobe that is never armed.
 */
#include "symbols.h"

#include <linux/kprobes.h>

/* The instruction that indirect calls must land on, and what sealing leaves. */
#define ENDBR 0xfa1e0ff3u
#define SEALED 0x001f0f66u

long fxk_no_switch(const struct pt_regs *regs, unsigned int nr)
{
	return -ENOSYS;
}

void fxk_no_work(void)
{
}

DEFINE_STATIC_CALL(fxk_x64_sys_call, fxk_no_switch);
DEFINE_STATIC_CALL(fxk_task_work_run, fxk_no_work);

static void *find(const char *name)
{
	struct kprobe probe = { .symbol_name = name,
				.flags = KPROBE_FLAG_DISABLED };
	u32 *at;

	if (register_kprobe(&probe)) {
		pr_err("flexsc: this kernel has no %s()\n", name);
		return NULL;
	}
	at = (u32 *)probe.addr;
	unregister_kprobe(&probe);
	/* A probe sits behind it. */
	if (at[-1] == ENDBR || at[-1] == SEALED)
		at--;
	return at;
}

int fxk_symbols_init(void)
{
	void *switch_fn = find("x64_sys_call");
	void *work_fn = find("task_work_run");

	if (!switch_fn || !work_fn)
		return -ENOENT;
	static_call_update(fxk_x64_sys_call, (typeof(&fxk_no_switch))switch_fn);
	static_call_update(fxk_task_work_run, (typeof(&fxk_no_work))work_fn);
	return 0;
}
