/**
 * The set-up of an agent for a model, as plain data: its prompt, its tools and their descriptions.
 *
 * A profile is for a provider, or for some models of it. Matching profiles are merged, the most exact last.
 *
 * ```ts
 * import { HarnessProfile } from "effect-deepagents/profiles"
 *
 * const qwen: HarnessProfile.HarnessProfile = {
 *   provider: "ollama",
 *   model: "qwen3",
 *   promptSuffix: "Answer in one paragraph.",
 *   excludedTools: ["task"]
 * }
 * const profile = HarnessProfile.resolve([...HarnessProfile.builtIn, qwen], "ollama", "qwen3:8b")
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"
import { defined } from "../support/json/defined.ts"
import { at, brief, problems } from "../support/text/issues.ts"
import { normaliseName } from "../support/text/names.ts"
import { parseYaml } from "../support/text/yaml.ts"

/**
 * - `provider`: without `model`, the profile is for all models of the provider
 * - `model`: a model's id or its beginning: `claude-opus` matches `claude-opus-5-5`
 * - `basePrompt`: follows the user's prompt
 * - `promptSuffix`: follows `basePrompt`
 * - `toolDescriptions`: replace descriptions of tools, by name
 * - `excludedTools`: are neither offered nor run
 */
export const HarnessProfile = Schema.Struct({
  provider: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  basePrompt: Schema.optionalKey(Schema.String),
  promptSuffix: Schema.optionalKey(Schema.String),
  toolDescriptions: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  excludedTools: Schema.optionalKey(Schema.Array(Schema.String))
})

/** The set-up of an agent for a model. A field that is `undefined` is not given. */
export type HarnessProfile = {
  readonly [Field in keyof typeof HarnessProfile.Type]?: (typeof HarnessProfile.Type)[Field] | undefined
}

/** An input is not a valid profile. The message names the field, its value and the expected type. */
export class InvalidProfile extends TaggedError<InvalidProfile>()("InvalidProfile", {
  problem: Schema.String
}) {
  override get message(): string {
    return `This is not a harness profile: ${this.problem}`
  }
}

const decode = Schema.decodeUnknownEffect(HarnessProfile, { onExcessProperty: "error" })

/** Decodes a profile, and rejects unknown fields. */
export const fromUnknown = (input: unknown): Effect.Effect<HarnessProfile, InvalidProfile> =>
  Effect.mapError(decode(input), ({ issue }) => {
    const { expected = "a profile", keys = [], path = "" } = problems(issue)[0] ?? {}
    const actual = brief(at(input, keys))
    return new InvalidProfile({ problem: `${path || "the whole"}: expected ${expected}, got ${actual}` })
  })

/** The longest text of a profile, in characters. */
const maxLength = 65_536

/** Reads a profile from YAML, or from JSON, which YAML includes: at most 65,536 characters, without aliases. */
export const fromYaml = (text: string): Effect.Effect<HarnessProfile, InvalidProfile> =>
  Effect.flatMap(
    Effect.mapError(parseYaml(text, maxLength), (problem) => new InvalidProfile({ problem })),
    fromUnknown
  )

/** Merges two profiles. Fields of the second win, maps are merged, and lists united. */
export const merge = (first: HarnessProfile, second: HarnessProfile): HarnessProfile => ({
  ...first,
  ...defined({
    ...second,
    toolDescriptions: second.toolDescriptions && { ...first.toolDescriptions, ...second.toolDescriptions },
    excludedTools: second.excludedTools && [...new Set([...(first.excludedTools ?? []), ...second.excludedTools])]
  })
})

const isFor = (profile: HarnessProfile, provider: string, model: string): boolean => {
  if (profile.provider !== undefined && normaliseName(profile.provider) !== normaliseName(provider)) return false
  const wanted = profile.model?.toLowerCase()
  if (wanted === undefined) return true
  // Ids come with regions and vendors before them: us.anthropic.claude-…, openai/gpt-….
  const at = model.toLowerCase().lastIndexOf(wanted)
  const before = at <= 0 ? "" : (model[at - 1] ?? "")
  return at === 0 || (at > 0 && /[./:]/.test(before))
}

/** Ranks a profile: a model counts more than a provider, a longer id more than a shorter one. */
const exactness = ({ model, provider }: HarnessProfile): number =>
  (provider === undefined ? 0 : 1) + (model === undefined ? 0 : 2 + model.length)

/** Merges all profiles that match a model, the most exact last. Of equals, the later one wins. */
export const resolve = (profiles: ReadonlyArray<HarnessProfile>, provider: string, model: string): HarnessProfile => {
  const {
    model: _model,
    provider: _provider,
    ...merged
  } = profiles
    .filter((profile) => isFor(profile, provider, model))
    .toSorted((left, right) => exactness(left) - exactness(right))
    .reduce(merge, {})
  return merged
}

/** For the models of today. Add your own after them. */
export const builtIn: ReadonlyArray<HarnessProfile> = [
  {
    model: "claude",
    promptSuffix:
      "Make calls that don't need each other in one turn. Look at files before you speak of them. After each result, consider what it means before you go on."
  },
  {
    model: "gpt",
    promptSuffix:
      "Go on until the task is done; ask only if you can't go on without an answer. Say in a sentence what you are about to do before a longer row of calls."
  },
  {
    model: "gemini",
    promptSuffix: "Use the tools rather than describe what they would do. Give paths from the root."
  },
  {
    model: "qwen",
    promptSuffix: "Call tools by their exact names, with all arguments that they require, and wait for their results."
  },
  ...["llama", "ollama", "lmstudio"].map((provider) => ({
    provider,
    promptSuffix: "Do one step at a time: one call, then look at its result. Keep answers short.",
    excludedTools: ["task"]
  }))
]
