# SPDX-License-Identifier: MIT
#
# A thin front: Meson builds and tests, this sets the machine up and gives the
# usual names. `make help` lists them.

BUILD       ?= build
PREFIX      ?= /usr/local
DESTDIR     ?=
MESON_FLAGS ?=

.PHONY: help build demo demo-files check check-kernel check-kernel-debug \
	check-debian13 conformance soak install uninstall install-kmod uninstall-kmod format check-format clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo       Apache and MariaDB, as they are and under flexsc run'
	@echo 'make demo-files a file server with libflexsc beside plain epoll'
	@echo 'make check      build and run every test'
	@echo 'make check-kernel the module on all kernels, in a virtual machine'
	@echo 'make check-kernel-debug the same on kernels that check themselves'
	@echo 'make conformance the POSIX suite and libraries'\'' tests, on NPTL and on FlexSC'
	@echo 'make check-debian13 make check on Debian 13, in a folder of its own'
	@echo 'make soak       the servers under flexsc run for ten minutes'
	@echo 'make build      build only, into $(BUILD)/'
	@echo 'make install    install under PREFIX ($(PREFIX)); DESTDIR is honoured'
	@echo 'make uninstall  remove what the last make install put there'
	@echo 'make install-kmod the kernel module, by DKMS where that is installed'
	@echo 'make uninstall-kmod removes it'
	@echo 'make format     lay out the C files with clang-format'
	@echo 'make clean      remove $(BUILD)/'
	@echo
	@echo 'These first install missing packages (Debian 12, 13).'
	@echo 'MESON_FLAGS is passed to meson setup, for example -Db_sanitize=address'

# Each job names the packages it needs; everything after that is the same.
# What Meson and Ninja have to say is shown when it is bad news. Without dpkg-dev
# Meson takes lib64 on Debian, where neither the compiler nor ld.so looks.
define compile
@scripts/setup.sh build $(1)
@test -f '$(BUILD)/build.ninja' || { echo 'Configuring $(BUILD)/'; \
	lib=lib/$$(cc -print-multiarch 2>/dev/null); \
	if [ "$$lib" = lib/ ] || [ ! -d "/usr/$$lib" ]; then lib=; fi; \
	said=$$(meson setup --prefix '$(PREFIX)' $${lib:+--libdir "$$lib"} \
		$(MESON_FLAGS) '$(BUILD)' 2>&1) || { echo "$$said"; exit 1; }; }
@echo 'Building in $(BUILD)/'
@said=$$(ninja --quiet -C '$(BUILD)' 2>&1) || { echo "$$said"; exit 1; }; \
	echo "$$said" | sed -e '/^The Meson build/,/^Found ninja/d' \
		-e '/^Cleaning/d' -e '/^ninja: no work/d' -e '/^$$/d'
endef

build:
	$(call compile)

demo:
	$(call compile,demo)
	@scripts/demo.py --build '$(BUILD)'

demo-files:
	$(call compile,demo-files)
	@scripts/demo-files.py --build '$(BUILD)'

check:
	$(call compile,test)
	@scripts/setup.sh --optional kernel
	@scripts/setup.sh --optional ports
	@scripts/run-tests.py '$(BUILD)' --no-suite more --no-suite debug

# The module on each kernel, with one processor and with two.
check-kernel:
	$(call compile,test)
	@scripts/setup.sh kernel
	@scripts/run-tests.py '$(BUILD)' --suite vm

# On kernels that check memory, locks and races, built here: some 15 minutes and
# 4 GB each the first time. The result stays in tests/.
check-kernel-debug:
	$(call compile,test)
	@scripts/setup.sh kernel kernel-debug
	@scripts/build_debug_kernel.py
	@scripts/run-tests.py --record tests/kernel-debug-result.txt '$(BUILD)' --suite debug

# As root. Some 25 minutes the first time; the result stays in tests/.
check-debian13:
	@scripts/check-debian.sh --folder '$(BUILD)/debian-13' \
		--record tests/debian-13-result.txt trixie

# Some twenty minutes; the results stay in tests/posix, tests/glibc and tests/libraries.
conformance:
	$(call compile,conformance)
	@bad=0; for suite in posix glibc libraries; do \
		scripts/conformance.py --suite $$suite --build '$(BUILD)' --jobs 12 --write || \
			bad=$$?; \
	done; exit $$bad

soak:
	$(call compile,test)
	@scripts/soak.py --build '$(BUILD)' --record tests/servers/soak-result.txt

# Before building: the command knows the prefix. Not when it stays the same: that
# would configure anew, as root. A root without /sbin in its PATH (su) needs
# ldconfig too.
install:
	@case $$(meson introspect --buildoptions '$(BUILD)' 2>/dev/null) in \
	'' | *'"name": "prefix", "value": "$(PREFIX)"'*) ;; \
	*) meson configure '$(BUILD)' -Dprefix='$(PREFIX)' ;; esac
	$(call compile)
	@DESTDIR='$(DESTDIR)' meson install --no-rebuild --quiet -C '$(BUILD)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then \
		PATH="$$PATH:/usr/sbin:/sbin" ldconfig; fi
	@echo 'Installed under $(DESTDIR)$(PREFIX); make uninstall removes it again'

uninstall:
	@test -e '$(BUILD)/meson-logs/install-log.txt' || \
		{ echo 'Nothing was installed from $(BUILD)/'; exit 1; }
	@ninja --quiet -C '$(BUILD)' uninstall >/dev/null
	@cd '$(DESTDIR)$(PREFIX)' 2>/dev/null || exit 0; \
		rmdir include/flexsc/linux include/flexsc share/flexsc 2>/dev/null; true
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then \
		PATH="$$PATH:/usr/sbin:/sbin" ldconfig; fi
	@echo 'Removed what the last make install from $(BUILD)/ had put in place'

install-kmod:
	@DESTDIR='$(DESTDIR)' scripts/install-kmod.sh install

uninstall-kmod:
	@DESTDIR='$(DESTDIR)' scripts/install-kmod.sh uninstall

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

check-format:
	git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror

clean:
	rm -rf '$(BUILD)'
