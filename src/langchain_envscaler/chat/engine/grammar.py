"""Constraints as grammars of xgrammar, compiled for one tokenizer, once each."""

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_envscaler.chat.constraint import Constraint
from langchain_envscaler.chat.engine.tokens import QwenTokenizer
from langchain_envscaler.chat.structural_tag import structural_tag
from langchain_envscaler.errors import UsageError

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar, GrammarCompiler, GrammarMatcher

__all__ = ["Grammars", "fixed_json"]

_KEPT = 256
_HEX = re.compile(r"(\\\\)|\\x([0-9a-fA-F]{2})")


class Grammars:
    """The grammars of one tokenizer; thread-safe.

    Args:
        tokenizer: The tokenizer whose tokens are to be masked.
    """

    def __init__(self, tokenizer: QwenTokenizer) -> None:
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._compiler: GrammarCompiler | None = None
        self._compiled: OrderedDict[str, CompiledGrammar] = OrderedDict()

    def matcher(self, constraint: Constraint) -> "GrammarMatcher":
        """A matcher at the beginning of an answer of this form.

        Raises:
            UsageError: A schema says what no grammar can hold, or xgrammar is not installed.
        """
        try:
            from xgrammar import GrammarMatcher
        except ImportError as error:
            raise UsageError(
                "tool_choice, strict and structured output need the package xgrammar; "
                "pip install 'langchain-envscaler[transformers]'"
            ) from error
        return GrammarMatcher(self._compile(structural_tag(constraint, fixed_json)))

    def _compile(self, tag: dict[str, Any]) -> "CompiledGrammar":
        key = json.dumps(tag)
        with self._lock:
            known = self._compiled.get(key)
            if known is not None:
                self._compiled.move_to_end(key)
                return known
            compiler = self._compiler = self._compiler or self._make_compiler()
            try:
                compiled = compiler.compile_structural_tag(key)
            except RuntimeError as error:
                raise UsageError(f"the schema cannot be made a grammar: {error}") from error
            self._compiled[key] = compiled
            if len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
            return compiled

    def _make_compiler(self) -> "GrammarCompiler":
        from xgrammar import GrammarCompiler, TokenizerInfo

        info = TokenizerInfo.from_huggingface(
            self._tokenizer.hf, vocab_size=self._tokenizer.size, stop_token_ids=list(self._tokenizer.end_ids)
        )
        return GrammarCompiler(info, cache_enabled=False)


def fixed_json(schema: Mapping[str, Any], at: str) -> dict[str, Any]:
    """JSON of a schema, with white space as the model writes it: where it is free, some find no end.

    Raises:
        UsageError: The schema says what no grammar can hold.
    """
    from xgrammar import Grammar

    try:
        grammar = Grammar.from_json_schema(json.dumps(schema), any_whitespace=False, strict_mode=True)
    except RuntimeError as error:
        raise UsageError(f"{at}: the schema cannot be made a grammar: {error}") from error
    # Written out, "\\xdf" before "e" would be read back as one number; four digits cannot be misread.
    text = _HEX.sub(lambda found: found[1] or f"\\u00{found[2]}", str(grammar))
    return {"type": "grammar", "grammar": text}
