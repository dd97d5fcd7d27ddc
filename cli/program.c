/* SPDX-License-Identifier: MIT */
/*
 * Looks at a program file as the kernel and ld.so would, to say in advance
 * whether LD_PRELOAD can reach it: scripts to their interpreter, ELF headers,
 * what makes ld.so ignore the environment. Reads headers only; starts nothing.
 */
#include "cli/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	MAX_SCRIPTS = 5, /* interpreters of interpreters, as the kernel does */
	GO_BUILD_ID = 4, /* type of a note of name "Go" */
};

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

struct image {
	const unsigned char *start;
	size_t size;
};

/* The first file of this name in PATH that can be executed, as execvp(3). */
static bool find(const char *name, char *path)
{
	const char *list = getenv("PATH"), *end;
	struct stat st;

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	for (list = list ? list : "/bin:/usr/bin";; list = end + 1) {
		end = strchrnul(list, ':');
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - list),
			     list, end > list ? "/" : "", name) < PATH_MAX &&
		    stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(path, X_OK) == 0)
			return true;
		if (!*end)
			return false;
	}
}

/* ELF ----------------------------------------------------------------------- */

static const void *at(const struct image *i, uint64_t offset, uint64_t size)
{
	return offset <= i->size && size <= i->size - offset ?
		       i->start + offset :
		       NULL;
}

static const Elf64_Phdr *segment(const struct image *i, unsigned int nr)
{
	const Elf64_Ehdr *e = at(i, 0, sizeof(*e));

	if (nr >= e->e_phnum || e->e_phentsize != sizeof(Elf64_Phdr))
		return NULL;
	return at(i, e->e_phoff + nr * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
}

/* The path of its loader, or NULL: it needs none. */
static const char *loader(const struct image *i)
{
	const Elf64_Phdr *p;

	for (unsigned int nr = 0; (p = segment(i, nr)); nr++) {
		const char *path = at(i, p->p_offset, p->p_filesz);

		if (p->p_type == PT_INTERP && path &&
		    memchr(path, 0, p->p_filesz))
			return path;
	}
	return NULL;
}

static bool notes_name_go(const struct image *i, uint64_t offset, uint64_t size)
{
	const Elf64_Nhdr *n;

	while (size >= sizeof(*n) && (n = at(i, offset, sizeof(*n) + 4))) {
		uint64_t length = sizeof(*n) + ((n->n_namesz + 3ULL) & ~3ULL) +
				  ((n->n_descsz + 3ULL) & ~3ULL);

		if (n->n_type == GO_BUILD_ID && n->n_namesz == 4 &&
		    memcmp(n + 1, "Go\0", 4) == 0)
			return true;
		if (length >= size)
			break;
		offset += length;
		size -= length;
	}
	return false;
}

static bool has_go_section(const struct image *i)
{
	static const char wanted[] = ".go.buildinfo";
	const Elf64_Ehdr *e = at(i, 0, sizeof(*e));
	const Elf64_Shdr *table, *names;
	const char *name;

	table = at(i, e->e_shoff, (uint64_t)e->e_shnum * sizeof(*table));
	if (!table || e->e_shentsize != sizeof(*table) ||
	    e->e_shstrndx >= e->e_shnum)
		return false;
	names = &table[e->e_shstrndx];
	for (unsigned int nr = 0; nr < e->e_shnum; nr++) {
		name = at(i, names->sh_offset + table[nr].sh_name,
			  sizeof(wanted));
		if (name && memcmp(name, wanted, sizeof(wanted)) == 0)
			return true;
	}
	return false;
}

static bool is_go(const struct image *i)
{
	const Elf64_Phdr *p;

	for (unsigned int nr = 0; (p = segment(i, nr)); nr++)
		if (p->p_type == PT_NOTE &&
		    notes_name_go(i, p->p_offset, p->p_filesz))
			return true;
	return has_go_section(i);
}

/* What is wrong with an ELF file, as the end of "PROGRAM ..."; NULL: nothing. */
static const char *elf_obstacle(const struct image *i)
{
	const Elf64_Ehdr *e = at(i, 0, sizeof(*e));
	const char *interpreter;

	if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0)
		return NULL;
	if (e->e_ident[EI_CLASS] != ELFCLASS64)
		return "is a 32-bit program";
	if (e->e_ident[EI_DATA] != ELFDATA2LSB || e->e_machine != MACHINE)
		return "is a program for another machine";
	if (is_go(i))
		return "is a Go program, which makes its system calls itself";
	interpreter = loader(i);
	if (!interpreter)
		return "is statically linked";
	if (strstr(interpreter, "ld-musl"))
		return "uses the C library musl, not glibc";
	if (!strstr(interpreter, "ld-linux"))
		return "does not use glibc's loader";
	return NULL;
}

/* Privileges ---------------------------------------------------------------- */

/* ld.so ignores LD_PRELOAD in a program that has more rights than its caller
 * (AT_SECURE); the real user 0 gains nothing by file capabilities. */
static const char *privilege_obstacle(int fd)
{
	struct statvfs fs;
	struct stat st;

	if (getuid() != geteuid() || getgid() != getegid())
		return "would run with privileges that are not the caller's";
	if (fstat(fd, &st) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return NULL;
	if (fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_NOSUID))
		return NULL;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return "is setuid";
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) &&
	    st.st_gid != getgid())
		return "is setgid";
	if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return "has file capabilities";
	return NULL;
}

/* Scripts ------------------------------------------------------------------- */

/*
 * #!/usr/bin/env [-S] [NAME=VALUE] PROGRAM: what env will start. Otherwise the
 * interpreter itself.
 */
static bool interpreter(const struct image *i, char *name)
{
	char line[PATH_MAX] = "", *word, *rest;
	size_t length = i->size < sizeof(line) ? i->size : sizeof(line) - 1;

	if (i->size < 3 || memcmp(i->start, "#!", 2) != 0)
		return false;
	memcpy(line, i->start + 2, length - 2);
	line[strcspn(line, "\n")] = 0;
	word = strtok_r(line, " \t\r", &rest);
	if (!word)
		return false;
	snprintf(name, PATH_MAX, "%s", word);
	if (strcmp(strrchr(word, '/') ? strrchr(word, '/') + 1 : word, "env"))
		return true;
	while ((word = strtok_r(NULL, " \t\r", &rest)))
		if (*word != '-' && !strchr(word, '=')) {
			snprintf(name, PATH_MAX, "%s", word);
			break;
		}
	return true;
}

/* Looks at one file. Returns what is wrong with it, or NULL; if it is a script
 * its interpreter is in next. */
static const char *look(const char *path, char *next)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct image i = { .start = MAP_FAILED };
	const char *why = NULL;
	struct stat st;

	*next = 0;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		i.size = (size_t)st.st_size;
		i.start = mmap(NULL, i.size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	if (i.start != MAP_FAILED) {
		if (!interpreter(&i, next))
			why = elf_obstacle(&i);
		if (!why && !*next)
			why = privilege_obstacle(fd);
		munmap((void *)i.start, i.size);
	}
	close(fd);
	return why;
}

int program_obstacle(const char *name, char *why, size_t size)
{
	char path[PATH_MAX], next[PATH_MAX];
	const char *what;

	snprintf(next, sizeof(next), "%s", name);
	for (int depth = 0; depth < MAX_SCRIPTS && find(next, path); depth++) {
		what = look(path, next);
		if (what) {
			snprintf(why, size, "%s %s", path, what);
			return 1;
		}
		if (!*next)
			break;
	}
	return 0;
}
