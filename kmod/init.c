// SPDX-License-Identifier: GPL-2.0-only
/* flexsc.ko: exception-less system calls. Loading and unloading. */
#include "call.h"
#include "ctx.h"
#include "run.h"
#include "symbols.h"

#include <linux/miscdevice.h>
#include <linux/module.h>

/* Who may use it is for udev and the administrator to say. */
static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "flexsc",
	.fops = &fxk_fops,
	.mode = 0600,
};

static int __init fxk_init(void)
{
	int bad = fxk_symbols_init();

	if (bad)
		return bad;
	bad = fxk_calls_init();
	if (bad)
		return bad;
	fxk_run_init();
	bad = misc_register(&device);
	if (bad)
		goto fini;
	return 0;
fini:
	fxk_run_fini();
	fxk_calls_fini();
	return bad;
}

static void __exit fxk_exit(void)
{
	misc_deregister(&device);
	fxk_run_fini();
	/* Sets that are gone may still wait for this, and wake-ups end. */
	rcu_barrier();
	synchronize_rcu();
	fxk_calls_fini();
}

module_init(fxk_init);
module_exit(fxk_exit);
MODULE_DESCRIPTION("FlexSC: exception-less system calls");
MODULE_LICENSE("GPL");
