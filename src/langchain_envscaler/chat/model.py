"""The chat model: any Qwen3, foremost EnvScaler's, as LangChain's other models are used."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import fields
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput, ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import get_config_list
from langchain_core.tools import BaseTool
from langchain_core.utils import secret_from_env
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr

from langchain_envscaler.chat.backends.base import Backend, ChatBackend, Prompt
from langchain_envscaler.chat.backends.choice import BackendName, BackendSettings, EngineSlot
from langchain_envscaler.chat.history import Message
from langchain_envscaler.chat.messages import PROVIDER, ChunkWriter
from langchain_envscaler.chat.options import CALL_OPTIONS, call_options
from langchain_envscaler.chat.profile import model_profile
from langchain_envscaler.chat.prompt import Segment, render, tool_schemas
from langchain_envscaler.chat.run import Run
from langchain_envscaler.chat.structured import StructuredOutput, with_raw
from langchain_envscaler.chat.tool_choice import resolve_tool_choice
from langchain_envscaler.errors import UsageError

__all__ = ["DEFAULT_MODEL", "ChatEnvScaler"]

DEFAULT_MODEL = "XXHStudyHard/EnvScaler-Qwen3-4B"


class ChatEnvScaler(BaseChatModel):
    """EnvScaler-Qwen3, or any other Qwen3, as a LangChain chat model.

    Making one is cheap: weights are loaded, and servers reached, when they are first needed.

    Example:
        >>> from langchain_envscaler import ChatEnvScaler
        >>> model = ChatEnvScaler(base_url="http://localhost:8000/v1").bind_tools([get_weather])
        >>> model.invoke("What is the weather in Paris?").tool_calls

    Raises:
        UsageError: When it is called: an option is wrong, an extra or the weights are missing, or the prompt
            is longer than the model's context (`ContextOverflow`).
        InfrastructureError: When it is called: the engine failed, or the server cannot be reached.
    """

    model: str = Field(default=DEFAULT_MODEL)
    """A model of the Hugging Face Hub, a folder with weights, or a server's name for its model."""
    backend: BackendName | Backend | ChatBackend = "auto"
    """What runs it; "auto" takes a server where `base_url` names one, else what is installed."""
    base_url: str | None = None
    """The address of an OpenAI-compatible server, as `http://localhost:8000/v1`."""
    api: Literal["chat", "completions"] = "chat"
    """How to speak to the server: by its chat endpoint, or by our own prompt and reader."""
    api_key: SecretStr | None = Field(default_factory=secret_from_env("ENVSCALER_API_KEY", default=None))
    default_headers: dict[str, str] | None = Field(default=None, repr=False)
    timeout: float | None = None
    """Seconds that the server may take to answer."""
    max_retries: int = 2
    """How often a request that never reached the server is tried again."""

    enable_thinking: bool = True
    thinking_budget: int | None = None
    """Tokens of reasoning after which it is closed; None: no limit of its own."""
    temperature: float = 0.7
    top_p: float = 0.95
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    """The most tokens of an output, reasoning included; None: 10,000, or what the context leaves."""
    stop: list[str] | None = Field(default=None, alias="stop_sequences")
    """Texts at which an answer ends; its reasoning and its calls do not end there."""
    parallel_tool_calls: bool = False
    """Whether one answer may hold several calls; the model was trained to make one."""
    logprobs: bool | int | None = None
    """Whether each token comes with its log-probability; a number asks for so many alternatives too."""
    return_tokens: bool = False
    """Whether messages carry their tokens in `response_metadata["tokens"]`; `logprobs` implies it."""

    revision: str | None = None
    adapter: str | None = None
    """A LoRA adapter: a folder or a name on the Hub."""
    device: str | None = None
    dtype: str | None = None
    context_size: int | None = None
    """Tokens of prompt and output together; None: what the model's configuration says."""
    max_batch_size: int | None = None
    """How many requests share a forward pass at most."""
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Handed on to the engine's loader: quantization and other options of the library's own."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """The engine's own sampling options, handed on with each request."""

    model_config = ConfigDict(arbitrary_types_allowed=True, populate_by_name=True, protected_namespaces=())

    _slot: EngineSlot = PrivateAttr(default_factory=EngineSlot)

    @property
    def _llm_type(self) -> str:
        return "chat-envscaler"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        names = ("model", "base_url", "api", "revision", "adapter", *self._call_defaults())
        return {name: getattr(self, name) for name in names}

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Whether LangChain's `dumps` writes the model out; its secrets are left to the environment."""
        return True

    @property
    def lc_secrets(self) -> dict[str, str]:
        """Which variable of the environment holds which secret."""
        return {"api_key": "ENVSCALER_API_KEY"}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_provider"] = PROVIDER
        return params

    def _resolve_model_profile(self) -> ModelProfile | None:
        return model_profile(self.model, self.context_size, self.max_tokens)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Any] | None = None,
        enable_thinking: bool | None = None,
    ) -> str:
        """The prompt as text: from the tokenizer's template where one is loaded, else from the carried one.

        Args:
            messages: LangChain messages or OpenAI-form dicts.
            tools: Tools, or OpenAI function schemas, which are rendered as they are.
            enable_thinking: In place of the model's own setting.

        Raises:
            UsageError: There is no message, or one cannot be said in text.
        """
        thinking = self.enable_thinking if enable_thinking is None else enable_thinking
        engine = self._engine() if self._slot.is_used or not isinstance(self.backend, str) else None
        if isinstance(engine, Backend):
            return engine.prompt(messages, tools, enable_thinking=thinking).text
        return render(messages, tools, enable_thinking=thinking)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | bool | dict[str, Any] | None = None,
        strict: bool | None = None,
        parallel_tool_calls: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with tools that it may call.

        Args:
            tools: Tools of any kind that LangChain knows; OpenAI function schemas are shown as they are.
            tool_choice: "auto", "none", "any" (also "required", True), or the name of a tool to be called.
            strict: Whether each call must fit its tool's schema, also where the model may choose not to call.
            parallel_tool_calls: In place of the model's own setting.
            kwargs: Other options of a call.

        Raises:
            NotFoundError: `tool_choice` names a tool that is not among the tools.
            UsageError: `tool_choice` has another form.
        """
        schemas = tool_schemas(tools)
        given = {"tool_choice": tool_choice, "strict": strict, "parallel_tool_calls": parallel_tool_calls}
        resolve_tool_choice(tool_choice, schemas)
        return self.bind(tools=schemas, **{k: v for k, v in given.items() if v is not None}, **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type | None = None,
        *,
        method: Literal["json_schema", "function_calling", "json_mode"] = "json_schema",
        include_raw: bool = False,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """The model with answers that are objects of a schema.

        Args:
            schema: A pydantic class, a TypedDict, a JSON schema or an OpenAI function schema.
            method: "json_schema": the answer is JSON of the schema. "function_calling": it is a call of a
                tool of the schema. "json_mode": it is any JSON object; the prompt says what it should hold.
            include_raw: Whether to hand on the message too, as `raw` beside `parsed` and `parsing_error`.
            strict: Accepted for other models' sake: the first two methods always hold to the schema.
            kwargs: Other options of a call.

        Raises:
            UsageError: The method is unknown, or needs a schema that is missing.
        """
        output = StructuredOutput(schema, method)
        llm = self.bind(**output.binding(), **kwargs)
        return with_raw(llm, output.parser()) if include_raw else llm | output.parser()

    def batch(
        self,
        inputs: list[LanguageModelInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[AIMessage]:
        """Answers to several inputs, all asked at once so that they share forward passes."""
        configs = get_config_list(config, len(inputs))
        if configs and not configs[0].get("max_concurrency"):
            configs[0]["max_concurrency"] = len(inputs)
        return super().batch(inputs, configs, return_exceptions=return_exceptions, **kwargs)

    def get_token_ids(self, text: str) -> list[int]:
        """The ids of a text's tokens, control tokens not looked for.

        Raises:
            UsageError: The engine has no tokenizer.
        """
        ids = self._token_ids(Prompt((Segment(text),)))
        if ids is None:
            raise UsageError(
                "token ids need the model's tokenizer, which this engine has none of; use get_num_tokens for "
                'an estimate, or backend="transformers"'
            )
        return ids

    def get_num_tokens(self, text: str) -> int:
        """How many tokens a text has; an estimate where the engine has no tokenizer."""
        ids = self._token_ids(Prompt((Segment(text),)))
        return (
            count_tokens_approximately([HumanMessage(text)], extra_tokens_per_message=0)
            if ids is None
            else len(ids)
        )

    def get_num_tokens_from_messages(
        self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None
    ) -> int:
        """How many tokens the prompt of a conversation has; an estimate where the engine has no tokenizer."""
        engine = self._engine()
        if isinstance(engine, Backend):
            prompt = engine.prompt(messages, tools, enable_thinking=self.enable_thinking)
            count = engine.count_tokens(prompt)
            if count is not None:
                return count
        return count_tokens_approximately(messages, tools=list(tools) if tools else None)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(self._run(stop, kwargs).answer(messages))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _result(await self._run(stop, kwargs).aanswer(messages))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        with closing(self._run(stop, kwargs).stream(messages, self._writer())) as chunks:
            for chunk in chunks:
                yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        async with aclosing(self._run(stop, kwargs).astream(messages, self._writer())) as chunks:
            async for chunk in chunks:
                yield ChatGenerationChunk(message=chunk)

    def _run(self, stop: list[str] | None, given: Mapping[str, Any]) -> Run:
        options = {name: value for name, value in given.items() if name != "model"}
        name = given.get("model") or self.model
        return Run(self._engine(name), call_options(self._call_defaults(), stop, options), name)

    def _writer(self) -> ChunkWriter:
        return ChunkWriter(as_blocks=self.output_version == "v1")

    def _call_defaults(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in CALL_OPTIONS if name in type(self).model_fields}

    def _engine(self, model: str | None = None) -> Backend | ChatBackend:
        """What answers; with another model's name an engine of the same settings for that model."""
        if not isinstance(self.backend, str):
            return self.backend
        values = {field.name: getattr(self, field.name) for field in fields(BackendSettings)}
        return self._slot.engine(BackendSettings(**{**values, "model": model or self.model}))

    def _token_ids(self, prompt: Prompt) -> list[int] | None:
        engine = self._engine()
        return engine.token_ids(prompt) if isinstance(engine, Backend) else None


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
