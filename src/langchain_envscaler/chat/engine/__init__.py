"""The engine that runs a Qwen3 in process: weights, tokens, a shared batch, grammars, reuse of prefixes."""
