/* SPDX-License-Identifier: MIT */
/* Destructors and thread-local memory; see threads/fresh.h. */
#include "threads/fresh.h"

#include "base/futex.h"
#include "threads/recycle.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <locale.h>
#include <string.h>

#define MAX_MODULES 64u

/* The thread-local memory of one module, as all threads have it. */
struct module {
	ptrdiff_t offset; /* from the thread pointer */
	const void *image;
	size_t image_size, size;
};

/* Key: I constant once `state` is set; K atomics. */
static struct {
	struct fx_lock lock;
	uint32_t known; /* A: the below is there */
	bool usable; /* I */
	struct module module[MAX_MODULES]; /* I */
	unsigned nr; /* I */
	unsigned long long adds; /* I: modules loaded then */
	void (*call_destructors)(void); /* before there are threads */
} tls;

/* Destructors by key; the slot is 1 for a key without one. */
static uintptr_t destructor[PTHREAD_KEYS_MAX];

static bool ours_or_libc(const struct dl_phdr_info *info, size_t size)
{
	const char *data = info->dlpi_tls_data, *name = info->dlpi_name;
	const char *mine = (const char *)&fx_task_self;
	const char *errno_at = (const char *)&errno;

	if (strstr(name, "/ld-linux"))
		return true;
	return (mine >= data && mine < data + size) ||
	       (errno_at >= data && errno_at < data + size);
}

static int note_module(struct dl_phdr_info *info, size_t info_size, void *arg)
{
	(void)info_size;
	(void)arg;
	tls.adds = info->dlpi_adds;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_TLS || !info->dlpi_tls_data ||
		    ours_or_libc(info, p->p_memsz))
			continue;
		if (tls.nr == MAX_MODULES) {
			tls.usable = false;
			return 1;
		}
		tls.module[tls.nr++] = (struct module){
			.offset = (char *)info->dlpi_tls_data -
				  (char *)fx_arch_thread_pointer(),
			.image = (void *)(info->dlpi_addr + p->p_vaddr),
			.image_size = p->p_filesz,
			.size = p->p_memsz,
		};
	}
	return 0;
}

void fx_fresh_start(void)
{
	if (!tls.call_destructors)
		tls.call_destructors =
			(void (*)(void))dlsym(RTLD_DEFAULT, "__call_tls_dtors");
}

static void look(void)
{
	fx_lock(&tls.lock);
	if (!tls.known) {
		tls.usable = tls.call_destructors != NULL;
		dl_iterate_phdr(note_module, NULL);
		fx_store_release(&tls.known, 1u);
	}
	fx_unlock(&tls.lock);
}

static int same_modules(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(bool *)arg = info->dlpi_adds == tls.adds;
	return 1;
}

bool fx_fresh_can(struct fx_thread *me)
{
	bool same = false;

	if (!fx_load_acquire(&tls.known))
		look();
	if (!tls.usable || me->task.pending)
		return false;
	dl_iterate_phdr(same_modules, &same);
	return same;
}

static void run_key_destructors(void)
{
	for (unsigned round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS;
	     round++) {
		bool any = false;

		for (pthread_key_t k = 0; k < PTHREAD_KEYS_MAX; k++) {
			uintptr_t d = fx_load_acquire(&destructor[k]);
			void *value = d ? pthread_getspecific(k) : NULL;

			if (!value)
				continue;
			pthread_setspecific(k, NULL);
			if (d == 1)
				continue;
			any = true;
			((void (*)(void *))d)(value);
		}
		if (!any)
			return;
	}
}

static void restore_modules(void)
{
	char *tp = (char *)fx_arch_thread_pointer();

	for (unsigned i = 0; i < tls.nr; i++) {
		const struct module *m = &tls.module[i];
		char *data = tp + m->offset;

		memcpy(data, m->image, m->image_size);
		memset(data + m->image_size, 0, m->size - m->image_size);
	}
}

void fx_fresh_make(struct fx_thread *me)
{
	tls.call_destructors();
	run_key_destructors();
	restore_modules();
	fx_arch_float_default();
	uselocale(LC_GLOBAL_LOCALE);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	me->cancel_disabled = me->cancel_async = 0;
	errno = 0;
}

int fx_key_create(pthread_key_t *key, void (*run)(void *))
{
	int bad = pthread_key_create(key, run);

	if (!bad && *key < PTHREAD_KEYS_MAX)
		fx_store_release(&destructor[*key],
				 run ? (uintptr_t)run : (uintptr_t)1);
	return bad;
}

int fx_key_delete(pthread_key_t key)
{
	if (key < PTHREAD_KEYS_MAX)
		fx_store_release(&destructor[key], (uintptr_t)0);
	return pthread_key_delete(key);
}
