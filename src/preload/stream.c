/* SPDX-License-Identifier: MIT */
/*
 * Names by which the C library closes descriptors itself. What they do else,
 * and reading and writing of streams, is all its own.
 */
#include "preload/next.h"
#include "threads/io.h"

#include <dirent.h>
#include <errno.h>
#include <mqueue.h>
#include <stdio.h>

FX_NEXT(fclose);
FX_NEXT(freopen64);
FX_NEXT(pclose);
FX_NEXT(closedir);
FX_NEXT(mq_close);

/* One that has none (fmemopen) says so in errno. */
static int descriptor_of(FILE *stream)
{
	int saved = errno, fd = fileno(stream);

	errno = saved;
	return fd;
}

/* Flushing what is left may be canceled, and then nothing was closed. */
static void end(void *fd)
{
	fx_io_closing_end(*(int *)fd);
}

/* A call that closes, with what has to be said before and after it. */
#define AROUND(fd_of, call)                        \
	({                                         \
		int fx_fd = fx_io_closing(fd_of);  \
		__typeof__(call) fx_ret;           \
                                                   \
		pthread_cleanup_push(end, &fx_fd); \
		fx_ret = (call);                   \
		pthread_cleanup_pop(1);            \
		fx_ret;                            \
	})

FX_NAME int fclose(FILE *stream)
{
	return AROUND(descriptor_of(stream), NEXT(fclose)(stream));
}

FX_NAME FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
	return AROUND(descriptor_of(stream),
		      NEXT(freopen64)(path, mode, stream));
}

FX_NAME FILE *freopen(const char *path, const char *mode, FILE *stream)
	__attribute__((alias("freopen64")));

/* Waits for the child too: at home. */
FX_NAME int pclose(FILE *stream)
{
	struct fx_thread *me = fx_thread_away();

	if (me)
		fx_thread_home(me, FX_HOME_PROCESS);
	return AROUND(descriptor_of(stream), NEXT(pclose)(stream));
}

FX_NAME int closedir(DIR *dir)
{
	return AROUND(dirfd(dir), NEXT(closedir)(dir));
}

FX_NAME int mq_close(mqd_t queue)
{
	return AROUND((int)queue, NEXT(mq_close)(queue));
}
