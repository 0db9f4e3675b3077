"""The chat model around EnvScaler-Qwen3."""
