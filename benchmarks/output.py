"""How fast model output is read, and that the cost stays linear for text made to be hard.

Run it with `python benchmarks/output.py`. Each text is read at two sizes, the second eight times the first:
token by token, in the bursts of a busy server, and whole. "Growth" is how much slower a byte is in the larger
text: 1.0 is linear.
"""

import time
from collections.abc import Callable, Iterator

from langchain_envscaler.chat.output import OutputReader

SMALL, LARGE = 250_000, 2_000_000
PIECES = {"token": 4, "burst": 4096, "whole": LARGE * 2}
CALL = '<tool_call>\n{"name": "find_order", "arguments": {"order_id": "ORD-1", "limit": 3}}\n</tool_call>\n'
ANSWER = "<think>\nr\n</think>\n\n"


def repeated(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


LIST = "[1, 2.5, true, null], "
BROKEN = '<tool_call>{"name": "f", x}</tool_call>'
TEXTS: dict[str, Callable[[int], str]] = {
    "reasoning, then an answer": lambda n: f"<think>\n{repeated('Let me see. ', n)}\n</think>\n\nDone.",
    "an answer without a think block": lambda n: repeated("What it costs is 3 < 4 euros. ", n),
    "many calls": lambda n: ANSWER + repeated(CALL, n),
    "one long string": lambda n: CALL.replace("ORD-1", repeated('a line \\n of \\"text\\" ', n)),
    "a large object": lambda n: CALL.replace("3}", f"[{repeated(LIST, n - n % len(LIST))}0]}}"),
    "deep lists": lambda n: CALL.replace("3}", "[" * (n // 2) + "]" * (n // 2) + "}"),
    "deep objects": lambda n: CALL.replace("3}", '{"a":' * (n // 6) + "1" + "}" * (n // 6) + "}"),
    "many angle brackets": lambda n: ANSWER + "<" * n,
    "many opening tags": lambda n: ANSWER + repeated("<tool_call>", n),
    "many tags in an open think block": lambda n: "<think>" + repeated("<tool_call>{", n),
    "many broken calls": lambda n: ANSWER + repeated(BROKEN, n),
    "many unclosed strings": lambda n: ANSWER + repeated('<tool_call>{"a</tool_call>', n),
    "boundaries within strings": lambda n: (
        f'{ANSWER}<tool_call>{{"k": [' + repeated('"</tool_call><tool_call>{", ', n)
    ),
    "drafts within strings": lambda n: '<think><tool_call>{"k": [' + repeated('"<tool_call>{", ', n),
    "white space": lambda n: "<think>" + " " * n + "</think>" + "\n" * n + CALL,
    "white space after an opening tag": lambda n: "<tool_call>" + "\n" * n,
}


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def seconds(text: str, size: int) -> float:
    cut = list(pieces(text, size))
    begin = time.perf_counter()
    reader = OutputReader(enable_thinking=True)
    for piece in cut:
        reader.feed(piece)
    reader.close()
    return time.perf_counter() - begin


def main() -> None:
    print(f"{'text':<44}{'piece':>7}{'MB/s':>9}{'growth':>9}")
    for name, make in TEXTS.items():
        for piece, size in PIECES.items():
            small, large = make(SMALL), make(LARGE)
            cost = min(seconds(small, size) for _ in range(3)) / len(small)
            large_cost = seconds(large, size) / len(large)
            print(f"{name:<44}{piece:>7}{1e-6 / large_cost:>9.1f}{large_cost / cost:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
