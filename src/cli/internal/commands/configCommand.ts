/** `deepagents config`: each setting and rule with its origin, and which of them decides. */
import { homedir } from "node:os"
import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Agent from "../../../core/Agent.ts"
import { isObject, type JsonObject } from "../../../core/Json.ts"
import type * as Ruling from "../../../core/Ruling.ts"
import { suggestion } from "../../../support/text/near.ts"
import { idOf } from "../config/items.ts"
import { projectSettings, userSettings } from "../config/places.ts"
import { compiled, type FoundPolicy, policyFiles, readPolicies } from "../config/policies.ts"
import { keys, originOf, says, type Setting } from "../config/settings.ts"
import { fail } from "../failure.ts"
import { print, printJson, table } from "../output.ts"
import { type Context, openApp } from "../work/app.ts"
import { ownFolders } from "../work/machine/host.ts"

/** Lists the rules of a policy by their places in its file. */
const rowsOf = ({ file, from, policy: { name: _name, strict: _strict, ...rules } }: FoundPolicy) => {
  const row = (place: string, value: unknown) => [place, JSON.stringify(value), `policy ${from} (${file})`]
  return Object.entries(rules).flatMap(([section, value]) =>
    typeof value !== "object" || section === "default"
      ? [row(section, value)]
      : Object.entries(value).map(([name, one]) => row(`${section}.${name}`, one))
  )
}

export const config = Effect.fnUntraced(function* ({ places, project, settings }: Context, asJson: boolean) {
  const files = { user: userSettings(places), project: projectSettings(places) }
  const policies = yield* readPolicies(policyFiles(places, project))
  if (asJson) return yield* printJson({ settings, policies, files, leftOut: project.left.map(idOf), data: places.data })
  const rows = keys.map((key) => {
    const setting = settings[key]
    return setting === undefined
      ? [key, "–", "", says[key]]
      : [key, JSON.stringify(setting.value), originOf(setting), says[key]]
  })
  const rules = policies.flatMap(rowsOf)
  return yield* print(
    ...table(rows),
    "",
    ...(rules.length === 0 ? [] : [...table(rules), ""]),
    ...table([
      ["user", files.user],
      [
        "project",
        files.project + (project.left.some(({ kind }) => kind === "settings") ? " (left out: it is not trusted)" : "")
      ],
      ["data", places.data]
    ])
  )
})

/** Lists all values of a setting. The effective one comes first. */
const settingOf = function* (setting: Setting | undefined): Generator<ReadonlyArray<string>> {
  for (let one = setting; one !== undefined; one = one.before) yield [JSON.stringify(one.value), originOf(one)]
}

const argumentsOf = (given: string | undefined) => {
  if (given === undefined) return Effect.succeed<JsonObject>({})
  const result = Result.try((): unknown => JSON.parse(given))
  return Result.isSuccess(result) && isObject(result.success)
    ? Effect.succeed(result.success)
    : fail("usage", `${JSON.stringify(given.slice(0, 40))} is not an object of arguments; expected '{"command": "ls"}'`)
}

const verbs = { Allow: "allow", Ask: "ask", Refuse: "refuse" } as const

/** The rulings behind a verdict: the deciding ones first. */
const rulingsIn = ({ ruling, rulings }: Ruling.Verdict): ReadonlyArray<Ruling.Ruling> => [
  ...(rulings.some(({ _tag }) => _tag === ruling._tag) ? [] : [ruling]),
  ...rulings.filter(({ _tag }) => _tag === ruling._tag),
  ...rulings.filter(({ _tag }) => _tag !== ruling._tag)
]

/** Explains which setting or rule decides about a setting, a tool call or a path. */
export const explain = Effect.fnUntraced(function* (context: Context, name: string, given: string | undefined) {
  const { places, project, settings } = context
  const key = keys.find((one) => one === name)
  if (key !== undefined) {
    const rows = [...settingOf(settings[key])]
    return yield* print(says[key], ...table(rows.length === 0 ? [["not set"]] : rows))
  }
  // No model is called, so none has to be set up.
  const app = yield* openApp({ ...context, isDemo: true })
  const policies = yield* readPolicies(policyFiles(places, project))
  const { tools } = Agent.describe(yield* app.agent({ mode: "ask" }))
  const names = tools.map((tool) => tool.name)
  const policy = yield* compiled(policies, tools, places, yield* ownFolders(context))
  if (/^(?:\.{0,2}\/|~\/)/.test(name)) {
    const path = resolve(places.project, name.replace(/^~/, homedir()))
    const rowOf = (operation: "read" | "write") => {
      const ruling = policy?.explainPath(operation, path).ruling
      return ruling === undefined ? [operation, "allow"] : [operation, verbs[ruling._tag], ruling.by]
    }
    return yield* print(...table([rowOf("read"), rowOf("write")]))
  }
  const server = app.servers.servers.find((one) => name.startsWith(`${one.name}__`))
  const tool = tools.find((one) => one.name === name)
  if (tool === undefined && server === undefined) {
    return yield* fail(
      "usage",
      `There is no setting and no tool ${JSON.stringify(name)}. ${suggestion(name, [...keys, ...names])}`
    )
  }
  const verdict = policy?.explain({
    name,
    arguments: yield* argumentsOf(given),
    annotations: tool?.annotations ?? (server === undefined ? {} : { server: server.name }),
    parameters: tool?.parameters
  })
  const fileOf = (from: string | undefined) => policies.find((one) => one.from === from)?.file ?? ""
  if (verdict === undefined || verdict.rulings.length === 0) {
    return yield* print("No policy has a rule for it: the mode of approvals decides.")
  }
  const rows = rulingsIn(verdict).map(({ _tag, by }) => {
    const [from = "", ...rule] = by.split(": ")
    return [verbs[_tag], rule.join(": "), `${from} (${fileOf(from)})`]
  })
  return yield* print(...table(rows))
})
