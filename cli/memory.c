/* SPDX-License-Identifier: MIT */
/* Another process's memory; see cli/memory.h. */
#include "cli/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	MAX_PARTS = 256, /* of one call */
	PATH = 64
};

void memory_forget(struct memory *memory)
{
	memory->length = 0;
}

/* Return: how many bytes, or -errno. */
static ssize_t fetch(pid_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec here = { to, size };
	struct iovec there = { (void *)(uintptr_t)address, size };
	ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);

	return got < 0 ? -errno : got;
}

static bool has(const struct memory *memory, uint64_t address, size_t size)
{
	return address >= memory->block &&
	       address + size <= memory->block + memory->length;
}

int memory_read(struct memory *memory, uint64_t address, void *to, size_t size)
{
	uint64_t block = address & ~(uint64_t)(MEMORY_BLOCK - 1);
	ssize_t got;

	if (!has(memory, address, size)) {
		/* A whole block if there is one: records are near each other. */
		got = fetch(memory->pid, block, memory->bytes, MEMORY_BLOCK);
		memory->block = block;
		memory->length = got > 0 ? (size_t)got : 0;
	}
	if (has(memory, address, size)) {
		memcpy(to, memory->bytes + (address - memory->block), size);
		return 0;
	}
	got = fetch(memory->pid, address, to, size);
	if (got < 0)
		return (int)got;
	return (size_t)got == size ? 0 : -EFAULT;
}

int memory_string(struct memory *memory, uint64_t address, char *to,
		  size_t size)
{
	size_t at;
	int bad;

	for (at = 0; at + 1 < size; at++) {
		bad = memory_read(memory, address + at, to + at, 1);
		if (bad || !to[at])
			break;
	}
	to[at] = '\0';
	return at ? 0 : bad;
}

void memory_read_parts(struct memory *memory, struct memory_part *parts,
		       unsigned int nr)
{
	struct iovec here[MAX_PARTS], there[MAX_PARTS];
	unsigned int done = 0, n;
	ssize_t got;

	while (done < nr) {
		for (n = 0; n < MAX_PARTS && done + n < nr; n++) {
			here[n] = (struct iovec){ parts[done + n].to,
						  parts[done + n].size };
			there[n] = (struct iovec){
				(void *)(uintptr_t)parts[done + n].address,
				parts[done + n].size
			};
			parts[done + n].had = false;
		}
		got = process_vm_readv(memory->pid, here, n, there, n, 0);
		/* It stops at the first part that is not there. */
		while (n && got >= (ssize_t)parts[done].size) {
			got -= (ssize_t)parts[done].size;
			parts[done++].had = true;
			n--;
		}
		if (n)
			done++;
	}
}

int memory_mappings(pid_t pid, const char *name,
		    void (*see)(uint64_t begin, uint64_t end, void *arg),
		    void *arg)
{
	char path[PATH], line[PATH_MAX + 128], *found;
	unsigned long begin, end;
	size_t length = strlen(name);
	int nr = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	errno = 0;
	while (fgets(line, sizeof(line), maps)) {
		found = strchr(line, '/');
		if (!found || strncmp(found, name, length) != 0 ||
		    (found[length] != ' ' && found[length] != '\n') ||
		    sscanf(line, "%lx-%lx", &begin, &end) != 2)
			continue;
		see(begin, end, arg);
		nr++;
	}
	if (ferror(maps))
		nr = errno == ENOENT ? -ESRCH : -errno;
	fclose(maps);
	return nr;
}
