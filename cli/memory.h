/* SPDX-License-Identifier: MIT */
/* Reading the memory of another process, which goes on meanwhile. */
#ifndef CLI_MEMORY_H
#define CLI_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	MEMORY_BLOCK = 1 << 16
};

/* What lies near together is read at once, and kept until memory_forget(). */
struct memory {
	pid_t pid;
	uint64_t block; /* address of what `bytes` has */
	size_t length; /* of it; 0: nothing */
	unsigned char bytes[MEMORY_BLOCK];
};

/* From now on nothing that was read before is taken again. */
void memory_forget(struct memory *memory);

/* Return: 0, -EFAULT, -EPERM, -ESRCH. */
int memory_read(struct memory *memory, uint64_t address, void *to, size_t size);

/* A string that ends in NUL, or what fits of it. The same. */
int memory_string(struct memory *memory, uint64_t address, char *to,
		  size_t size);

/* One read of many; `result` of each says whether it was had. */
struct memory_part {
	uint64_t address;
	void *to;
	size_t size;
	bool had;
};

void memory_read_parts(struct memory *memory, struct memory_part *parts,
		       unsigned int nr);

/**
 * memory_mappings() - where a mapping of this name begins
 * @name: as in /proc/PID/maps, without what the kernel puts behind it
 *
 * Calls @see for each. Return: how many, -errno if the list cannot be read.
 */
int memory_mappings(pid_t pid, const char *name,
		    void (*see)(uint64_t begin, uint64_t end, void *arg),
		    void *arg);

#endif /* CLI_MEMORY_H */
