#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds every #include against the layer table in ARCHITECTURE.md.

    scripts/check-layers.py [--root DIR]

The table is the only place where the layers are written down; the text beneath
it says how its third column is read. Local includes are written
"layer/file.h", so the first folder of the path is the layer.
"""

import argparse
import pathlib
import re
import sys

TABLE_HEADER = ("directory", "holds", "may include")
PUBLIC, UAPI, EVERYTHING = "public", "uapi", "everything"
WORDS = {"libc", PUBLIC, UAPI, EVERYTHING}
SOURCES = {".c", ".h", ".S", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class TableError(Exception):
    """The table itself is wrong; nothing can be checked against it."""


def read_rows(text):
    """[(directories, third column)] of the layer table."""
    rows, inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if tuple(cell.lower() for cell in cells) == TABLE_HEADER:
            inside = True
        elif inside and not line.lstrip().startswith("|"):
            break
        elif inside and not set("".join(cells)) <= set("-: "):
            if len(cells) != len(TABLE_HEADER):
                raise TableError(f"a row has {len(cells)} columns: {line.strip()}")
            rows.append((cells[0].replace("`", ""), cells[2].replace("`", "")))
    if not rows:
        raise TableError("no table with the columns " + " | ".join(TABLE_HEADER))
    return rows


def split_cell(cell):
    """(items passed on to the layers above, items in brackets: this row's own)."""
    own = [item for group in re.findall(r"\(([^)]*)\)", cell)
           for item in split_cell(group)[0]]
    rest = re.sub(r"\([^)]*\)", "", cell)
    return [item.strip() for item in rest.split(",") if item.strip()], own


def read_table(text):
    """{directory: set of layer names it may include}."""
    cells = {}
    for directories, cell in read_rows(text):
        for directory in re.split(r"[,\s]+", directories):
            if directory in cells:
                raise TableError(f"{directory} has two rows")
            cells[directory] = cell
    by_name = {pathlib.PurePath(path).name: path for path in cells}
    if len(by_name) != len(cells):
        raise TableError("two directories have the same last name")

    def expand(path, items, trail):
        """The names that these items of a row stand for."""
        if path in trail:
            raise TableError("a circle: " + " -> ".join((*trail, path)))
        names = set()
        for item in items:
            name = item.removesuffix(" and below")
            if name not in by_name and name not in WORDS:
                raise TableError(f"the row of {path} allows '{name}', "
                                 "which has no row of its own")
            names.add(name)
            if name != item:
                below = by_name[name]
                names |= expand(below, split_cell(cells[below])[0], (*trail, path))
        return names

    table = {}
    for name, path in by_name.items():
        items, own = split_cell(cells[path])
        table[path] = expand(path, items + own, ()) | {name}
    return table


def find_layer(path, table):
    """The longest directory of the table that holds this path, or None."""
    for parent in path.parents:
        if str(parent) in table:
            return str(parent)
    return None


def check_include(kind, target, directory, table):
    """What is wrong with one include, or None."""
    allowed = table[directory]
    names = {pathlib.PurePath(path).name for path in table}
    if EVERYTHING in allowed:
        return None
    if kind == "<":
        if target == "linux/flexsc.h":
            layer = UAPI
        elif target == "flexsc.h" or target.startswith("flexsc/"):
            layer = PUBLIC
        else:
            return None  # the system's own headers
    else:
        layer, slash, _ = target.partition("/")
        if not slash:
            # Kbuild has no include root: the module's own files stand bare.
            if directory == "kmod":
                return None
            return f'"{target}" does not name its layer: write "layer/file.h"'
        if layer in (".", ".."):
            return f'"{target}" is a relative path: write "layer/file.h"'
        if layer not in names:
            return f'"{target}": there is no layer {layer}'
    if layer in allowed:
        return None
    shown = ", ".join(sorted(allowed))
    return f"{directory} may not include {layer} ({target}); it may include: {shown}"


def check_tree(root):
    """(complaints, number of files looked at)."""
    table = read_table((root / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    tops = sorted({pathlib.PurePath(path).parts[0] for path in table})
    complaints, nr_files = [], 0
    for path in sorted(p for top in tops for p in (root / top).rglob("*")):
        if path.suffix not in SOURCES or not path.is_file():
            continue
        nr_files += 1
        relative = path.relative_to(root)
        directory = find_layer(relative, table)
        if directory is None:
            complaints.append(f"{relative}:1: {relative.parent} has no row in the "
                              "layer table of ARCHITECTURE.md")
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            wrong = match and check_include(*match.groups(), directory, table)
            if wrong:
                complaints.append(f"{relative}:{number}: {wrong}")
    return complaints, nr_files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[1])
    root = parser.parse_args().root
    try:
        complaints, nr_files = check_tree(root)
    except (TableError, OSError) as error:
        print(f"ARCHITECTURE.md: {error}", file=sys.stderr)
        return 2
    for complaint in complaints:
        print(complaint)
    if not nr_files:
        complaints.append("")
        print("check-layers.py: found no source file to look at")
    if not complaints:
        print(f"{nr_files} files keep to their layers")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
