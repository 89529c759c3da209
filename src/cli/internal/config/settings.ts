/** Settings: defaults < user < project < environment < flags. Each value knows its origin. */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { at, brief, problems } from "../../../support/text/issues.ts"
import { didYouMean } from "../../../support/text/names.ts"
import { suggestion } from "../../../support/text/near.ts"
import { fail, type Failure } from "../failure.ts"
import { actions, keyName } from "../input/bindings.ts"
import { statusParts } from "../render/statusParts.ts"
import { themeName, themes } from "../render/themes.ts"
import { itemsOf, type Project } from "./items.ts"
import { type Places, projectSettings, textOf, userSettings } from "./places.ts"

const positive = Schema.Finite.check(Schema.isGreaterThan(0))
const whole = Schema.Int.check(Schema.isGreaterThan(0))

/** Facts of a model without known facts, by `provider:model`. */
const Facts = Schema.Struct({
  contextWindowTokens: Schema.optionalKey(whole),
  supportsVision: Schema.optionalKey(Schema.Boolean),
  prices: Schema.optionalKey(Schema.Struct({ input: Schema.Finite, output: Schema.Finite })),
  baseURL: Schema.optionalKey(Schema.String)
})

const KeyName = Schema.String.check(Schema.isPattern(keyName, { expected: "a key such as ctrl+p" }))

const Names = Schema.optionalKey(Schema.Array(Schema.String))

/** The shell of commands: its program, and variables that it hides, shows or sets. */
const Shell = Schema.Struct({
  program: Schema.optionalKey(Schema.String),
  env: Schema.optionalKey(
    Schema.Struct({
      hide: Names,
      show: Names,
      set: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
    })
  )
})

/** The isolation of commands: off, on, or on with hosts that they reach and folders beside the project. */
const Isolation = Schema.Union([
  Schema.Literals(["off", "os"]),
  Schema.Struct({ network: Names, readable: Names, writable: Names })
])

/** Keys of the chat, by action. */
const Keys = Schema.Record(Schema.Literals(actions), Schema.optionalKey(Schema.Array(KeyName)))

/** Rules for calls, as texts: `approvals/permission.ts` reads them. */
const Permissions = Schema.Struct({
  allow: Schema.optionalKey(Schema.Array(Schema.String)),
  ask: Schema.optionalKey(Schema.Array(Schema.String)),
  deny: Schema.optionalKey(Schema.Array(Schema.String))
})

/** The status line: parts by name, or a command in the form of Claude Code. */
const StatusLine = Schema.Union([
  Schema.Array(Schema.Literals(statusParts)),
  Schema.Struct({
    type: Schema.optionalKey(Schema.Literal("command")),
    command: Schema.String,
    padding: Schema.optionalKey(Schema.Finite)
  })
])

/** Language servers beside the known ones, by name. `false` starts none. */
const Lsp = Schema.Union([
  Schema.Boolean,
  Schema.Record(
    Schema.String,
    Schema.Struct({
      command: Schema.NonEmptyArray(Schema.String),
      languages: Schema.Record(Schema.String, Schema.String)
    })
  )
])

const schemas = {
  model: Schema.String,
  agent: Schema.String,
  approvals: Schema.Literals(["ask", "auto-edit", "plan", "yolo"]),
  thinking: Schema.Literals(["off", "low", "medium", "high", "xhigh", "max"]),
  maxTurns: whole,
  budget: positive,
  tokens: whole,
  skills: Schema.Array(Schema.String),
  plugins: Schema.Array(Schema.String),
  folders: Schema.Array(Schema.String),
  shell: Shell,
  sandbox: Isolation,
  hooks: Schema.Record(Schema.String, Schema.Json),
  models: Schema.Record(Schema.String, Facts),
  search: Schema.Literals(["tavily", "brave", "exa", "serper", "duckduckgo"]),
  scripts: Schema.Union([Schema.Boolean, Schema.Literal("review")]),
  plain: Schema.Boolean,
  theme: Schema.String.check(
    Schema.isPattern(themeName, { expected: `${themes.join(" | ")}, or one of an extension, as extension:theme` })
  ),
  favourites: Schema.Array(Schema.String),
  fallback: Schema.Array(Schema.String),
  lsp: Lsp,
  keys: Keys,
  vim: Schema.Boolean,
  statusLine: StatusLine,
  permissions: Permissions
} as const

type Schemas = typeof schemas
export type Key = keyof Schemas
export type Values = { readonly [K in Key]?: Schemas[K]["Type"] | undefined }
export type Approvals = NonNullable<Values["approvals"]>

/** The names and descriptions of settings. */
export const says: { readonly [K in Key]: string } = {
  model: "the model, as provider:model; without it, the first provider that has a key",
  agent: "the agent, by its name (deepagents agents)",
  approvals: "ask | auto-edit (edits need no answer) | plan (nothing is changed); yolo is a flag only",
  thinking: "off | low | medium | high",
  maxTurns: "rounds of a run, at most",
  budget: "US dollars that a run may cost",
  tokens: "tokens that a run may use, input and output",
  skills: "further folders of skills",
  plugins: "folders of plugins of Claude Code: their commands, agents, skills and hooks",
  folders:
    "folders beside the working folder, such as ../shared (to be read) or ../shared:write; --add-dir on the line",
  shell: `the shell of commands: {"program": "/bin/bash", "env": {"hide": [], "show": ["NPM_TOKEN"], "set": {}}}; variables that look like secrets are hidden`,
  sandbox: `without it, auto-edit isolates commands that nobody approved; os (all commands reach the folders, and no network) | off (they have your rights), or {"network": ["registry.npmjs.org"], "readable": ["~/.nvm"], "writable": ["~/.npm"]}`,
  hooks: "commands and addresses by event, in the form of Claude Code",
  models: `facts of models that the catalogue lacks, by provider:model: ${Object.keys(Facts.fields).join(", ")}`,
  search: "tavily | brave | exa | serper | duckduckgo; without it, the first that has a key, else DuckDuckGo",
  scripts:
    "true: agents may run programs over their tools in one call (run_script); review: you approve each as a whole",
  plain: "lines instead of a screen",
  theme: `the colours of the chat: ${themes.join(" | ")}, or extension:theme`,
  favourites: "models that come first in /model, as provider:model",
  fallback: "models that answer while the first one can't, in this order; without it, the favourites; [] for none",
  lsp: `language servers for diagnostics after edits, beside the known ones: {"zls": {"command": ["zls"], "languages": {"zig": "zig"}}}; false for none`,
  keys: `keys of the chat, such as {"plan": ["ctrl+p"]}: ${actions.join(", ")}`,
  statusLine: `the status line of the chat: parts such as ["mode", "model", "branch"] (${statusParts.join(", ")}), or {"command": "~/bin/status"}, which reads facts as JSON`,
  vim: "true: vim keys for the draft of the chat",
  permissions: 'rules for calls, such as {"allow": ["Bash(npm test:*)"], "ask": [], "deny": ["Bash(git push:*)"]}'
}

export const keys = Object.keys(says).filter((key): key is Key => Object.hasOwn(schemas, key))

export type From = "default" | "user" | "project" | "environment" | "flag"

/** A setting with its origin (a file, a variable, a flag) and the values that it overrides. */
export interface Setting<out A = unknown> {
  readonly value: A
  readonly from: From
  readonly where: string
  readonly before?: Setting | undefined
}

/** Writes the origin of a setting: a file, a variable, a flag. */
export const originOf = ({ from, where }: Setting): string => from + (where === "" ? "" : ` (${where})`)

export type Settings = { readonly [K in Key]?: Setting<NonNullable<Values[K]>> | undefined }

interface Layer {
  readonly from: From
  readonly where: (key: Key) => string
  readonly values: Values
}

const defaults: Values = { agent: "deep", approvals: "ask" }

const variable = (key: string): string =>
  `DEEPAGENTS_${key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`

/** Settings with a structure. Flags and variables can't set them. */
const inFilesOnly: ReadonlySet<Key> = new Set<Key>([
  "models",
  "keys",
  "shell",
  "hooks",
  "favourites",
  "fallback",
  "lsp",
  "statusLine",
  "permissions"
])

/** Variables of the program that are not settings. */
const others = [
  "DEEPAGENTS_ATTACH_TOKEN",
  "DEEPAGENTS_CACHE",
  "DEEPAGENTS_DEMO",
  "DEEPAGENTS_CLUSTER_ADDRESS",
  "DEEPAGENTS_DATABASE_URL",
  "DEEPAGENTS_SERVE_TOKEN",
  "DEEPAGENTS_WEBHOOK_SECRET",
  "DEEPAGENTS_WEBHOOK_URL"
]

const isKey = (name: string): name is Key => Object.hasOwn(schemas, name)

/** Decodes the settings of one origin. A failure names the setting, its value and the expected form. */
const decoded = (
  values: { readonly [name: string]: unknown },
  place: (name: string) => string
): Effect.Effect<Values, Failure> => {
  const settings: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(values)) {
    if (name === "$schema") continue
    if (!isKey(name)) {
      return fail("usage", `${place("there is no setting")} ${brief(name)}. ${suggestion(name, keys)}`)
    }
    const result = Schema.decodeUnknownResult(schemas[name], { onExcessProperty: "error" })(value)
    if (Result.isFailure(result)) {
      const { expected = "another value", keys: inside = [], path = "" } = problems(result.failure.issue)[0] ?? {}
      const where = path === "" ? place(name) : `${place(name)}.${path}`
      const field = inside.at(-1)
      if (expected === "no such field" && typeof field === "string") {
        // The description of a setting names its fields.
        const hint = didYouMean(field, says[name].match(/\w+/g) ?? [])
        return fail("usage", `${where}: there is no such field.${hint} (${says[name]})`)
      }
      return fail("usage", `${where} is ${brief(at(value, inside))}; expected ${expected} (${says[name]})`)
    }
    settings[name] = result.success
  }
  return Effect.succeed(settings)
}

/** Decodes the rules among settings of another origin. */
export const decodePermissions = (values: { readonly [name: string]: unknown }, file: string) =>
  Effect.map(
    decoded(values, (name) => `${file}: ${name}`),
    ({ permissions }) => permissions
  )

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Reads the record of a JSON file from its text. Without a text it is empty. */
const parseRecord = Effect.fnUntraced(function* (file: string, text: string | undefined) {
  const json = Result.try((): unknown => JSON.parse(text === undefined || text === "" ? "{}" : text))
  if (Result.isFailure(json)) {
    const why = json.failure instanceof Error ? json.failure.message : "it is no JSON"
    return yield* fail("usage", `${file} is no JSON: ${why}`)
  }
  return isRecord(json.success) ? json.success : yield* fail("usage", `${file}: expected an object of settings`)
})

/** Reads the record of a JSON file. A missing file is empty. */
export const readRecord = (file: string) => Effect.flatMap(textOf(file), (text) => parseRecord(file, text))

/** Settings that a project can't make for its users: their plugins, hooks and keyboard, and what is reached beside its folder. */
const ofUsersOnly: ReadonlySet<string> = new Set<Key>([
  "keys",
  "vim",
  "plugins",
  "hooks",
  "folders",
  "shell",
  "sandbox",
  "favourites",
  "fallback",
  "lsp",
  "statusLine"
])

/** Refuses settings by which a project would reach the keys of its users. */
const refuseAddresses = (file: string, record: { readonly [name: string]: unknown }): Effect.Effect<void, Failure> => {
  const models = isRecord(record["models"]) ? Object.entries(record["models"]) : []
  const addressed = models.flatMap(([name, facts]) =>
    isRecord(facts) && Object.hasOwn(facts, "baseURL") ? [`models.${name}.baseURL`] : []
  )
  const [first] = [...addressed, ...Object.keys(record).filter((name) => ofUsersOnly.has(name))]
  return first === undefined
    ? Effect.void
    : fail("usage", `${file}: ${brief(first)} can't be set by a project; set it in your own settings`)
}

const fileLayer = Effect.fnUntraced(function* (from: "user" | "project", file: string, text: string | undefined) {
  const record = yield* parseRecord(file, text)
  if (from === "project") yield* refuseAddresses(file, record)
  const values = yield* decoded(record, (name) => `${file}: ${name}`)
  if (values.approvals === "yolo") {
    return yield* fail("usage", `${file}: approvals can't be "yolo" in a file; give the flag --yolo each time`)
  }
  return { from, where: () => file, values } satisfies Layer
})

const parsed = (key: Key, text: string): unknown => {
  if (key === "maxTurns" || key === "budget" || key === "tokens") return text.trim() === "" ? text : Number(text)
  if (key === "plain" || key === "scripts" || key === "vim")
    return text === "1" || text === "true" ? true : text === "0" || text === "false" ? false : text
  if (key === "folders") return text.split(",")
  return key === "skills" || key === "plugins" ? text.split(":") : text
}

const environment = Effect.fnUntraced(function* (env: { readonly [name: string]: string | undefined }) {
  const entries = Object.entries(env).filter(([name, value]) => name.startsWith("DEEPAGENTS_") && (value ?? "") !== "")
  const settings: Record<string, unknown> = {}
  for (const [name, value = ""] of entries) {
    const key = keys.find((one) => !inFilesOnly.has(one) && variable(one) === name)
    if (key !== undefined) settings[key] = parsed(key, value)
    else if (!others.includes(name)) {
      const knownNames = [...keys.filter((one) => !inFilesOnly.has(one)).map(variable), ...others]
      return yield* fail(
        "usage",
        `The environment has ${name}, which deepagents does not know. ${suggestion(name, knownNames)}`
      )
    }
  }
  if (settings["approvals"] === "yolo") {
    return yield* fail("usage", `DEEPAGENTS_APPROVALS can't be "yolo"; give the flag --yolo each time`)
  }
  const values = yield* decoded(settings, variable)
  return { from: "environment", where: variable, values } satisfies Layer
})

const flag = (key: string): string => `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** Tells whether a sandbox keeps commands in the folders of the agent: no network, and nothing else to write to. */
export const hasContainment = ({ sandbox }: Settings): boolean => {
  const value = sandbox?.value ?? "off"
  if (value === "off" || value === "os") return value === "os"
  return (value.network ?? []).length === 0 && (value.writable ?? []).length === 0
}

/** Overrides a setting with a choice of the person. */
export const choose = <K extends Key>(settings: Settings, key: K, value: NonNullable<Values[K]>): Settings => ({
  ...settings,
  [key]: { value, from: "flag", where: flag(key), before: settings[key] }
})

/** Reads and merges all settings. The file of a project counts only once it is trusted. */
export const readSettings = Effect.fnUntraced(function* (options: {
  readonly places: Places
  readonly flags: Values
  readonly project: Project
}): Effect.fn.Return<Settings, Failure, FileSystem.FileSystem> {
  const { flags, places, project } = options
  const layers: ReadonlyArray<Layer> = [
    { from: "default", where: () => "", values: defaults },
    yield* fileLayer("user", userSettings(places), yield* textOf(userSettings(places))),
    ...(yield* Effect.forEach(itemsOf(project, "settings"), ({ text }) =>
      fileLayer("project", projectSettings(places), text)
    )),
    yield* environment(process.env),
    { from: "flag", where: flag, values: yield* decoded(flags, flag) }
  ]
  const settings: Record<string, Setting> = {}
  for (const { from, values, where } of layers) {
    for (const key of keys) {
      if (values[key] !== undefined) {
        settings[key] = { value: values[key], from, where: where(key), before: settings[key] }
      }
    }
  }
  return settings
})
