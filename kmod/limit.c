// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits by user. Memory is charged to the cgroup besides; these keep a user
 * from taking what no cgroup counts: threads that cannot be seen to be ours,
 * and address space of the kernel's tables.
 */
#include "limit.h"

#include <linux/cred.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

static uint max_entries = FLEXSC_MAX_ENTRIES;
module_param(max_entries, uint, 0644);
MODULE_PARM_DESC(max_entries, "entries of one page set, at most");
static uint max_threads = 64;
module_param(max_threads, uint, 0644);
MODULE_PARM_DESC(max_threads, "threads lent to one page set, at most");
static uint user_sets = 256;
module_param(user_sets, uint, 0644);
MODULE_PARM_DESC(user_sets,
		 "page sets of one user, at most; root's are not counted");
static uint user_threads = 1024;
module_param(user_threads, uint, 0644);
MODULE_PARM_DESC(user_threads,
		 "lent threads of one user, at most; root's are not counted");

struct fxk_user {
	struct list_head link;
	kuid_t uid;
	uint nr_sets; /* users_lock */
	atomic_t nr_threads;
};

static DEFINE_MUTEX(users_lock);
static LIST_HEAD(users);

static struct fxk_user *find(kuid_t uid)
{
	struct fxk_user *user;

	list_for_each_entry(user, &users,
			    link) if (uid_eq(user->uid, uid)) return user;
	user = kzalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return NULL;
	user->uid = uid;
	list_add(&user->link, &users);
	return user;
}

static void forget(struct fxk_user *user)
{
	list_del(&user->link);
	kfree(user);
}

static bool is_root(const struct fxk_user *user)
{
	return uid_eq(user->uid, GLOBAL_ROOT_UID);
}

struct fxk_user *fxk_user_get(int *error)
{
	struct fxk_user *user;

	mutex_lock(&users_lock);
	user = find(current_uid());
	if (!user) {
		*error = -ENOMEM;
	} else if (user->nr_sets < READ_ONCE(user_sets) || is_root(user)) {
		user->nr_sets++;
	} else {
		*error = -EDQUOT;
		if (!user->nr_sets)
			forget(user);
		user = NULL;
	}
	mutex_unlock(&users_lock);
	return user;
}

void fxk_user_put(struct fxk_user *user)
{
	mutex_lock(&users_lock);
	if (!--user->nr_sets)
		forget(user);
	mutex_unlock(&users_lock);
}

bool fxk_user_add_thread(struct fxk_user *user)
{
	if (atomic_inc_return(&user->nr_threads) <= READ_ONCE(user_threads) ||
	    is_root(user))
		return true;
	atomic_dec(&user->nr_threads);
	return false;
}

void fxk_user_drop_thread(struct fxk_user *user)
{
	atomic_dec(&user->nr_threads);
}

u32 fxk_max_threads(void)
{
	return READ_ONCE(max_threads);
}

u32 fxk_max_entries(void)
{
	return min_t(u32, READ_ONCE(max_entries), FLEXSC_MAX_ENTRIES);
}
