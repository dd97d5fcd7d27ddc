/* SPDX-License-Identifier: MIT */
/* What happens when the library is loaded, and in children. */
#include "threads/start.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Programs that are executed from here go without. */
static void leave_environment(void)
{
	const char *inherit = getenv("FLEXSC_INHERIT");
	char *list, *item, *rest, *left;

	if (!inherit || strcmp(inherit, "0") != 0 || !getenv("LD_PRELOAD"))
		return;
	list = strdup(getenv("LD_PRELOAD"));
	left = calloc(1, strlen(getenv("LD_PRELOAD")) + 2);
	if (!list || !left)
		goto free;
	for (item = strtok_r(list, ": ", &rest); item;
	     item = strtok_r(NULL, ": ", &rest)) {
		if (strstr(item, "libflexsc-threads.so"))
			continue;
		strcat(left, *left ? ":" : "");
		strcat(left, item);
	}
	if (*left)
		setenv("LD_PRELOAD", left, 1);
	else
		unsetenv("LD_PRELOAD");
free:
	free(list);
	free(left);
}

static __attribute__((constructor)) void init(void)
{
	leave_environment();
	pthread_atfork(NULL, NULL, fx_threads_after_fork);
}
