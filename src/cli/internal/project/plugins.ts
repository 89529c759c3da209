/** Plugin folders of Claude Code, as far as they are data: commands, agents, skills and hooks. */
import { homedir } from "node:os"
import { isAbsolute, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import { textOf } from "../config/places.ts"
import { realOf } from "./folders.ts"

export interface Plugin {
  readonly name: string
  readonly folder: string
}

type Fields = { readonly [name: string]: unknown }

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Reads an object from a JSON file. `undefined` if there is no such file, or no such object in it. */
const fieldsOf = (file: string) =>
  textOf(file).pipe(
    Effect.flatMap((text) => Effect.try((): unknown => JSON.parse(text ?? ""))),
    Effect.match({ onFailure: () => undefined, onSuccess: (value) => (isFields(value) ? value : undefined) })
  )

const isName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name)

/** Finds a path in a record of an installed plugin: newer files have a list of records. */
const pathIn = (record: unknown): string | undefined => {
  const one: unknown = Array.isArray(record) ? record.at(-1) : record
  const path = isFields(one) ? one["installPath"] : undefined
  return typeof path === "string" && isAbsolute(path) ? path : undefined
}

/** Lists the plugins that the user installed and enabled in Claude Code. */
const installed = Effect.gen(function* () {
  const home = join(homedir(), ".claude")
  const enabled = (yield* fieldsOf(join(home, "settings.json")))?.["enabledPlugins"]
  if (!isFields(enabled)) return []
  const plugins = (yield* fieldsOf(join(home, "plugins", "installed_plugins.json")))?.["plugins"]
  if (!isFields(plugins)) return []
  return Object.entries(plugins).flatMap(([id, record]) => {
    const path = pathIn(record)
    return enabled[id] === true && path !== undefined ? [path] : []
  })
})

/** Reads the plugins of these folders, and the ones enabled in Claude Code. A wrong one is a problem. */
export const findPlugins = Effect.fnUntraced(function* (folders: ReadonlyArray<string>, project: string) {
  const problems: Array<string> = []
  const plugins = new Map<string, Plugin>()
  const all = [
    ...(yield* installed),
    ...folders.map((folder) => resolve(project, folder.replace(/^~(?=\/)/, homedir())))
  ]
  for (const path of all) {
    const folder = yield* realOf(path)
    if (folder === undefined) {
      problems.push(`plugins: ${path} is not there`)
      continue
    }
    const name = (yield* fieldsOf(join(folder, ".claude-plugin", "plugin.json")))?.["name"]
    if (typeof name === "string" && isName(name)) plugins.set(name, { name, folder })
    else problems.push(`plugins: ${folder} has no .claude-plugin/plugin.json with a name of letters, digits, - and _`)
  }
  return { plugins: [...plugins.values()], problems }
})
