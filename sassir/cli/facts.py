"""The options that say what is known of launches, the same for `sassir optimize` and `sassir-opt`."""

from __future__ import annotations

import argparse


def add_facts_argument(parser: argparse.ArgumentParser) -> None:
    """--facts, as `sassir.translate.facts_file.stated_facts` takes it."""
    text = "what is known of all launches: a TOML file, or text: 'block = [256, 1, 1], noalias'; repeatable (docs/launch-files.md)"
    parser.add_argument("--facts", action="append", default=[], metavar="FACTS", help=text)
