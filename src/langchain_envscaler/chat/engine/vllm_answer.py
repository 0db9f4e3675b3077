"""One output of vLLM, from its request to its last chunk."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from langchain_envscaler.chat.backends.base import (
    ContextOverflow,
    FinishReason,
    GeneratedToken,
    GenerationChunk,
    GenerationRequest,
    Usage,
)
from langchain_envscaler.chat.backends.course import Course, Leg
from langchain_envscaler.chat.engine.grammar import fixed_json
from langchain_envscaler.chat.engine.tokens import Detokenizer, pieces_ids
from langchain_envscaler.chat.profile import MAX_OUTPUT_TOKENS
from langchain_envscaler.chat.prompt import format_segments
from langchain_envscaler.chat.structural_tag import structural_tag
from langchain_envscaler.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.lora.request import LoRARequest
    from vllm.outputs import CompletionOutput
    from vllm.v1.engine.async_llm import AsyncLLM

    from langchain_envscaler.chat.engine.text import ModelText

__all__ = ["VLLMAnswer"]

_NEVER = -100.0
"""A bias that no token overcomes."""


class VLLMAnswer:
    """Runs one request, leg by leg.

    Args:
        text: The model's tokenizer and what goes with it.
        request: What is asked for.
        name: A name that no other request has.
        adapter: The LoRA adapter to use.

    Raises:
        ContextOverflow: The prompt leaves no room for an output.
    """

    def __init__(self, text: "ModelText", request: GenerationRequest, name: str, adapter: str | None) -> None:
        self._tokenizer = text.tokenizer
        self._request = request
        self._name = name
        self._adapter = adapter
        self._ids = pieces_ids(self._tokenizer.encode(request.prompt.segments))
        self._prompt_length = len(self._ids)
        room = text.context_size - self._prompt_length
        if room < 1:
            raise ContextOverflow(
                f"the prompt has {self._prompt_length} tokens, but the model's context holds "
                f"{text.context_size}, the answer included; shorten the conversation, or raise "
                "context_size if the model takes more"
            )
        self._max_tokens = min(request.max_tokens or MAX_OUTPUT_TOKENS, room)
        self._course = Course(request, self._max_tokens)
        self._detokenizer = Detokenizer(self._tokenizer)
        self._cached_tokens = 0

    async def chunks(self, llm: "AsyncLLM") -> AsyncGenerator[GenerationChunk]:
        """The output as it comes; the last chunk has no text, but tells why the output ended."""
        leg: Leg | None = self._course.first()
        reason: FinishReason = "length"
        number = 0
        while leg is not None:
            if leg.written:
                yield self._write(leg.written)
            begin = len(self._ids)
            text: list[str] = []
            async with aclosing(self._generate(llm, leg, number)) as completions:
                async for completion in completions:
                    chunk = self._read(completion)
                    text.append(chunk.text)
                    yield chunk
                    reason = _reason(completion) or reason
            leg = self._course.next("".join(text), len(self._ids) - begin, reason)
            number += 1
        yield GenerationChunk(finish_reason=reason, usage=self._usage())

    async def _generate(self, llm: "AsyncLLM", leg: Leg, number: int) -> AsyncGenerator["CompletionOutput"]:
        left = self._max_tokens - (len(self._ids) - self._prompt_length)
        if left < 1:
            return
        outputs = llm.generate(
            {"prompt_token_ids": list(self._ids)},
            self._params(leg, min(leg.max_tokens, left)),
            f"{self._name}-{number}",
            lora_request=self._lora(),
        )
        async with aclosing(outputs):
            async for output in outputs:
                if number == 0:
                    self._cached_tokens = output.num_cached_tokens or 0
                yield output.outputs[0]

    def _params(self, leg: Leg, max_tokens: int) -> "SamplingParams":
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        request, sampling = self._request, self._request.sampling
        options: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": max_tokens,
            "stop_token_ids": list(self._tokenizer.end_ids),
            "logprobs": request.logprobs,
            "detokenize": False,
            "output_kind": RequestOutputKind.DELTA,
        }
        for name in ("top_k", "min_p", "repetition_penalty", "presence_penalty", "seed"):
            if getattr(sampling, name) is not None:
                options[name] = getattr(sampling, name)
        if leg.ends_thinking:
            options["stop_token_ids"] = [self._tokenizer.think_ids[1]]
            options["logit_bias"] = dict.fromkeys(self._tokenizer.end_ids, _NEVER)
        if leg.constraint is not None:
            tag = json.dumps(structural_tag(leg.constraint, fixed_json))
            options["structured_outputs"] = StructuredOutputsParams(structural_tag=tag)
        try:
            return SamplingParams(**{**options, **request.extra})
        except (TypeError, ValueError) as error:
            raise UsageError(f"vLLM does not take these sampling options: {error}") from error

    def _lora(self) -> "LoRARequest | None":
        if self._adapter is None:
            return None
        from vllm.lora.request import LoRARequest

        return LoRARequest("adapter", 1, self._adapter)

    def _write(self, text: str) -> GenerationChunk:
        """Writes a text of the format in the model's place."""
        ids = pieces_ids(self._tokenizer.encode(format_segments(text)))
        self._ids += ids
        tokens = tuple(
            GeneratedToken(token, self._tokenizer.token_text(token), is_written=False) for token in ids
        )
        return GenerationChunk(text, usage=self._usage(), tokens=tokens if self._wants_tokens else ())

    def _read(self, completion: "CompletionOutput") -> GenerationChunk:
        ids = list(completion.token_ids)
        self._ids += ids
        text = "".join(self._detokenizer.feed(token) for token in ids)
        return GenerationChunk(text, usage=self._usage(), tokens=self._tokens(ids, completion.logprobs))

    def _tokens(self, ids: Sequence[int], logprobs: Any) -> tuple[GeneratedToken, ...]:
        if not self._wants_tokens:
            return ()
        steps = logprobs or [{}] * len(ids)
        return tuple(self._token(token, step) for token, step in zip(ids, steps, strict=True))

    def _token(self, token: int, step: Any) -> GeneratedToken:
        wanted = self._request.logprobs or 0
        best = sorted(((entry.logprob, other) for other, entry in step.items()), reverse=True)[:wanted]
        return GeneratedToken(
            token,
            self._tokenizer.token_text(token),
            logprob=step[token].logprob if token in step else None,
            top=tuple((other, logprob) for logprob, other in best),
        )

    @property
    def _wants_tokens(self) -> bool:
        return self._request.return_tokens or self._request.logprobs is not None

    def _usage(self) -> Usage:
        return Usage(self._prompt_length, len(self._ids) - self._prompt_length, self._cached_tokens)


def _reason(completion: "CompletionOutput") -> FinishReason | None:
    reason = completion.finish_reason
    if reason is None:
        return None
    if reason == "stop":
        return "stop"
    if reason == "length":
        return "length"
    raise InfrastructureError(f"vLLM gave the output up ({reason}); see its log")
