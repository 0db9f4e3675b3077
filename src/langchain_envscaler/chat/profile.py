"""What EnvScaler-Qwen3 can do, in the form that LangChain's middleware reads."""

from langchain_core.language_models import ModelProfile

__all__ = ["CONTEXT_SIZE", "MAX_OUTPUT_TOKENS", "model_profile"]

CONTEXT_SIZE = 40_960
"""Tokens that prompt and output may have together; from Qwen3's configuration."""

MAX_OUTPUT_TOKENS = 10_000
"""The most new tokens with which EnvScaler's makers run the model."""


def model_profile(name: str, context_size: int | None, max_tokens: int | None) -> ModelProfile:
    """The profile of a Qwen3 of this context size (tokens; None: Qwen3's own)."""
    return ModelProfile(
        name=name,
        open_weights=True,
        max_input_tokens=context_size or CONTEXT_SIZE,
        max_output_tokens=max_tokens or MAX_OUTPUT_TOKENS,
        text_inputs=True,
        image_inputs=False,
        audio_inputs=False,
        video_inputs=False,
        text_outputs=True,
        image_outputs=False,
        audio_outputs=False,
        video_outputs=False,
        reasoning_output=True,
        tool_calling=True,
        tool_choice=True,
        tool_call_streaming=True,
        structured_output=True,
    )
