/* SPDX-License-Identifier: MIT */
/* The library that loading.c loads. */
void while_loading(void);

static __attribute__((constructor)) void loaded(void)
{
	while_loading();
}
