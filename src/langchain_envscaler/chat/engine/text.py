"""What a model's tokenizer and configuration tell, without its weights."""

from langchain_envscaler.chat.backends.choice import BackendSettings
from langchain_envscaler.chat.engine.grammar import Grammars
from langchain_envscaler.chat.engine.templates import Templates
from langchain_envscaler.chat.engine.weights import context_size_of, load_tokenizer, model_folder

__all__ = ["ModelText"]


class ModelText:
    """A model's tokenizer, its prompts, its grammars, and how long its context is.

    Raises:
        NotFoundError: There is no such model.
        DataError: Its tokenizer or its configuration cannot be read, or is not of Qwen3's kind.
    """

    def __init__(self, settings: BackendSettings) -> None:
        folder = model_folder(settings, weights=False)
        self.tokenizer = load_tokenizer(folder)
        self.templates = Templates(self.tokenizer)
        self.grammars = Grammars(self.tokenizer)
        self.context_size = context_size_of(folder, settings)
