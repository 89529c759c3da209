/** Reads hooks from settings in the form of Claude Code. */
import type * as HttpClient from "effect/http/HttpClient"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { suggestion } from "../../../support/text/near.ts"
import { command, http, type Place } from "./handlers.ts"
import { events, type Hook, type HookEvent } from "./model.ts"

/** The hooks of a file, and the entries that can't be used. */
export interface FromSettings {
  readonly hooks: ReadonlyArray<Hook<ChildProcessSpawner | HttpClient.HttpClient>>
  readonly problems: ReadonlyArray<string>
}

type Handled = Hook<ChildProcessSpawner | HttpClient.HttpClient>["handler"]

const stringsOf = (value: Json | undefined): { readonly [name: string]: string } =>
  Object.fromEntries(
    Object.entries(isObject(value) ? value : {}).flatMap(([name, text]) =>
      typeof text === "string" ? [[name, text]] : []
    )
  )

const handlerOf = (entry: JsonObject, place: Place): Handled | string => {
  const { command: text, headers, type = "command", url } = entry
  if (type === "command") {
    return typeof text === "string" && text.trim() !== "" ? command(text, place) : "a command hook needs a `command`"
  }
  if (type === "http") {
    return typeof url === "string" && URL.canParse(url) ? http(url, stringsOf(headers)) : "an http hook needs a `url`"
  }
  return `there are no hooks of the type ${JSON.stringify(type)}, only command and http`
}

const isEvent = (name: string): name is HookEvent => events.some((event) => event === name)

/** Reads the property `hooks` of settings. An entry that can't be used is a problem, and the others count. */
export const fromSettings = (json: Json, place: Place = {}): FromSettings => {
  const listed = isObject(json) ? json["hooks"] : undefined
  const hooks: Array<FromSettings["hooks"][number]> = []
  const problems: Array<string> = []
  if (listed === undefined) return { hooks, problems }
  if (!isObject(listed)) return { hooks, problems: ["hooks: expected an object of events"] }
  for (const [event, groups] of Object.entries(listed)) {
    if (!isEvent(event)) {
      problems.push(`hooks: there is no event ${JSON.stringify(event)}. ${suggestion(event, events)}`)
      continue
    }
    for (const [at, group] of (Array.isArray(groups) ? groups : []).entries()) {
      const matcher: Json | undefined = isObject(group) ? group["matcher"] : undefined
      const entries: Json | undefined = isObject(group) ? group["hooks"] : undefined
      for (const [index, entry] of (Array.isArray(entries) ? entries : []).entries()) {
        const handler = isObject(entry) ? handlerOf(entry, place) : "expected an object"
        if (typeof handler === "string") {
          problems.push(`hooks.${event}[${at}].hooks[${index}]: ${handler}`)
          continue
        }
        const seconds: Json | undefined = isObject(entry) ? entry["timeout"] : undefined
        hooks.push({
          event,
          handler,
          matcher: typeof matcher === "string" ? matcher : undefined,
          blocking: isObject(entry) && entry["blocking"] === true,
          timeout: typeof seconds === "number" && seconds > 0 ? `${Math.min(seconds, 600)} seconds` : undefined
        })
      }
    }
  }
  return { hooks, problems }
}
