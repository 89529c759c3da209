/**
 * Companies that serve models of others over Chat Completions: Groq, Together, Fireworks, Cerebras, OpenRouter. Facts of
 * summer 2026, from their pages of models and prices.
 */
import { pictures, plain, row, type Server } from "./Server.ts"

export const groq: Server = {
  name: "groq",
  baseURL: "https://api.groq.com/openai/v1",
  key: "GROQ_API_KEY",
  ways: { ...pictures, maxTokens: "max_completion_tokens" },
  models: {
    "openai/gpt-oss-120b": row(131_072, "three", "reads", 0.15, 0.6, 0.075),
    "openai/gpt-oss-20b": row(131_072, "three", "reads", 0.075, 0.3, 0.0375),
    "openai/gpt-oss-safeguard-20b": row(131_072, "three", "reads", 0.075, 0.3),
    "llama-3.3-70b-versatile": row(131_072, "plain", "reads", 0.59, 0.79),
    "llama-3.1-8b-instant": row(131_072, "plain", "reads", 0.05, 0.08),
    "meta-llama/llama-4-scout-17b-16e-instruct": row(131_072, "plain", "sees", 0.11, 0.34),
    "qwen/qwen3-32b": row(131_072, "plain", "reads", 0.29, 0.59)
  },
  assumed: { contextWindowTokens: 131_072 }
}

export const together: Server = {
  name: "together",
  baseURL: "https://api.together.xyz/v1",
  key: "TOGETHER_API_KEY",
  ways: { ...pictures, thinking: "toggle" },
  models: {
    "deepseek-ai/DeepSeek-V4-Pro": row(512_000, "top", "reads", 1.74, 3.48, 0.2),
    "google/gemma-4-31B-it": row(262_144, "plain", "sees", 0.39, 0.97),
    "meta-llama/Llama-3.3-70B-Instruct-Turbo": row(131_072, "plain", "reads", 0.88, 0.88),
    "MiniMaxAI/MiniMax-M2.7": row(202_752, "plain", "reads", 0.3, 1.2, 0.06),
    "MiniMaxAI/MiniMax-M3": row(524_288, "plain", "sees", 0.3, 1.2, 0.06),
    "moonshotai/Kimi-K2.6": row(262_144, "onOff", "sees", 1.2, 4.5, 0.2),
    "moonshotai/Kimi-K2.7-Code": row(262_144, "plain", "reads", 0.95, 4, 0.19),
    "nvidia/nemotron-3-ultra-550b-a55b": row(512_300, "onOff", "reads", 0.6, 3.6, 0.2),
    "openai/gpt-oss-120b": row(131_072, "three", "reads", 0.15, 0.6),
    "openai/gpt-oss-20b": row(131_072, "three", "reads", 0.05, 0.2),
    "Qwen/Qwen3-235B-A22B-Instruct-2507-tput": row(262_144, "plain", "reads", 0.2, 0.6),
    "Qwen/Qwen3.5-397B-A17B": row(262_144, "onOff", "sees", 0.6, 3.6),
    "Qwen/Qwen3.5-9B": row(262_144, "onOff", "sees", 0.17, 0.25),
    "Qwen/Qwen3.6-Plus": row(1_000_000, "onOff", "reads", 0.5, 3),
    "zai-org/GLM-5": row(202_752, "onOff", "reads", 1, 3.2),
    "zai-org/GLM-5.1": row(202_752, "onOff", "reads", 1.4, 4.4),
    "zai-org/GLM-5.2": row(262_144, "top", "reads", 1.4, 4.4, 0.26)
  }
}

export const fireworks: Server = {
  name: "fireworks",
  baseURL: "https://api.fireworks.ai/inference/v1",
  key: "FIREWORKS_API_KEY",
  ways: { ...pictures },
  models: {
    "accounts/fireworks/models/deepseek-v4-flash": row(1_000_000, "top", "reads", 0.14, 0.28, 0.028),
    "accounts/fireworks/models/deepseek-v4-pro": row(1_000_000, "top", "reads", 1.74, 3.48, 0.145),
    "accounts/fireworks/models/glm-5p1": row(202_800, "onOff", "reads", 1.4, 4.4, 0.26),
    "accounts/fireworks/models/glm-5p2": row(1_048_575, "top", "reads", 1.4, 4.4, 0.26),
    "accounts/fireworks/models/gpt-oss-120b": row(131_072, "three", "reads", 0.15, 0.6, 0.015),
    "accounts/fireworks/models/gpt-oss-20b": row(131_072, "three", "reads", 0.07, 0.3, 0.035),
    "accounts/fireworks/models/kimi-k2p6": row(262_000, "onOff", "sees", 0.95, 4, 0.16),
    "accounts/fireworks/models/kimi-k2p7-code": row(262_000, "onOff", "sees", 0.95, 4, 0.19),
    "accounts/fireworks/models/minimax-m2p7": row(196_608, "three", "reads", 0.3, 1.2, 0.06),
    "accounts/fireworks/models/minimax-m3": row(512_000, "three", "reads", 0.3, 1.2, 0.06),
    "accounts/fireworks/models/qwen3p7-plus": row(262_144, "four", "sees", 0.4, 1.6, 0.08)
  }
}

export const cerebras: Server = {
  name: "cerebras",
  baseURL: "https://api.cerebras.ai/v1",
  key: "CEREBRAS_API_KEY",
  ways: { ...pictures, maxTokens: "max_completion_tokens" },
  models: {
    "gpt-oss-120b": row(131_072, "three", "reads", 0.35, 0.75),
    "zai-glm-4.7": row(131_072, "plain", "reads", 2.25, 2.75)
  },
  assumed: { contextWindowTokens: 131_072 }
}

/** Its models are those of others, and it says itself what an answer cost. */
export const openrouter: Server = {
  name: "openrouter",
  baseURL: "https://openrouter.ai/api/v1",
  key: "OPENROUTER_API_KEY",
  ways: { ...plain, thinking: "reasoning" },
  models: {}
}
