/* SPDX-License-Identifier: MIT */
/*
 * Static files by posted calls: open and fstat as one chain, read and close of
 * what is small, which is answered from memory, in one piece with its header.
 * What is not small goes nginx's way with the descriptor. Where calls are made
 * elsewhere, a second turn would cost more than reading some bytes for nothing:
 * then the chain reads, too.
 *
 * Only the usual case is answered here. For anything else (errors, folders,
 * caches of open files, direct I/O, subrequests, ...) the next handler is
 * nginx's own, which opens the file again and knows what to say of it.
 */
#include "ports/nginx/ngx_flexsc.h"

#include <fcntl.h>
#include <ngx_http.h>
#include <sys/stat.h>

#define SMALL 8192

/* Bytes of a small file, until its answer is sent. */
struct buffer {
	struct buffer *next;
	u_char bytes[SMALL];
};

enum state {
	POSTED,
	COMPLETE,
	DECLINED
};

struct file {
	struct ngx_flexsc_op last; /* the end of the chain that is posted */
	struct flexsc_event opened;
	ngx_http_request_t *r;
	struct stat st;
	ngx_str_t path;
	struct buffer *buffer;
	enum state state;
	bool first; /* of two chains */
	bool reads; /* the chain ends with a read */
	int fd; /* or -1 */
};

struct local_conf {
	ngx_flag_t enabled;
};

static struct buffer *free_buffers;

static struct buffer *buffer_new(void)
{
	struct buffer *b = free_buffers;

	if (!b)
		return ngx_alloc(sizeof(*b), ngx_cycle->log);
	free_buffers = b->next;
	return b;
}

/* With the request's pool, which is there as long as something is in flight. */
static void file_end(void *data)
{
	struct file *f = data;

	if (f->fd >= 0) {
		struct ngx_flexsc_io *io = ngx_flexsc_io(f->r->connection);

		if (io)
			ngx_flexsc_send_file_end(io);
		flexsc_close(NULL, f->fd);
	}
	f->buffer->next = free_buffers;
	free_buffers = f->buffer;
}

/* nginx's own handler does it better, or does not do it. */
static bool is_usual(ngx_http_request_t *r)
{
	struct local_conf *conf =
		ngx_http_get_module_loc_conf(r, ngx_http_flexsc_static_module);
	ngx_http_core_loc_conf_t *core =
		ngx_http_get_module_loc_conf(r, ngx_http_core_module);

	return conf->enabled && ngx_flexsc_loop && r == r->main &&
	       r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD) &&
	       r->uri.data[r->uri.len - 1] != '/' && !core->open_file_cache &&
	       !core->read_ahead &&
	       core->directio == NGX_OPEN_FILE_DIRECTIO_OFF &&
	       core->disable_symlinks == NGX_DISABLE_SYMLINKS_OFF &&
#if (NGX_HAVE_FILE_AIO || NGX_THREADS)
	       core->aio == NGX_HTTP_AIO_OFF &&
#endif
	       !core->disable_symlinks_from;
}

static struct file *file_new(ngx_http_request_t *r)
{
	struct file *f = ngx_pcalloc(r->pool, sizeof(*f));
	ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, 0);
	u_char *last;
	size_t root;

	if (!f || !cleanup)
		return NULL;
	last = ngx_http_map_uri_to_path(r, &f->path, &root, 0);
	if (!last)
		return NULL;
	f->path.len = (size_t)(last - f->path.data);
	f->buffer = buffer_new();
	if (!f->buffer)
		return NULL;
	f->r = r;
	f->fd = -1;
	cleanup->data = f;
	cleanup->handler = file_end;
	return f;
}

/* Will the connection be kept behind the answer, whatever comes? */
static bool stays(const ngx_http_request_t *r)
{
	return r->keepalive && !r->lingering_close && !r->discard_body &&
	       !r->limit_rate && !ngx_terminate && !ngx_exiting && !ngx_quit &&
#if (NGX_HTTP_V2)
	       !r->stream &&
#endif
	       r->connection->send_chain == ngx_flexsc_send_chain;
}

/* All that is needed is there: the answer. */
static ngx_int_t file_answer(struct file *f)
{
	ngx_http_request_t *r = f->r;
	ngx_chain_t out = { NULL, NULL };
	ngx_buf_t *b = ngx_calloc_buf(r->pool);
	ngx_int_t rc = ngx_http_discard_request_body(r);

	if (rc != NGX_OK)
		return rc;
	if (!b)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	r->root_tested = !r->error_page;
	r->connection->log->action = (char *)"sending response to client";
	r->headers_out.status = NGX_HTTP_OK;
	r->headers_out.content_length_n = f->st.st_size;
	r->headers_out.last_modified_time = f->st.st_mtime;
	r->allow_ranges = 1;
	if (ngx_http_set_etag(r) != NGX_OK ||
	    ngx_http_set_content_type(r) != NGX_OK)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	if (f->fd < 0) {
		b->pos = b->start = f->buffer->bytes;
		b->last = b->end = b->pos + f->st.st_size;
		b->memory = f->st.st_size != 0;
	} else {
		b->file = ngx_pcalloc(r->pool, sizeof(*b->file));
		if (!b->file)
			return NGX_HTTP_INTERNAL_SERVER_ERROR;
		b->file->fd = f->fd;
		b->file->name = f->path;
		b->file->log = r->connection->log;
		b->file_last = f->st.st_size;
		b->in_file = 1;
		ngx_flexsc_sends(r->connection, f->fd);
	}
	rc = ngx_http_send_header(r);
	if (rc == NGX_ERROR || rc > NGX_OK || r->header_only)
		return rc;
	b->last_buf = 1;
	b->last_in_chain = 1;
	out.buf = b;
	ngx_flexsc_keeps(r->connection, stays(r));
	rc = ngx_http_output_filter(r, &out);
	ngx_flexsc_keeps(r->connection, false);
	return rc;
}

static void file_close(struct file *f)
{
	flexsc_close(NULL, f->fd);
	f->fd = -1;
}

/* Is all of it there? It may have been cut meanwhile. */
static enum state file_read(struct file *f)
{
	file_close(f);
	return f->last.call.ret >= f->st.st_size ? COMPLETE : DECLINED;
}

/* Not a chain with its close: a descriptor's record goes when that is posted. */
static enum state file_post_read(struct file *f)
{
	f->first = false;
	if (flexsc_read(&f->last.call, f->fd, f->buffer->bytes,
			(size_t)f->st.st_size))
		return DECLINED;
	return flexsc_take(&f->last.call) ? file_read(f) : POSTED;
}

/* The first chain is over. */
static enum state file_opened(struct file *f)
{
	if (f->opened.ret < 0)
		return DECLINED;
	f->fd = (int)f->opened.ret;
	if (f->last.call.ret < 0 || !S_ISREG(f->st.st_mode)) {
		file_close(f);
		return DECLINED;
	}
	if (f->st.st_size > SMALL)
		return COMPLETE;
	if (f->reads)
		return file_read(f);
	if (f->st.st_size)
		return file_post_read(f);
	file_close(f);
	return COMPLETE;
}

/* It took a while: nginx goes on where it was, which is at our handler. */
static void chain_over(struct ngx_flexsc_op *op)
{
	struct file *f = op->owner;
	ngx_http_request_t *r = f->r;
	ngx_connection_t *c = r->connection;

	f->state = f->first ? file_opened(f) : file_read(f);
	if (f->state == POSTED)
		return;
	r->main->blocked--;
	ngx_flexsc_hold(-1);
	/* Else it was ended meanwhile, and this is what is left to be done. */
	if (r->write_event_handler == ngx_http_request_empty_handler)
		r->write_event_handler = ngx_http_core_run_phases;
	r->write_event_handler(r);
	ngx_http_run_posted_requests(c);
}

static enum state file_post(struct file *f)
{
	f->last.call.handler = ngx_flexsc_op_done;
	f->last.call.data = &f->last;
	f->last.over = chain_over;
	f->last.owner = f;
	f->first = true;
	f->reads = !ngx_flexsc_at_once;
	flexsc_chain_begin();
	flexsc_open(&f->opened, (char *)f->path.data,
		    O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	flexsc_fstat(f->reads ? NULL : &f->last.call, FLEXSC_RESULT(0), &f->st);
	if (f->reads)
		flexsc_read(&f->last.call, FLEXSC_RESULT(0), f->buffer->bytes,
			    SMALL);
	if (flexsc_chain_end())
		return DECLINED;
	ngx_flexsc_at_once = flexsc_take(&f->last.call);
	if (!ngx_flexsc_at_once)
		return POSTED;
	flexsc_take(&f->opened);
	return file_opened(f);
}

static ngx_int_t handler(ngx_http_request_t *r)
{
	struct file *f =
		ngx_http_get_module_ctx(r, ngx_http_flexsc_static_module);

	if (f)
		return f->state == COMPLETE ? file_answer(f) : NGX_DECLINED;
	if (!is_usual(r))
		return NGX_DECLINED;
	f = file_new(r);
	if (!f)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	f->state = file_post(f);
	if (f->state != POSTED)
		return f->state == COMPLETE ? file_answer(f) : NGX_DECLINED;
	ngx_http_set_ctx(r, f, ngx_http_flexsc_static_module);
	r->main->blocked++;
	ngx_flexsc_hold(1);
	r->main->count++;
	r->write_event_handler = ngx_http_request_empty_handler;
	return NGX_DONE;
}

static void *create_local_conf(ngx_conf_t *cf)
{
	struct local_conf *conf = ngx_pcalloc(cf->pool, sizeof(*conf));

	if (conf)
		conf->enabled = NGX_CONF_UNSET;
	return conf;
}

static char *merge_local_conf(ngx_conf_t *cf, void *parent, void *child)
{
	struct local_conf *of = parent, *conf = child;

	ngx_conf_merge_value(conf->enabled, of->enabled, 1);
	return NGX_CONF_OK;
}

static ngx_int_t postconfiguration(ngx_conf_t *cf)
{
	ngx_http_core_main_conf_t *conf =
		ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
	ngx_http_handler_pt *slot =
		ngx_array_push(&conf->phases[NGX_HTTP_CONTENT_PHASE].handlers);

	if (!slot)
		return NGX_ERROR;
	*slot = handler;
	return NGX_OK;
}

static ngx_command_t commands[] = {
	{ ngx_string("flexsc_static"),
	  NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF |
		  NGX_CONF_FLAG,
	  ngx_conf_set_flag_slot, NGX_HTTP_LOC_CONF_OFFSET,
	  offsetof(struct local_conf, enabled), NULL },
	ngx_null_command
};

static ngx_http_module_t context = { NULL, /* preconfiguration */
				     postconfiguration,
				     NULL, /* create main configuration */
				     NULL, /* init main configuration */
				     NULL, /* create server configuration */
				     NULL, /* merge server configuration */
				     create_local_conf,
				     merge_local_conf };

ngx_module_t ngx_http_flexsc_static_module = { NGX_MODULE_V1,
					       &context,
					       commands,
					       NGX_HTTP_MODULE,
					       NULL, /* init master */
					       NULL, /* init module */
					       NULL, /* init process */
					       NULL, /* init thread */
					       NULL, /* exit thread */
					       NULL, /* exit process */
					       NULL, /* exit master */
					       NGX_MODULE_V1_PADDING };
