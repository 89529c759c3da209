/**
 * Names of tools that every model takes, made of the names of servers and their tools.
 */
import { normaliseName } from "../../support/names.ts"
import { sha256Sync } from "../../support/sha256.ts"

/** A tool of a server, by the names that it has there. */
export interface Origin {
  readonly server: string
  readonly tool: string
}

const longest = 64
const mark = 7

const legal = (text: string): string => text.replaceAll(/[^A-Za-z0-9_-]/gu, "_")

const plain = ({ server, tool }: Origin): string => `${legal(server)}__${legal(tool)}`

const marked = (origin: Origin): string => {
  const hash = sha256Sync(JSON.stringify([origin.server, origin.tool])).slice(0, mark - 1)
  return `${plain(origin).slice(0, longest - mark)}_${hash}`
}

/**
 * Names each tool `server__tool`. What is too long, or would be the name of another one, ends with a mark of its own: so
 * a name means one tool, in whatever order they come.
 */
export const nameAll = (origins: ReadonlyArray<Origin>): ReadonlyArray<string> => {
  const count = new Map<string, number>()
  for (const origin of origins) {
    const key = normaliseName(plain(origin))
    count.set(key, (count.get(key) ?? 0) + 1)
  }
  return origins.map((origin) => {
    const name = plain(origin)
    return name.length <= longest && count.get(normaliseName(name)) === 1 ? name : marked(origin)
  })
}
