/** Rules for calls in the settings of Claude Code: of the user, and of a trusted project. */
import { homedir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { isObject, type Json } from "../../../core/Json.ts"
import { itemsOf, type Project } from "../config/items.ts"
import { smallFile } from "../project/folders.ts"
import type { Origin } from "./permission.ts"

const names = ["allow", "ask", "deny"] as const

/** The rules of a file by list. */
type Lists = { readonly [name in (typeof names)[number]]?: ReadonlyArray<string> }

/** Rules of a file. It is written for another program too, so rules that mean nothing here are left out. */
interface Source extends Origin {
  readonly lists: Lists
  readonly isForeign: true
}

interface Reading {
  readonly sources: ReadonlyArray<Source>
  readonly problems: ReadonlyArray<string>
}

/** The most bytes of a file of settings. */
const mostBytes = 1_000_000

/** Reads a file. A wrong list or entry is a problem, and costs no other rule. */
const sourceOf = (from: Origin["from"], where: string, text: string): Reading => {
  const json = Result.try((): unknown => JSON.parse(text))
  if (Result.isFailure(json) || !isObject(json.success)) {
    return { sources: [], problems: [`${where}: it is no object of JSON, so none of its rules counts`] }
  }
  const { permissions = {} } = json.success
  if (!isObject(permissions)) return { sources: [], problems: [`${where}: permissions is no object; it is left out`] }
  const problems: Array<string> = []
  const listOf = (name: string): ReadonlyArray<string> => {
    const list: Json = permissions[name] ?? []
    const entries = Array.isArray(list) ? list : [list]
    const rules = entries.filter(Predicate.isString)
    if (!Array.isArray(list) || rules.length < entries.length) {
      problems.push(`${where}: permissions.${name} is no list of texts; what is no text is left out`)
    }
    return rules
  }
  const lists: Lists = Object.fromEntries(names.map((name) => [name, listOf(name)]))
  return { sources: [{ from, where, lists, isForeign: true }], problems }
}

/** Reads the rules of both. */
export const claudeRules = Effect.fnUntraced(function* (project: Project) {
  const file = join(homedir(), ".claude", "settings.json")
  const text = yield* smallFile(file, mostBytes)
  const readings = [
    ...(text === undefined ? [] : [sourceOf("user", file, text)]),
    ...itemsOf(project, "permissions").map((item) => sourceOf("project", item.file, item.text))
  ]
  return {
    sources: readings.flatMap(({ sources }) => sources),
    problems: readings.flatMap(({ problems }) => problems)
  } satisfies Reading
})
