/**
 * Companies that serve their own models over Chat Completions: Google, xAI, Mistral, DeepSeek. Facts of summer 2026, from
 * their pages of models and prices.
 */
import { pictures, row, type Server } from "./Server.ts"

export const gemini: Server = {
  name: "gemini",
  baseURL: "https://generativelanguage.googleapis.com/v1beta/openai",
  key: "GEMINI_API_KEY",
  ways: {
    ...pictures,
    schemas: "gemini",
    tag: "thought",
    signatures: true,
    audio: true,
    // Those before Gemini 3 refuse a schema beside tools.
    native: /^(?:models\/)?gemini-(?:[3-9]|\d\d)/,
    thinking: "google"
  },
  models: {
    "gemini-3.5-flash": row(1_048_576, "minimal", "sees", 1.5, 9, 0.15),
    "gemini-3.1-pro-preview": row(1_048_576, "three", "sees", 2, 12, 0.2),
    "gemini-3.1-pro-preview-customtools": row(1_048_576, "three", "sees", 2, 12, 0.2),
    "gemini-3.1-flash-lite": row(1_048_576, "minimal", "sees", 0.25, 1.5, 0.025),
    "gemini-3-pro-preview": row(1_048_576, "three", "sees", 2, 12, 0.2),
    "gemini-3-flash-preview": row(1_048_576, "minimal", "sees", 0.5, 3, 0.05),
    "gemini-2.5-pro": row(1_048_576, "three", "sees", 1.25, 10, 0.125),
    "gemini-2.5-flash": row(1_048_576, "four", "sees", 0.3, 2.5, 0.03),
    "gemini-2.5-flash-lite": row(1_048_576, "four", "sees", 0.1, 0.4, 0.01),
    "gemini-2.0-flash": row(1_048_576, "plain", "sees", 0.1, 0.4, 0.025),
    "gemini-2.0-flash-lite": row(1_048_576, "plain", "sees", 0.075, 0.3),
    "gemma-4-26b-a4b-it": row(262_144, "onOff", "sees"),
    "gemma-4-31b-it": row(262_144, "onOff", "sees")
  },
  assumed: { contextWindowTokens: 1_048_576, vision: true }
}

export const xai: Server = {
  name: "xai",
  baseURL: "https://api.x.ai/v1",
  key: "XAI_API_KEY",
  ways: { ...pictures, native: /^grok-(?:[4-9]|\d\d|latest|build)/ },
  models: {
    "grok-4.3": row(1_000_000, "four", "sees", 1.25, 2.5, 0.2),
    "grok-4.20-0309-reasoning": row(1_000_000, "plain", "sees", 1.25, 2.5, 0.2),
    "grok-4.20-0309-non-reasoning": row(1_000_000, "plain", "sees", 1.25, 2.5, 0.2),
    "grok-4.20-reasoning": row(1_000_000, "plain", "sees", 1.25, 2.5, 0.2),
    "grok-4.20-non-reasoning": row(1_000_000, "plain", "sees", 1.25, 2.5, 0.2),
    "grok-build-0.1": row(256_000, "plain", "sees", 1, 2, 0.2)
  },
  assumed: { contextWindowTokens: 256_000, vision: true }
}

export const mistral: Server = {
  name: "mistral",
  baseURL: "https://api.mistral.ai/v1",
  key: "MISTRAL_API_KEY",
  ways: {
    ...pictures,
    streamOptions: false,
    callIds: { length: 9, exactly: true },
    documents: "document_url",
    humanAfterTools: false
  },
  models: {
    "mistral-large-latest": row(262_144, "plain", "sees", 0.5, 1.5),
    "mistral-large-2512": row(262_144, "plain", "sees", 0.5, 1.5),
    "mistral-medium-latest": row(262_144, "plain", "sees", 0.4, 2),
    "mistral-medium-2604": row(262_144, "onOff", "sees", 1.5, 7.5),
    "mistral-medium-2508": row(262_144, "plain", "sees", 0.4, 2),
    "mistral-medium-2505": row(131_072, "plain", "sees", 0.4, 2),
    "mistral-small-latest": row(256_000, "onOff", "sees", 0.15, 0.6),
    "mistral-small-2603": row(256_000, "onOff", "sees", 0.15, 0.6),
    "mistral-small-2506": row(128_000, "plain", "sees", 0.1, 0.3),
    "magistral-medium-latest": row(128_000, "plain", "reads", 2, 5),
    "magistral-small": row(128_000, "plain", "reads", 0.5, 1.5),
    "ministral-8b-latest": row(128_000, "plain", "reads", 0.1, 0.1),
    "ministral-3b-latest": row(128_000, "plain", "reads", 0.04, 0.04),
    "devstral-medium-latest": row(262_144, "plain", "reads", 0.4, 2),
    "codestral-latest": row(256_000, "plain", "reads", 0.3, 0.9),
    "pixtral-large-latest": row(128_000, "plain", "sees", 2, 6),
    "mistral-nemo": row(128_000, "plain", "reads", 0.15, 0.15)
  },
  assumed: { contextWindowTokens: 128_000 }
}

export const deepseek: Server = {
  name: "deepseek",
  baseURL: "https://api.deepseek.com/v1",
  key: "DEEPSEEK_API_KEY",
  ways: { ...pictures, reasoning: "each", forcedTools: false, thinking: "deepseek" },
  models: {
    "deepseek-v4-pro": row(1_000_000, "top", "reads", 0.435, 0.87, 0.003625),
    "deepseek-v4-flash": row(1_000_000, "top", "reads", 0.14, 0.28, 0.0028),
    "deepseek-reasoner": row(1_000_000, "top", "reads", 0.14, 0.28, 0.0028),
    "deepseek-chat": row(1_000_000, "top", "reads", 0.14, 0.28, 0.0028)
  },
  assumed: { contextWindowTokens: 128_000 }
}
