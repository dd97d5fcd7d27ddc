/* SPDX-License-Identifier: MIT */
/* A line that grows. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *chars; /* or NULL while it is empty */
	size_t length, room;
};

void text_add(struct text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* In quotes; what is not printable in ASCII as C has it. */
void text_quote(struct text *text, const void *bytes, size_t size);
/* All of them by number. */
void text_quote_hex(struct text *text, const void *bytes, size_t size);
void text_clear(struct text *text);
void text_free(struct text *text);

/* Numbers that have names. */
struct named {
	uint64_t value;
	const char *name;
};

#define NAMED(constant)             \
	{                           \
		constant, #constant \
	}
#define NR_NAMED(table) (sizeof(table) / sizeof((table)[0]))

/* The name of one; without, the number in hexadecimal: 0x7 or "PREFIX_???". */
void text_one(struct text *text, uint64_t value, const struct named *names,
	      size_t nr, const char *unknown);
/* Those whose bits are set, with | between; 0 if none is. */
void text_flags(struct text *text, uint64_t value, const struct named *names,
		size_t nr, const char *unknown);

#endif /* CLI_TEXT_H */
