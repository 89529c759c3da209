/** Runs scripts without an agent: each tool answers with its name and its arguments. */
import { Effect } from "effect"
import type { Json } from "effect-deepagents"
import { type Door, type Refusal, runScript } from "../../src/code/internal/host.ts"
import type { ScriptError, Scripts } from "../../src/code/Scripts.ts"

export interface Seen {
  readonly calls: Array<string>
  readonly lines: Array<string>
}

export const run = (
  source: string,
  options: {
    readonly limits?: Scripts["Service"] extends { readonly open: (program: infer P) => unknown }
      ? P extends { readonly limits: infer L }
        ? L
        : never
      : never
    readonly args?: Json.Json
    readonly seen?: Seen
    readonly answer?: (name: string, given: Json.Json) => Effect.Effect<Json.Json, Refusal>
  } = {}
): Effect.Effect<Json.Json, ScriptError, Scripts> => {
  const seen = options.seen ?? { calls: [], lines: [] }
  const door: Door<never> = {
    answer: ({ given, name }) =>
      Effect.suspend(() => {
        seen.calls.push(name)
        return options.answer?.(name, given) ?? Effect.succeed(`${name} ${JSON.stringify(given)}`)
      }),
    tell: ({ kind, text }) => Effect.sync(() => void seen.lines.push(`${kind}: ${text}`)),
    working: (work) => work
  }
  return runScript(
    {
      source,
      args: options.args ?? null,
      seed: 1,
      now: 1_000_000_000_000,
      tools: ["a", "b"],
      limits: options.limits ?? {}
    },
    door
  )
}
