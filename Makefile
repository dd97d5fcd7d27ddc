# SPDX-License-Identifier: MIT
#
# A thin front: Meson builds and tests, this sets the machine up and gives the
# usual names. `make help` lists them.

BUILD       ?= build
PREFIX      ?= /usr/local
DESTDIR     ?=
MESON_FLAGS ?=

.PHONY: help build demo check install format check-format clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo       show what FlexSC does on this machine'
	@echo 'make check      build and run every test'
	@echo 'make build      build only, into $(BUILD)/'
	@echo 'make install    install under PREFIX ($(PREFIX)); DESTDIR is honoured'
	@echo 'make format     lay out the C files with clang-format'
	@echo 'make clean      remove $(BUILD)/'
	@echo
	@echo 'demo, check and build first install missing packages (Debian 12, 13).'
	@echo 'MESON_FLAGS is passed to meson setup, for example -Db_sanitize=address'

# Each job names the packages it needs; everything after that is the same.
# What Meson and Ninja have to say is shown when it is bad news.
define compile
@scripts/setup.sh build $(1)
@test -f '$(BUILD)/build.ninja' || { echo 'Configuring $(BUILD)/'; \
	said=$$(meson setup --prefix '$(PREFIX)' $(MESON_FLAGS) '$(BUILD)' 2>&1) || \
	{ echo "$$said"; exit 1; }; }
@echo 'Building in $(BUILD)/'
@ninja --quiet -C '$(BUILD)'
endef

build:
	$(call compile)

demo:
	$(call compile,demo)
	@scripts/demo.py --build '$(BUILD)'

check:
	$(call compile,test)
	@scripts/run-tests.py '$(BUILD)'

# Setting the prefix that the build directory already has changes nothing.
install:
	$(call compile)
	@meson configure '$(BUILD)' -Dprefix='$(PREFIX)'
	@DESTDIR='$(DESTDIR)' meson install -C '$(BUILD)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

check-format:
	git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror

clean:
	rm -rf '$(BUILD)'
