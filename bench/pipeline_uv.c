/* SPDX-License-Identifier: MIT */
/*
 * The pipeline on libuv's thread pool (four threads, as it comes), one
 * uv_fs_* request after the other. Knows nothing of FlexSC.
 */
#include "bench/pipeline.h"

#include "bench/machine.h"
#include "bench/work.h"

#include <fcntl.h>
#include <math.h>
#include <uv.h>

struct state {
	const struct pipeline_job *job;
	uv_loop_t loop;
	unsigned int nr_started, nr_done;
};

struct request {
	uv_fs_t fs;
	uv_file file;
	char buf[PIPELINE_READ];
};

static struct request requests[PIPELINE_IN_FLIGHT];
static struct state state;

static void start(struct request *r);

static void closed(uv_fs_t *fs)
{
	uv_fs_req_cleanup(fs);
	start((struct request *)fs);
}

static void was_read(uv_fs_t *fs)
{
	struct request *r = (struct request *)fs;

	if (fs->result == PIPELINE_READ) {
		work_do(state.job->work);
		state.nr_done++;
	}
	uv_fs_req_cleanup(fs);
	uv_fs_close(&state.loop, fs, r->file, closed);
}

static void got_stat(uv_fs_t *fs)
{
	struct request *r = (struct request *)fs;
	uv_buf_t buf = uv_buf_init(r->buf, PIPELINE_READ);

	uv_fs_req_cleanup(fs);
	uv_fs_read(&state.loop, fs, r->file, &buf, 1, 0, was_read);
}

static void opened(uv_fs_t *fs)
{
	struct request *r = (struct request *)fs;

	r->file = (uv_file)fs->result;
	uv_fs_req_cleanup(fs);
	if (r->file >= 0)
		uv_fs_fstat(&state.loop, fs, r->file, got_stat);
}

static void start(struct request *r)
{
	if (state.nr_started == state.job->nr_requests)
		return;
	state.nr_started++;
	uv_fs_open(&state.loop, &r->fs, state.job->paths[r - requests],
		   O_RDONLY | O_CLOEXEC, 0, opened);
}

double pipeline_uv(void *arg)
{
	uint64_t begin;

	state = (struct state){ .job = arg };
	if (uv_loop_init(&state.loop))
		return NAN;
	begin = now_ns();
	for (int i = 0; i < PIPELINE_IN_FLIGHT; i++)
		start(&requests[i]);
	uv_run(&state.loop, UV_RUN_DEFAULT);
	begin = now_ns() - begin;
	uv_loop_close(&state.loop);
	return state.nr_done == state.job->nr_requests ?
		       state.nr_done * 1e9 / (double)begin :
		       NAN;
}
