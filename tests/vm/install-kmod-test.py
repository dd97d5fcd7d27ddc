#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make install-kmod into a folder: what a package would hold builds a module."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "scripts"))
# pylint: disable=wrong-import-position
from fetch_kernels import SERIES, fetch
from source_package import Unavailable


def command(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def files(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*")
                  if path.is_file())


def by_dkms_conf(sources, kernel):
    """Runs what dkms.conf says, with what dkms would have set before it."""
    place = sources.parent / "dkms"
    build = place / "flexsc" / sources.name.removeprefix("flexsc-") / "build"
    build.parent.mkdir(parents=True)
    build.symlink_to(sources)
    script = (f'dkms_tree="{place}" kernel_source_dir="{kernel.headers}"\n'
              f'. "{sources}/dkms.conf"\n'
              '[ "$PACKAGE_NAME-$PACKAGE_VERSION" = "$1" ] || exit 3\n'
              'eval "${MAKE[0]}" && test -s "$dkms_tree/flexsc/$PACKAGE_VERSION/build/'
              '${BUILT_MODULE_NAME[0]}.ko" && eval "$CLEAN"\n')
    command("bash", "-c", script, "bash", sources.name)


def main():
    version = (TREE / "VERSION").read_text().strip()
    try:
        kernel = fetch(SERIES[-1])
    except Unavailable as error:
        print(f"SKIP: {error}")
        return 77
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("MAKE")}
        command("make", "-C", TREE, "install-kmod", f"DESTDIR={place}", env=env)
        installed = files(place)
        sources = place / f"usr/src/flexsc-{version}"
        for name in ("usr/lib/udev/rules.d/60-flexsc.rules", "usr/lib/sysusers.d/flexsc.conf",
                     f"usr/src/flexsc-{version}/include/uapi/linux/flexsc.h"):
            assert name in installed, (name, installed)
        assert not [name for name in installed if re.search(r"\.(o|ko|mod|cmd)$", name)]
        rule = (place / "usr/lib/udev/rules.d/60-flexsc.rules").read_text()
        assert 'GROUP="flexsc"' in rule and 'MODE="0660"' in rule
        by_dkms_conf(sources, kernel)
        command("make", "-C", TREE, "uninstall-kmod", f"DESTDIR={place}", env=env)
        left = [name for name in files(place) if "/dkms/" not in name]
        assert not left, left
    return 0


if __name__ == "__main__":
    sys.exit(main())
