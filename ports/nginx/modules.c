/* SPDX-License-Identifier: MIT */
/* What nginx looks up in a dynamic module: which modules are in it, and where
 * among the others they belong. */
#include "ports/nginx/ngx_flexsc.h"

extern ngx_module_t *ngx_modules[];
extern char *ngx_module_names[];
extern char *ngx_module_order[];

ngx_module_t *ngx_modules[] = { &ngx_flexsc_module,
				&ngx_http_flexsc_static_module, NULL };

char *ngx_module_names[] = { "ngx_flexsc_module",
			     "ngx_http_flexsc_static_module", NULL };

/*
 * Of content handlers the one registered last is asked first: before nginx's
 * own for static files, and behind those that may have a better answer.
 */
char *ngx_module_order[] = {
	"ngx_http_flexsc_static_module", "ngx_http_gzip_static_module",
	"ngx_http_dav_module",		 "ngx_http_autoindex_module",
	"ngx_http_index_module",	 NULL
};
