/** Reads hooks from settings in the form of Claude Code. */
import type * as HttpClient from "effect/http/HttpClient"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { suggestion } from "../../../support/text/near.ts"
import { isBeyond } from "./fire.ts"
import { command, http, module, type Place } from "./handlers.ts"
import { events, type Hook, type HookEvent } from "./model.ts"

/** The hooks of a file, and the entries that can't be used. */
export interface FromSettings {
  /** The hooks, for `Hooks.make`. */
  readonly hooks: ReadonlyArray<Hook<ChildProcessSpawner | HttpClient.HttpClient>>
  /** A sentence for each entry that can't be used. */
  readonly problems: ReadonlyArray<string>
}

type Handler = Hook<ChildProcessSpawner | HttpClient.HttpClient>["handler"]

const stringsOf = (value: Json | undefined): { readonly [name: string]: string } =>
  Object.fromEntries(
    Object.entries(isObject(value) ? value : {}).flatMap(([name, text]) =>
      typeof text === "string" ? [[name, text]] : []
    )
  )

const handlerOf = (entry: JsonObject, place: Place): Handler | string => {
  const { command: text, headers, path, type = "command", url } = entry
  if (type === "command") {
    return typeof text === "string" && text.trim() !== "" ? command(text, place) : "a command hook needs a `command`"
  }
  if (type === "http") {
    return typeof url === "string" && URL.canParse(url) ? http(url, stringsOf(headers)) : "an http hook needs a `url`"
  }
  if (type === "module" && place.ask !== undefined) {
    return typeof path === "string" && path.trim() !== "" ? module(path, place.ask) : "a module hook needs a `path`"
  }
  const types = place.ask === undefined ? "command and http" : "command, http and module"
  return `there are no hooks of the type ${JSON.stringify(type)}, only ${types}`
}

const isEvent = (name: string): name is HookEvent => events.some((event) => event === name)

type SettingsHook = FromSettings["hooks"][number]

/** Reads one entry of a group. Fails with its problem. */
const hookOf = (event: HookEvent, matcher: string | undefined, entry: Json, place: Place): SettingsHook | string => {
  if (!isObject(entry)) return "expected an object"
  const { blocking = false, timeout } = entry
  if (typeof blocking !== "boolean") return "`blocking` is true or false"
  if (timeout !== undefined && !(typeof timeout === "number" && timeout > 0)) return "`timeout` is a number of seconds"
  const handler = handlerOf(entry, place)
  if (typeof handler === "string") return handler
  const bounded = timeout === undefined ? undefined : (`${Math.min(timeout, 600)} seconds` as const)
  return { event, handler, matcher, blocking, timeout: bounded }
}

/** Reads the hooks of one matcher, each with its place. */
const groupOf = (
  event: HookEvent,
  group: Json,
  at: string,
  place: Place
): ReadonlyArray<readonly [at: string, hook: SettingsHook | string]> => {
  const { hooks, matcher } = isObject(group) ? group : {}
  if (!Array.isArray(hooks)) return [[at, "expected an object with a list of `hooks`"]]
  if (matcher !== undefined && typeof matcher !== "string") return [[at, "`matcher` is a text"]]
  if (matcher !== undefined && isBeyond(matcher)) {
    return [[at, `the matcher ${JSON.stringify(matcher)} fits nothing: write names with | between them, and * in them`]]
  }
  return hooks.map((entry: Json, index) => [`${at}.hooks[${index}]`, hookOf(event, matcher, entry, place)])
}

/** Reads the property `hooks` of settings. An entry that can't be used is a problem, and the others count. */
export const fromSettings = (json: Json, place: Place = {}): FromSettings => {
  const listed = isObject(json) ? json["hooks"] : undefined
  if (listed === undefined) return { hooks: [], problems: [] }
  if (!isObject(listed)) return { hooks: [], problems: ["hooks: expected an object of events"] }
  const hooks: Array<SettingsHook> = []
  const problems: Array<string> = []
  for (const [event, groups] of Object.entries(listed)) {
    if (!isEvent(event)) {
      problems.push(`hooks: there is no event ${JSON.stringify(event)}. ${suggestion(event, events)}`)
    } else if (!Array.isArray(groups)) {
      problems.push(`hooks.${event}: expected a list`)
    } else {
      const entries = groups.flatMap((group: Json, at) => groupOf(event, group, `hooks.${event}[${at}]`, place))
      for (const [at, hook] of entries) {
        if (typeof hook === "string") problems.push(`${at}: ${hook}`)
        else hooks.push(hook)
      }
    }
  }
  return { hooks, problems }
}
