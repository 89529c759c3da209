/**
 * Which model answers in an example: the one that `--model provider:model` names, else one for the key that is set, else
 * a script.
 */
import { parseArgs } from "node:util"
import { Config, Console, Effect, type Layer, Stdio } from "effect"
import type { ChatModel, ModelError } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"

/** The model for each key, if the user names none. */
const byKey = [
  ["ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5"],
  ["OPENAI_API_KEY", "openai:gpt-5.4-mini"]
] as const

export interface Chosen {
  readonly isScripted: boolean
  readonly layer: Layer.Layer<
    ChatModel.ChatModel,
    ModelError.ModelError | ChatModels.UnknownProvider | Config.ConfigError
  >
}

const live = (spec: string, why: string) =>
  Effect.as(Console.log(`The model is ${spec} (${why}).\n`), {
    isScripted: false,
    layer: ChatModels.resolve(spec)
  })

/** Chooses, and says so. A key that is set but empty counts as not set. */
export const chooseModel = (
  script: Layer.Layer<ChatModel.ChatModel>
): Effect.Effect<Chosen, Config.ConfigError, Stdio.Stdio> =>
  Effect.gen(function* () {
    const args = yield* (yield* Stdio.Stdio).args
    const { model } = parseArgs({ args: [...args], options: { model: { type: "string" } }, strict: false }).values
    if (typeof model === "string") return yield* live(model, "--model")
    for (const [key, spec] of byKey) {
      const value = yield* Config.String(key).pipe(Config.withDefault(""))
      if (value !== "") return yield* live(spec, `${key} is set`)
    }
    yield* Console.log("No API key is set: a scripted model answers. The rest (agents, tools, files) is real.\n")
    return { isScripted: true, layer: script }
  })
