/* SPDX-License-Identifier: MIT */
/* Posting through an engine; what happens to results is the caller's. */
#include "call/owner.h"

#include "engine/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

int fx_owner_start(struct fx_owner *owner,
		   const struct fx_owner_options *options)
{
	struct fx_engine_config config = {
		.table = fx_call_table,
		.set = &owner->set,
		.max_threads = options->max_threads,
		.spin_ns = options->spin_ns,
		.keeps_files = options->keeps_files,
		.leaves = options->leaves,
		.counters = owner->counters,
		.heads = owner->heads,
	};
	int bad = fx_set_init(&owner->set, options->max_entries);

	if (bad)
		return bad;
	bad = fx_engine_new(&owner->engine, options->engine, &config,
			    owner->reason);
	if (bad) {
		fx_set_fini(&owner->set);
		return bad;
	}
	owner->flushed = 0;
	fx_counters_name(owner->counters, owner->engine->ops->name);
	return 0;
}

void fx_owner_stop(struct fx_owner *owner)
{
	owner->engine->ops->free(owner->engine);
	fx_set_fini(&owner->set);
}

int fx_owner_prepare(struct fx_owner *owner,
		     const struct fx_owner_options *options)
{
	int bad;

	fx_barrier_init();
	owner->keeps_files = options->keeps_files;
	bad = options->keeps_files ? fx_hold_init() : 0;
	if (bad)
		return bad;
	owner->counters = fx_counters_new();
	return owner->counters ? 0 : -ENOMEM;
}

int fx_owner_init(struct fx_owner *owner,
		  const struct fx_owner_options *options)
{
	int bad = fx_owner_prepare(owner, options);

	if (bad)
		return bad;
	bad = fx_owner_start(owner, options);
	if (bad)
		fx_counters_free(owner->counters);
	return bad;
}

void fx_owner_fini(struct fx_owner *owner)
{
	fx_owner_stop(owner);
	fx_counters_free(owner->counters);
}

void fx_owner_abandon(struct fx_owner *owner)
{
	owner->engine->ops->abandon(owner->engine);
	fx_counters_free(owner->counters);
	fx_set_abandon(&owner->set);
}

/* Does a call that closes its fd_arg on success look like succeeding? */
static bool will_close(const struct flexsc_entry *call)
{
	int saved = errno, got;

	if (call->nr != SYS_dup2 && call->nr != SYS_dup3)
		return true;
	if (call->args[0] == call->args[1] ||
	    (call->nr == SYS_dup3 && (call->args[2] & ~(uint64_t)O_CLOEXEC)))
		return false;
	got = fcntl((int)call->args[0], F_GETFD);
	errno = saved;
	return got >= 0;
}

void fx_owner_closing(struct fx_owner *owner, const struct flexsc_entry *call)
{
	struct fx_engine *engine = owner->engine;
	const struct fx_call_desc *desc = fx_owner_desc(call->nr);
	uint32_t first = (uint32_t)call->args[desc->fd_arg], last = first;
	struct rlimit limit = { 0, 0 };

	if (call->flags & FLEXSC_F_ARG(desc->fd_arg))
		return; /* the chain itself will open it */
	if (!will_close(call))
		return;
	if (call->nr != SYS_close_range) {
		engine->ops->closing(engine, (int)first);
		return;
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	last = (uint32_t)call->args[1];
	for (uint32_t fd = first; fd <= last && fd < limit.rlim_cur; fd++)
		engine->ops->closing(engine, (int)fd);
}

static void fill(struct fx_set *set, uint32_t index,
		 const struct flexsc_entry *call, uint64_t cookie)
{
	union fx_head head = fx_head(call->nr, call->nr_args, call->flags);

	fx_set_fill(set, index, head, call->args[0], call->args[1],
		    call->args[2], call->args[3], call->args[4], call->args[5],
		    cookie);
	fx_set_entry(set, index)->ret = call->ret;
}

enum fx_post fx_owner_take(struct fx_owner *owner,
			   const struct flexsc_entry *call, uint64_t cookie,
			   uint32_t *index)
{
	*index = fx_set_claim(&owner->set);
	if (fx_unlikely(*index == FX_NO_ENTRY))
		return FX_POST_FULL;
	fill(&owner->set, *index, call, cookie);
	owner->engine->ops->post(owner->engine, index, 1);
	return FX_POST_TAKEN;
}

enum fx_post fx_owner_post(struct fx_owner *owner, struct flexsc_entry *call,
			   uint64_t cookie, uint32_t *index)
{
	struct fx_engine *engine = owner->engine;
	const struct fx_call_desc *desc = fx_owner_desc(call->nr);

	fx_probe3(post, call->nr, cookie, call->args[0]);
	if (fx_unlikely(desc->flags & FX_CALL_CLOSES) && !owner->keeps_files)
		fx_owner_closing(owner, call);
	if ((engine->attempts >> desc->call_class & 1 ||
	     desc->flags & FX_CALL_SELF) &&
	    engine->ops->attempt(engine, call)) {
		fx_count(owner->counters, at_once);
		fx_probe2(done, cookie, call->ret);
		return FX_POST_DONE;
	}
	return fx_owner_take(owner, call, cookie, index);
}

enum fx_post fx_owner_attempt_chain(struct fx_owner *owner,
				    struct flexsc_entry *calls, unsigned nr)
{
	struct fx_engine *engine = owner->engine;
	struct fx_set *set = &owner->set;

	/* Nothing may have been done if there is no room for all of it. */
	if (set->max_entries - fx_set_claimed(set) < nr)
		return FX_POST_FULL;
	for (unsigned i = 0; i < nr; i++)
		if (fx_call_table[calls[i].nr].flags & FX_CALL_CLOSES &&
		    !owner->keeps_files)
			fx_owner_closing(owner, &calls[i]);
	fx_count(owner->counters, chains);
	if (!engine->ops->attempt_chain ||
	    engine->ops->attempt_chain(engine, calls, nr) < nr)
		return FX_POST_TAKEN;
	fx_count_add(owner->counters, at_once, nr);
	return FX_POST_DONE;
}

void fx_owner_post_chain(struct fx_owner *owner,
			 const struct flexsc_entry *calls,
			 const uint64_t *cookies, uint32_t *indices,
			 unsigned nr)
{
	struct fx_set *set = &owner->set;

	for (unsigned i = 0; i < nr; i++) {
		indices[i] = fx_set_claim(set);
		if (indices[i] == FX_NO_ENTRY)
			fx_bug(__FILE__, __LINE__, "entries were free");
		fx_probe3(post, calls[i].nr, cookies[i], calls[i].args[0]);
		fill(set, indices[i], &calls[i], cookies[i]);
	}
	owner->engine->ops->post(owner->engine, indices, nr);
}
