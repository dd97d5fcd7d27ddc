/* SPDX-License-Identifier: MIT */
/* Lines, and the names of numbers in them; see cli/text.h. */
#include "cli/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool has_room(struct text *text, size_t more)
{
	size_t room = text->room ? text->room : 256;
	char *grown;

	while (room - text->length <= more)
		room *= 2;
	if (room == text->room)
		return true;
	grown = realloc(text->chars, room);
	if (!grown)
		return false;
	text->chars = grown;
	text->room = room;
	return true;
}

void text_add(struct text *text, const char *format, ...)
{
	va_list list;
	int size;

	va_start(list, format);
	size = vsnprintf(NULL, 0, format, list);
	va_end(list);
	if (size < 0 || !has_room(text, (size_t)size + 1))
		return;
	va_start(list, format);
	vsnprintf(text->chars + text->length, (size_t)size + 1, format, list);
	va_end(list);
	text->length += (size_t)size;
}

static void add_octal(struct text *text, unsigned c, bool digit_follows)
{
	text_add(text, digit_follows ? "\\%03o" : "\\%o", c);
}

void text_quote(struct text *text, const void *bytes, size_t size)
{
	static const char escapes[] = "\tt\nn\vv\ff\rr\"\"\\\\";
	const unsigned char *c = bytes;

	text_add(text, "\"");
	for (size_t i = 0; i < size; i++) {
		const char *e = escapes;

		while (*e && (unsigned char)*e != c[i])
			e += 2;
		if (*e)
			text_add(text, "\\%c", e[1]);
		else if (c[i] >= ' ' && c[i] <= '~')
			text_add(text, "%c", c[i]);
		else
			add_octal(text, c[i],
				  i + 1 < size && c[i + 1] >= '0' &&
					  c[i + 1] <= '9');
	}
	text_add(text, "\"");
}

void text_quote_hex(struct text *text, const void *bytes, size_t size)
{
	const unsigned char *c = bytes;

	text_add(text, "\"");
	for (size_t i = 0; i < size; i++)
		text_add(text, "\\x%02x", c[i]);
	text_add(text, "\"");
}

void text_clear(struct text *text)
{
	text->length = 0;
	if (text->chars)
		text->chars[0] = '\0';
}

void text_free(struct text *text)
{
	free(text->chars);
	*text = (struct text){ 0 };
}

void text_one(struct text *text, uint64_t value, const struct named *names,
	      size_t nr, const char *unknown)
{
	for (size_t i = 0; i < nr; i++)
		if (names[i].value == value) {
			text_add(text, "%s", names[i].name);
			return;
		}
	text_add(text, "%#lx", value);
	if (unknown)
		text_add(text, " /* %s */", unknown);
}

void text_flags(struct text *text, uint64_t value, const struct named *names,
		size_t nr, const char *unknown)
{
	uint64_t left = value;
	const char *between = "";

	for (size_t i = 0; i < nr; i++) {
		uint64_t bits = names[i].value;

		if (bits ? (left & bits) == bits : value == 0) {
			text_add(text, "%s%s", between, names[i].name);
			between = "|";
			left &= ~bits;
		}
	}
	if (!*between || left) {
		text_add(text, "%s%#lx", between, left);
		if (unknown && left)
			text_add(text, " /* %s */", unknown);
	}
}
