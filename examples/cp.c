/* SPDX-License-Identifier: MIT */
/*
 * Copies a tree of files, many at a time from one thread. Each file is one
 * chain: open both, copy, close both in any case. Folders, symbolic links and
 * permissions are copied, other kinds of files are named and left out.
 *
 *	flexsc-cp SOURCE TARGET
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <flexsc.h>

enum {
	MAX_AT_WORK = 64,
	MAX_CHUNK = 0x7ffff000
};

/* One file, folder or link to copy. */
struct item {
	struct item *next;
	struct flexsc_event ev, in, out, copied;
	struct stat st;
	int in_fd;
	union {
		char link[PATH_MAX];
		char entries[16384];
	};
	char *from, *to;
	char paths[];
};

static struct item *waiting;
static unsigned int nr_at_work, nr_errors;
static unsigned long long nr_files, nr_bytes;

static void item_start(struct item *item);

static void complain(const char *path, int64_t error)
{
	fprintf(stderr, "flexsc-cp: %s: %s\n", path, strerror((int)-error));
	nr_errors++;
}

/* Queue FROM/NAME to be copied to TO/NAME; without a name, FROM to TO. */
static void item_add(const char *from, const char *to, const char *name)
{
	const char *slash = *name ? "/" : "";
	size_t size = strlen(from) + strlen(name) + 2;
	struct item *item =
		calloc(1, sizeof(*item) + size + strlen(to) + strlen(name) + 2);

	if (!item) {
		complain(from, -ENOMEM);
		return;
	}
	item->from = item->paths;
	item->to = item->paths + size;
	sprintf(item->from, "%s%s%s", from, slash, name);
	sprintf(item->to, "%s%s%s", to, slash, name);
	item->ev.data = item->copied.data = item;
	item->next = waiting;
	waiting = item;
}

static void start_more(void)
{
	while (waiting && nr_at_work < MAX_AT_WORK) {
		struct item *item = waiting;

		waiting = item->next;
		nr_at_work++;
		item_start(item);
	}
}

/* With an error, or 0: this one is finished. */
static void item_end(struct item *item, const char *path, int64_t error)
{
	if (error < 0)
		complain(path, error);
	else
		nr_files++;
	free(item);
	nr_at_work--;
	start_more();
}

static void file_copied(struct flexsc_event *ev)
{
	struct item *item = ev->data;

	if (item->in.ret < 0) {
		item_end(item, item->from, item->in.ret);
	} else if (item->out.ret < 0) {
		item_end(item, item->to, item->out.ret);
	} else if (ev->ret != item->st.st_size) {
		/* It was changed under us, or the disk is full. */
		item_end(item, item->from, ev->ret < 0 ? ev->ret : -EIO);
	} else {
		nr_bytes += (unsigned long long)ev->ret;
		item_end(item, item->to, 0);
	}
}

static void copy_file(struct item *item)
{
	if (item->st.st_size > MAX_CHUNK) {
		item_end(item, item->from, -EFBIG); /* it is an example */
		return;
	}
	item->copied.handler = file_copied;
	flexsc_chain_begin();
	flexsc_open(&item->in, item->from, O_RDONLY | O_CLOEXEC, 0);
	flexsc_open(&item->out, item->to,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		    item->st.st_mode & 0777);
	flexsc_sendfile(&item->copied, FLEXSC_RESULT(1), FLEXSC_RESULT(0), NULL,
			(size_t)item->st.st_size);
	flexsc_chain_finally();
	flexsc_close(NULL, FLEXSC_RESULT(0));
	flexsc_close(NULL, FLEXSC_RESULT(1));
	flexsc_chain_end();
}

static void link_made(struct flexsc_event *ev)
{
	struct item *item = ev->data;

	item_end(item, item->to, ev->ret);
}

static void link_read(struct flexsc_event *ev)
{
	struct item *item = ev->data;

	if (ev->ret < 0) {
		item_end(item, item->from, ev->ret);
		return;
	}
	item->link[ev->ret] = 0;
	ev->handler = link_made;
	flexsc_symlink(ev, item->link, item->to);
}

static void folder_read(struct flexsc_event *ev)
{
	struct item *item = ev->data;

	for (int64_t at = 0; at < ev->ret;) {
		struct dirent64 *entry = (void *)(item->entries + at);

		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			item_add(item->from, item->to, entry->d_name);
		at += entry->d_reclen;
	}
	if (ev->ret > 0) {
		flexsc_getdents64(ev, item->in_fd, item->entries,
				  sizeof(item->entries));
		return;
	}
	flexsc_close(NULL, item->in_fd);
	item_end(item, item->from, ev->ret);
}

static void folder_opened(struct flexsc_event *ev)
{
	struct item *item = ev->data;

	if (item->out.ret < 0 && item->out.ret != -EEXIST) {
		if (ev->ret >= 0)
			flexsc_close(NULL, (int)ev->ret);
		item_end(item, item->to, item->out.ret);
	} else if (ev->ret < 0) {
		item_end(item, item->from, ev->ret);
	} else {
		item->in_fd = (int)ev->ret;
		ev->handler = folder_read;
		flexsc_getdents64(ev, item->in_fd, item->entries,
				  sizeof(item->entries));
	}
}

static void stated(struct flexsc_event *ev)
{
	struct item *item = ev->data;

	if (ev->ret < 0) {
		item_end(item, item->from, ev->ret);
	} else if (S_ISREG(item->st.st_mode)) {
		copy_file(item);
	} else if (S_ISLNK(item->st.st_mode)) {
		ev->handler = link_read;
		flexsc_readlink(ev, item->from, item->link,
				sizeof(item->link) - 1);
	} else if (S_ISDIR(item->st.st_mode)) {
		/* The folder may be there: its opening follows in any case. */
		ev->handler = folder_opened;
		flexsc_chain_begin();
		flexsc_mkdir(&item->out, item->to,
			     (item->st.st_mode & 0777) | 0700);
		flexsc_chain_finally();
		flexsc_open(ev, item->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
			    0);
		flexsc_chain_end();
	} else {
		item_end(item, item->from, -EOPNOTSUPP);
	}
}

static void item_start(struct item *item)
{
	item->ev.handler = stated;
	flexsc_lstat(&item->ev, item->from, &item->st);
}

int main(int argc, char **argv)
{
	int ret;

	if (argc != 3) {
		fprintf(stderr, "usage: %s SOURCE TARGET\n", argv[0]);
		return 2;
	}
	ret = flexsc_init();
	if (ret) {
		fprintf(stderr, "flexsc_init: %s\n", strerror(-ret));
		return 1;
	}
	item_add(argv[1], argv[2], "");
	start_more();
	flexsc_main_loop();
	flexsc_fini();
	printf("%llu files, %llu bytes, %u errors\n", nr_files, nr_bytes,
	       nr_errors);
	return nr_errors ? 1 : 0;
}
