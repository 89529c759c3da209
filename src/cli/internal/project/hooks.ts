/** Hooks of the user, of plugins and of a trusted project, in the form of Claude Code. */
import { homedir } from "node:os"
import { dirname, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Result from "effect/Result"
import type { Json } from "../../../core/Json.ts"
import * as Hooks from "../../../middleware/Hooks.ts"
import type * as Network from "../../../net/Network.ts"
import { freeze } from "../config/frozen.ts"
import { itemsOf, type Project } from "../config/items.ts"
import { type Places, userSettings } from "../config/places.ts"
import type { Settings } from "../config/settings.ts"
import { pluginsOf } from "./brought.ts"
import { readSmall } from "./folders.ts"
import { askModule } from "./hookModules.ts"

/** The most bytes of a file with hooks. */
const mostBytes = 1_000_000

type Origin = "user" | "project"

export type ProgramHook = Hooks.Hook<ChildProcessSpawner>

export interface FoundHooks {
  readonly hooks: ReadonlyArray<ProgramHook>
  readonly problems: ReadonlyArray<string>
}

/** The HTTP client of a hook. Private networks are refused, but for an address in the user's own file. */
const clientFor = (url: string, origin: Origin, rules: Network.Rules): Layer.Layer<HttpClient.HttpClient> =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("../../../net/NodeNetwork.ts")),
      ({ layer }) => {
        const host = URL.parse(url)?.host
        const own = origin === "user" && host !== undefined ? [host] : []
        return layer({ ...rules, allowPrivate: [...(rules.allowPrivate ?? []), ...own] })
      }
    )
  )

const parse = (text: string): Json | undefined => Result.getOrUndefined(Result.try((): Json => JSON.parse(text)))

/** The module of a hook of the user, from the folder of its settings. */
const inHome = (path: string, file: string): string => resolve(dirname(file), path.replace(/^~(?=\/)/, homedir()))

/** Finds all hooks. They add up: none takes another away. */
export const findHooks = Effect.fnUntraced(function* (
  context: { readonly places: Places; readonly settings: Settings; readonly project: Project },
  rules: Network.Rules
) {
  const { places, project, settings } = context
  const { plugins } = yield* pluginsOf(context)
  const hooks: Array<ProgramHook> = []
  const problems: Array<string> = []
  const add = (
    json: Json | undefined,
    file: string,
    origin: Origin,
    more: { readonly [name: string]: string } = {},
    frozen?: string
  ) => {
    if (json === undefined) return problems.push(`${file} is no JSON; its hooks are left out`)
    const env = { CLAUDE_PROJECT_DIR: places.project, DEEPAGENTS_PROJECT_DIR: places.project, ...more }
    const result = Hooks.fromSettings(json, {
      cwd: places.project,
      env,
      ask: (path, input) => askModule(frozen ?? inHome(path, file), input, env)
    })
    problems.push(...result.problems.map((problem) => `${file}: ${problem}`))
    return hooks.push(
      ...result.hooks.map((hook) => ({
        ...hook,
        handler: {
          name: hook.handler.name,
          run: (input: Parameters<typeof hook.handler.run>[0]) =>
            Effect.provide(hook.handler.run(input), clientFor(hook.handler.name, origin, rules))
        }
      }))
    )
  }
  const addFile = (file: string, env?: { readonly [name: string]: string }) =>
    Effect.map(readSmall(file, mostBytes), (read) => {
      if (read === undefined) return
      if ("problem" in read) problems.push(`${file}: ${read.problem}; its hooks are left out`)
      else add(parse(read.text), file, "user", env)
    })
  yield* addFile(join(homedir(), ".claude", "settings.json"))
  if (settings.hooks !== undefined) add({ hooks: settings.hooks.value }, userSettings(places), "user")
  for (const { folder } of plugins) {
    const file = join(folder, "hooks", "hooks.json")
    yield* addFile(file, { CLAUDE_PLUGIN_ROOT: dirname(dirname(file)) })
  }
  for (const { file, files, text: own } of itemsOf(project, "hook")) {
    // The module runs as it was trusted.
    const [name] = files?.keys() ?? []
    const frozen =
      files === undefined || name === undefined
        ? undefined
        : join(yield* freeze(places, [{ path: "hook", files }]), "hook", name)
    // The text of a module follows the JSON, which has no such line.
    add(parse(own.split("\n── ")[0] ?? ""), file, "project", {}, frozen)
  }
  return { hooks, problems } satisfies FoundHooks
})

/** Fires the hooks for the end of a session. They have 10 seconds in all. */
export const endSession = (hooks: ReadonlyArray<ProgramHook>, threadId: string) =>
  Hooks.fire(hooks, "SessionEnd", { session_id: threadId, reason: "exit" }, ["exit"]).pipe(
    Effect.timeoutOption("10 seconds")
  )

/** Fires the hooks before a person has the conversation compacted. One that refuses keeps it as it is. */
export const beforeCompact = Effect.fnUntraced(function* <R>(
  hooks: ReadonlyArray<Hooks.Hook<R>>,
  threadId: string,
  focus: string
) {
  const input = { session_id: threadId, trigger: "manual", custom_instructions: focus }
  const { verdict } = yield* Hooks.fire(hooks, "PreCompact", input, ["manual"])
  const { decision, reason = "no reason was given", stop } = verdict
  if (decision === "deny" || stop !== undefined) {
    return yield* Effect.fail({ message: `A hook keeps the conversation as it is: ${stop ?? reason}` })
  }
})

/** Keeps the ids of calls that a hook allowed. */
export const noteAllowed =
  (allowed: Set<string>) =>
  (callId: string, isAllowed: boolean): void => {
    if (isAllowed) allowed.add(callId)
    else allowed.delete(callId)
  }
