/* SPDX-License-Identifier: MIT */
/*
 * The C library's own function behind a name of preload/names.txt: NEXT(read)
 * after FX_NEXT(read). Nothing is allocated when it is looked up. The layers
 * below get it under its plain name, by the linker (--wrap).
 */
#ifndef FX_PRELOAD_NEXT_H
#define FX_PRELOAD_NEXT_H

#define FX_NEXT(name) extern __typeof__(name) __wrap_##name
#define NEXT(name) __wrap_##name

/* A definition that programs find instead of the C library's. */
#define FX_NAME __attribute__((visibility("default")))

/**
 * fx_next_find - for arch's next.S: look a name up and remember it
 *
 * Context: any thread, before constructors too. A name that there is none of
 * ends the process: whoever calls it would have failed to start.
 */
void *fx_next_find(const char *name, void **pointer)
	__attribute__((visibility("hidden")));

/*
 * All of them that there are, once: before there are threads. A look-up waits
 * for whoever is loading a library, who may be waiting for a thread, and it is
 * nothing for handlers of signals.
 */
void fx_next_all(void) __attribute__((visibility("hidden")));

#endif /* FX_PRELOAD_NEXT_H */
