"""A vLLM engine on an event loop of its own, which any thread and any other loop may ask.

vLLM's engine belongs to the loop it was made in, while chat models are called from anywhere.
"""

import asyncio
import concurrent.futures
import itertools
import logging
import threading
import weakref
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from langchain_envscaler.chat.backends.base import GenerationRequest
from langchain_envscaler.chat.backends.choice import BackendSettings
from langchain_envscaler.chat.engine.mailbox import Mailbox
from langchain_envscaler.chat.engine.vllm_answer import VLLMAnswer
from langchain_envscaler.chat.engine.weights import model_folder
from langchain_envscaler.errors import EnvScalerError, InfrastructureError

if TYPE_CHECKING:
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    from langchain_envscaler.chat.engine.text import ModelText

__all__ = ["VLLMEngine"]

logger = logging.getLogger(__name__)

_STOP_SECONDS = 30.0


class VLLMEngine:
    """The weights of one model, ready to work.

    Args:
        settings: The model and how to load it; `model_kwargs` are vLLM's engine arguments.
        text: The model's tokenizer and what goes with it.

    Raises:
        NotFoundError: There are no such weights.
        InfrastructureError: vLLM could not load them.
    """

    def __init__(self, settings: BackendSettings, text: "ModelText") -> None:
        self._text = text
        self._adapter = settings.adapter
        self._numbers = itertools.count()
        args = _engine_args(settings, text.context_size)
        logger.info("loading %s in vLLM", settings.model)
        self._loop = _LoopThread()
        try:
            self._held = _Held(self._loop.run(_make(args)).result())
        except Exception as error:
            self._loop.stop()
            raise _load_error(settings, error) from error
        self._finalizer = weakref.finalize(self, _stop, self._loop, self._held)

    def is_running(self) -> bool:
        """Whether the engine can work on an output."""
        return self._loop.is_running and not self._held.llm.errored

    def submit(self, request: GenerationRequest, mailbox: Mailbox) -> "concurrent.futures.Future[None]":
        """Begins an output whose chunks go to the mailbox; cancelling the future ends it."""
        return self._loop.run(self._answer(request, mailbox))

    async def _answer(self, request: GenerationRequest, mailbox: Mailbox) -> None:
        try:
            answer = VLLMAnswer(
                self._text, request, f"envscaler-{id(self)}-{next(self._numbers)}", self._adapter
            )
            async with aclosing(answer.chunks(self._held.llm)) as chunks:
                async for chunk in chunks:
                    if not mailbox.put(chunk):
                        break
        except asyncio.CancelledError:
            raise
        except EnvScalerError as error:
            mailbox.put(error)
        except Exception as error:
            mailbox.put(
                InfrastructureError(f"vLLM failed: {' '.join(str(error).split()) or type(error).__name__}")
            )


class _LoopThread:
    """An event loop that runs in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="envscaler-vllm", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def run(self, work: Any) -> "concurrent.futures.Future[Any]":
        """Runs a coroutine in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """Ends the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_STOP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


async def _make(args: "AsyncEngineArgs") -> "AsyncLLM":
    from vllm.v1.engine.async_llm import AsyncLLM

    return AsyncLLM.from_engine_args(args)


class _Held:
    """Holds vLLM's engine up to its shutdown; left to the interpreter's end, it would clean up noisily."""

    def __init__(self, llm: "AsyncLLM") -> None:
        self.llm = llm


def _stop(loop: _LoopThread, held: _Held) -> None:
    loop.run(_shut_down(held)).result(timeout=_STOP_SECONDS)
    loop.stop()


async def _shut_down(held: _Held) -> None:
    held.llm.shutdown()
    del held.llm
    # What the shutdown cancelled must have ended before its loop does.
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _engine_args(settings: BackendSettings, context_size: int) -> "AsyncEngineArgs":
    from vllm import AsyncEngineArgs

    folder = str(model_folder(settings, weights=True))
    options: dict[str, Any] = {"model": folder, "tokenizer": folder, "max_model_len": context_size}
    if settings.dtype:
        options["dtype"] = settings.dtype
    if settings.max_batch_size:
        options["max_num_seqs"] = settings.max_batch_size
    if settings.adapter:
        options["enable_lora"] = True
    return AsyncEngineArgs(**{**options, **settings.model_kwargs})


def _load_error(settings: BackendSettings, error: Exception) -> EnvScalerError:
    if isinstance(error, EnvScalerError):
        return error
    reason = " ".join(str(error).split()) or type(error).__name__
    return InfrastructureError(
        f"vLLM could not load {settings.model}: {reason}; see its log, or pass its options as model_kwargs"
    )
