/* SPDX-License-Identifier: MIT */
/*
 * The event module: `use flexsc;` with its directives, the loop of a process,
 * and what nginx asks of an event module. What is posted is op.c's.
 */
#include "ports/nginx/ngx_flexsc.h"

#define HOLD_MS 200

struct flexsc_loop *ngx_flexsc_loop;

/* Of events that belong to no connection: logs look at its number. */
static ngx_connection_t nobody = { .fd = -1 };
static ngx_event_t notify_event = { .data = &nobody };
static int nr_held;

static void held(ngx_event_t *ev)
{
	if (nr_held)
		ngx_add_timer(ev, HOLD_MS);
}

void ngx_flexsc_hold(int more)
{
	static ngx_event_t event = { .data = &nobody, .handler = held };

	nr_held += more;
	if (nr_held && !event.timer_set) {
		event.log = ngx_cycle->log;
		ngx_add_timer(&event, HOLD_MS);
	}
}
static struct ngx_flexsc_op notify_op;

static void *create_conf(ngx_cycle_t *cycle)
{
	struct ngx_flexsc_conf *conf =
		ngx_pcalloc(cycle->pool, sizeof(struct ngx_flexsc_conf));

	if (conf)
		conf->nr_accepts = NGX_CONF_UNSET;
	return conf;
}

static char *init_conf(ngx_cycle_t *cycle, void *data)
{
	struct ngx_flexsc_conf *conf = data;

	if (!conf->engine.data)
		conf->engine = (ngx_str_t)ngx_string("auto");
	ngx_conf_init_value(conf->nr_accepts, 16);
	return NGX_CONF_OK;
}

static ngx_int_t add_event(ngx_event_t *ev, ngx_int_t event, ngx_uint_t flags)
{
	if (ev->active || !ngx_flexsc_loop)
		return NGX_OK;
	if (ev->accept)
		return ngx_flexsc_listen(ev);
	if (ngx_flexsc_sending(ev)) {
		ev->index = NGX_INVALID_INDEX;
		ev->active = 1;
		ev->oneshot = 1;
		return NGX_OK;
	}
	if (ngx_flexsc_receive(ev))
		return NGX_OK;
	/* What is over and was not taken is no reason to wait for more room. */
	return ngx_flexsc_watch(ev, !ev->write || !ev->ready);
}

static ngx_int_t del_event(ngx_event_t *ev, ngx_int_t event, ngx_uint_t flags)
{
	ngx_connection_t *c = ev->data;

	if (!ngx_flexsc_loop)
		return NGX_OK;
	if (ev->accept)
		ngx_flexsc_unlisten(ev);
	else
		ngx_flexsc_unwatch(ev);
	if (flags & NGX_CLOSE_EVENT)
		flexsc_forget(c->fd);
	return NGX_OK;
}

static ngx_int_t del_conn(ngx_connection_t *c, ngx_uint_t flags)
{
	if (!ngx_flexsc_loop)
		return NGX_OK;
	ngx_flexsc_unwatch(c->read);
	ngx_flexsc_unwatch(c->write);
	ngx_flexsc_io_end(c);
	flexsc_forget(c->fd);
	return NGX_OK;
}

static void notified(struct ngx_flexsc_op *op)
{
	notify_event.handler(&notify_event);
}

/* From threads of nginx's pools. On its way already: it will find this, too. */
static ngx_int_t notify(ngx_event_handler_pt handler)
{
	int bad;

	notify_event.handler = handler;
	bad = flexsc_loop_send(ngx_flexsc_loop, &notify_op.call);
	return bad && bad != -EBUSY ? NGX_ERROR : NGX_OK;
}

static ngx_int_t process_events(ngx_cycle_t *cycle, ngx_msec_t timer,
				ngx_uint_t flags)
{
	int64_t ns = timer == NGX_TIMER_INFINITE ? -1 :
						   (int64_t)timer * 1000000;
	int nr = flexsc_loop_poll(ngx_flexsc_loop,
				  ngx_flexsc_ops_waiting() ? 0 : ns);

	if (flags & NGX_UPDATE_TIME || ngx_event_timer_alarm)
		ngx_time_update();
	if (nr < 0) {
		ngx_log_error(NGX_LOG_ALERT, cycle->log, -nr,
			      "flexsc_loop_poll() failed");
		return NGX_ERROR;
	}
	ngx_flexsc_ops_run(flags & NGX_POST_EVENTS);
	return NGX_OK;
}

static ngx_int_t init(ngx_cycle_t *cycle, ngx_msec_t timer);

static void done(ngx_cycle_t *cycle)
{
	struct flexsc_loop *loop = ngx_flexsc_loop;

	if (!loop)
		return;
	ngx_flexsc_loop = NULL;
	flexsc_loop_shutdown(loop);
	flexsc_loop_free(loop);
}

static ngx_str_t name = ngx_string("flexsc");

static ngx_event_module_t context = { &name,
				      create_conf,
				      init_conf,
				      { add_event, del_event, add_event,
					del_event, NULL, del_conn, notify,
					process_events, init, done } };

static ngx_int_t init(ngx_cycle_t *cycle, ngx_msec_t timer)
{
	struct ngx_flexsc_conf *conf =
		ngx_event_get_conf(cycle->conf_ctx, ngx_flexsc_module);
	/* Those of the cache look at files now and then. */
	bool helper = ngx_process == NGX_PROCESS_HELPER;
	struct flexsc_options options = {
		.size = sizeof(options),
		.engine = helper ? "poll" : (char *)conf->engine.data,
	};
	int bad;

	if (!ngx_flexsc_loop) { /* else one process alone, and a new cycle */
		bad = flexsc_loop_new(&ngx_flexsc_loop, &options);
		if (bad) {
			ngx_log_error(NGX_LOG_EMERG, cycle->log, -bad,
				      "flexsc_loop_new() failed, engine \"%V\"",
				      &conf->engine);
			return NGX_ERROR;
		}
		ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
			      "flexsc: engine %s (%s)",
			      flexsc_loop_engine(ngx_flexsc_loop),
			      flexsc_loop_engine_reason(ngx_flexsc_loop));
		notify_op.call.handler = ngx_flexsc_op_done;
		notify_op.call.data = &notify_op;
		notify_op.over = notified;
	}
	notify_event.log = cycle->log;
	ngx_io = ngx_os_io;
	ngx_io.recv = ngx_flexsc_recv;
	ngx_io.recv_chain = ngx_flexsc_recv_chain;
	ngx_io.send = ngx_flexsc_send;
	ngx_io.send_chain = ngx_flexsc_send_chain;
	ngx_event_actions = context.actions;
	ngx_event_flags = NGX_USE_EVENTPORT_EVENT;
	return NGX_OK;
}

static ngx_command_t commands[] = {
	{ ngx_string("flexsc_engine"), NGX_EVENT_CONF | NGX_CONF_TAKE1,
	  ngx_conf_set_str_slot, 0, offsetof(struct ngx_flexsc_conf, engine),
	  NULL },
	{ ngx_string("flexsc_accepts"), NGX_EVENT_CONF | NGX_CONF_TAKE1,
	  ngx_conf_set_num_slot, 0,
	  offsetof(struct ngx_flexsc_conf, nr_accepts), NULL },
	ngx_null_command
};

ngx_module_t ngx_flexsc_module = {
	NGX_MODULE_V1,
	&context,
	commands,
	NGX_EVENT_MODULE,
	NULL, /* init master */
	NULL, /* init module */
	NULL, /* init process: the event core calls init() */
	NULL, /* init thread */
	NULL, /* exit thread */
	done, /* exit process */
	NULL, /* exit master */
	NGX_MODULE_V1_PADDING
};
