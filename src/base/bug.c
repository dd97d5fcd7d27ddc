/* SPDX-License-Identifier: MIT */
/* The end of a process whose library state is broken; see fx_bug(). */
#include "base/types.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put(const char *s)
{
	ssize_t n = write(STDERR_FILENO, s, strlen(s));

	(void)n;
}

void fx_bug(const char *file, int line, const char *what)
{
	char digits[12] = { 0 };
	int i = sizeof(digits) - 2;

	do {
		digits[i--] = '0' + line % 10;
		line /= 10;
	} while (line && i >= 0);
	put("flexsc: broken invariant at ");
	put(file);
	put(":");
	put(&digits[i + 1]);
	put(": ");
	put(what);
	put("\nPlease report this line with the program and its engine.\n");
	abort();
}
