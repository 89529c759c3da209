import { sha256Sync } from "../../../support/store/sha256.ts"
/** Names of tools that every model takes, made of the names of servers and their tools. */
import { normaliseName } from "../../../support/text/names.ts"

/** A tool of a server, by the names that it has there. */
export interface Origin {
  readonly server: string
  readonly tool: string
}

const longest = 64
const mark = 7

const legal = (text: string): string => text.replaceAll(/[^A-Za-z0-9_-]/gu, "_")

const plain = ({ server, tool }: Origin): string => `${legal(server)}__${legal(tool)}`

const markName = (origin: Origin): string => {
  const hash = sha256Sync(JSON.stringify([origin.server, origin.tool])).slice(0, mark - 1)
  return `${plain(origin).slice(0, longest - mark)}_${hash}`
}

/**
 * Names each tool `server__tool`. A name that is too long, or equals another one, ends with a mark. So a name means a
 * single tool, in any order of the tools.
 */
export const nameAll = (origins: ReadonlyArray<Origin>): ReadonlyArray<string> => {
  const names = origins.map(plain)
  const holders = new Map<string, Array<number>>()
  for (const [index, name] of names.entries()) {
    const key = normaliseName(name)
    const others = holders.get(key)
    if (others === undefined) holders.set(key, [index])
    else others.push(index)
  }
  const isShared = (name: string): boolean => (holders.get(normaliseName(name))?.length ?? 0) > 1
  const all = [...names.entries()]
  // It grows as it is gone through, by those whose name is the mark of another.
  const marking = new Set(all.flatMap(([index, name]) => (name.length > longest || isShared(name) ? [index] : [])))
  for (const index of marking) {
    const origin = origins[index]
    if (origin === undefined) continue
    const name = markName(origin)
    names[index] = name
    for (const other of holders.get(normaliseName(name)) ?? []) marking.add(other)
  }
  return names
}
