/**
 * Which model answers: the one that `--model` names, else one for the key that is set, else a script.
 */
import { Config, Effect, type Layer } from "effect"
import type { ChatModel, ModelError } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import { TestChatModel } from "effect-deepagents/testing"
import { respond } from "./script.ts"

/** The model for each key, if the user names none. */
const byKey = [
  ["ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5"],
  ["OPENAI_API_KEY", "openai:gpt-5.4-mini"]
] as const

/** A model, and the line that says which. */
export interface Chosen {
  readonly line: string
  readonly layer: Layer.Layer<
    ChatModel.ChatModel,
    ModelError.ModelError | ChatModels.UnknownProvider | Config.ConfigError
  >
}

const named = (spec: string, why: string): Chosen => ({
  line: `The model is ${spec} (${why}).`,
  layer: ChatModels.resolve(spec)
})

const scripted: Chosen = {
  line: "No API key is set: a scripted model answers. The rest (agents, tools, files, events) is real.",
  layer: TestChatModel.reactive(respond, { provider: "demo" })
}

/** Chooses. A key that is set but empty counts as not set. */
export const choose = (spec: string | undefined): Effect.Effect<Chosen, Config.ConfigError> =>
  Effect.gen(function* () {
    if (spec !== undefined) return named(spec, "--model")
    for (const [key, model] of byKey) {
      const value = yield* Config.String(key).pipe(Config.withDefault(""))
      if (value !== "") return named(model, `${key} is set`)
    }
    return scripted
  })
