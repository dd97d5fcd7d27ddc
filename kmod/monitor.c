// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may use a set, and whose calls run unseen. The switches that an
 * administrator has are here.
 */
#include "monitor.h"

#include <linux/cred.h>
#include <linux/module.h>
#include <linux/user_namespace.h>

#define ALWAYS                                             \
	(SYSCALL_WORK_SECCOMP | SYSCALL_WORK_SYSCALL_EMU | \
	 SYSCALL_WORK_SYSCALL_USER_DISPATCH)
#define DEFAULT \
	(ALWAYS | SYSCALL_WORK_SYSCALL_TRACE | SYSCALL_WORK_SYSCALL_AUDIT)

unsigned long fxk_watch_mask __read_mostly = DEFAULT;

static int set_work(const char *value, const struct kernel_param *param,
		    unsigned long work)
{
	bool allowed;
	int bad = kstrtobool(value, &allowed);

	if (bad)
		return bad;
	*(bool *)param->arg = allowed;
	if (allowed)
		WRITE_ONCE(fxk_watch_mask, fxk_watch_mask & ~work);
	else
		WRITE_ONCE(fxk_watch_mask, fxk_watch_mask | work);
	return 0;
}

static int set_audited(const char *value, const struct kernel_param *param)
{
	return set_work(value, param, SYSCALL_WORK_SYSCALL_AUDIT);
}

static int set_traced(const char *value, const struct kernel_param *param)
{
	return set_work(value, param, SYSCALL_WORK_SYSCALL_TRACE);
}

static bool audited, traced;
static const struct kernel_param_ops audited_ops = { .set = set_audited,
						     .get = param_get_bool };
static const struct kernel_param_ops traced_ops = { .set = set_traced,
						    .get = param_get_bool };
module_param_cb(audited, &audited_ops, &audited, 0644);
MODULE_PARM_DESC(
	audited,
	"serve threads whose system calls are audited; of theirs the log has RUN and WAIT only");
module_param_cb(traced, &traced_ops, &traced, 0644);
MODULE_PARM_DESC(
	traced,
	"serve threads whose system calls a debugger stops; it sees RUN and WAIT only");

int fxk_monitor_enter(const struct fxk_ctx *ctx)
{
	if (current->mm != ctx->mm)
		return -EPERM;
	return fxk_watched() ? -EACCES : 0;
}

static bool same_groups(const struct group_info *a, const struct group_info *b)
{
	if (a == b)
		return true;
	if (a->ngroups != b->ngroups)
		return false;
	for (int i = 0; i < a->ngroups; i++)
		if (!gid_eq(a->gid[i], b->gid[i]))
			return false;
	return true;
}

/*
 * Threads of a process share one structure until one of them changes: then
 * each of the others, if it follows, has a copy with the same content. What a
 * security module keeps is not compared: it gives threads of one process
 * different labels only where the program asks for that, thread by thread.
 */
bool fxk_same_cred(const struct cred *a, const struct cred *b)
{
	if (a == b)
		return true;
	return uid_eq(a->uid, b->uid) && uid_eq(a->euid, b->euid) &&
	       uid_eq(a->suid, b->suid) && uid_eq(a->fsuid, b->fsuid) &&
	       gid_eq(a->gid, b->gid) && gid_eq(a->egid, b->egid) &&
	       gid_eq(a->sgid, b->sgid) && gid_eq(a->fsgid, b->fsgid) &&
	       a->securebits == b->securebits && a->user_ns == b->user_ns &&
	       !memcmp(&a->cap_effective, &b->cap_effective,
		       sizeof(a->cap_effective)) &&
	       !memcmp(&a->cap_permitted, &b->cap_permitted,
		       sizeof(a->cap_permitted)) &&
	       !memcmp(&a->cap_inheritable, &b->cap_inheritable,
		       sizeof(a->cap_inheritable)) &&
	       !memcmp(&a->cap_ambient, &b->cap_ambient,
		       sizeof(a->cap_ambient)) &&
	       !memcmp(&a->cap_bset, &b->cap_bset, sizeof(a->cap_bset)) &&
	       same_groups(a->group_info, b->group_info);
}
