/* SPDX-License-Identifier: MIT */
/*
 * Which instructions the machine of tools/vm-run executes, and how often,
 * between two marks of the program in it: a plugin of QEMU's emulation. Every
 * instruction counts, of user space and kernel, interrupts included.
 *
 * A mark is a no-operation of eight bytes whose displacement says what it is:
 * bench/mark.h makes them. Counters run always (an addition in translated
 * code, no call); marks take the difference. Names are vm-run's business.
 *
 * Debian has no header of this interface; what follows is its version 1, which
 * QEMU 4.2 to 8 have.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct tb;
struct insn;
typedef uint64_t plugin_id;
typedef void (*exec_cb)(unsigned int cpu, void *arg);

enum { NO_REGISTERS };
enum { ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
					   void (*cb)(plugin_id,
						      struct tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *insn, exec_cb cb,
					    int flags, void *arg);
void qemu_plugin_register_vcpu_insn_exec_inline(struct insn *insn, int what,
						void *at, uint64_t number);
void qemu_plugin_register_atexit_cb(plugin_id id,
				    void (*cb)(plugin_id, void *), void *arg);
size_t qemu_plugin_tb_n_insns(const struct tb *tb);
struct insn *qemu_plugin_tb_get_insn(const struct tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct insn *insn);
size_t qemu_plugin_insn_size(const struct insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct insn *insn);

EXPORT int qemu_plugin_version = 1;

/* One address; whose, if it is user space's, is not known. */
struct place {
	uint64_t address;
	uint64_t count; /* since the machine was started */
	uint64_t before; /* at the first mark */
	uint64_t sum; /* between marks */
};

#define NR_BUCKETS (1u << 22)
static struct place *table; /* open addressing; address 0: free */
static uint64_t nr_used, nr_regions;
static bool inside;
static char out[512];

static struct place *place_of(uint64_t address)
{
	uint64_t i = address * 0x9e3779b97f4a7c15u >> 42;

	while (table[i].address && table[i].address != address)
		i = (i + 1) % NR_BUCKETS;
	if (!table[i].address && nr_used < NR_BUCKETS / 4 * 3) {
		table[i].address = address;
		nr_used++;
	}
	return &table[i]; /* full: the free one has them all */
}

static void begin(unsigned int cpu, void *arg)
{
	for (uint64_t i = 0; i < NR_BUCKETS; i++)
		table[i].before = table[i].count;
	inside = true;
}

static void end(unsigned int cpu, void *arg)
{
	if (!inside)
		return;
	for (uint64_t i = 0; i < NR_BUCKETS; i++)
		table[i].sum += table[i].count - table[i].before;
	inside = false;
	nr_regions++;
}

/* nopl DISPLACEMENT(%rax,%rax,1) */
static uint32_t mark_of(const struct insn *insn)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x84, 0x00 };
	const uint8_t *data = qemu_plugin_insn_data(insn);
	uint32_t mark;

	if (qemu_plugin_insn_size(insn) != 8 || memcmp(data, nop, sizeof(nop)))
		return 0;
	memcpy(&mark, data + 4, sizeof(mark));
	return mark;
}

static void translated(plugin_id id, struct tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);

	for (size_t i = 0; i < nr; i++) {
		struct insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);

		switch (mark_of(insn)) {
		case 0x46580001:
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, begin, NO_REGISTERS, NULL);
			break;
		case 0x46580002:
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, end, NO_REGISTERS, NULL);
			break;
		default:
			qemu_plugin_register_vcpu_insn_exec_inline(
				insn, ADD_U64, &place_of(address)->count, 1);
		}
	}
}

static void write_down(plugin_id id, void *arg)
{
	FILE *file = fopen(out, "w");

	if (!file)
		return;
	fprintf(file, "regions %lu\n", nr_regions);
	for (uint64_t i = 0; i < NR_BUCKETS; i++)
		if (table[i].sum)
			fprintf(file, "%lx %lu\n", table[i].address,
				table[i].sum);
	fclose(file);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int nr,
			       char **arguments)
{
	if (nr < 1 || strncmp(arguments[0], "out=", 4))
		return -1;
	snprintf(out, sizeof(out), "%s", arguments[0] + 4);
	table = calloc(NR_BUCKETS, sizeof(*table));
	if (!table)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, write_down, NULL);
	return 0;
}
