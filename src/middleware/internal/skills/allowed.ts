/** The tools that an active skill allows, with the names in published skills. */
import { normaliseName } from "../../../support/text/names.ts"
import { isPattern } from "./scan.ts"

/** The tools that an active skill allows, by name. */
export interface Allowed {
  readonly skills: ReadonlyArray<string>
  readonly tools: ReadonlyArray<string>
  readonly turn: string
}

/** Names of this library's tools in published skills. */
const synonyms: ReadonlyMap<string, string> = new Map([
  ["read", "read_file"],
  ["write", "write_file"],
  ["edit", "edit_file"],
  ["multiedit", "edit_file"],
  ["bash", "execute"],
  ["agent", "task"],
  ["todowrite", "write_todos"],
  ["askuserquestion", "ask_user"],
  ["skill", "use_skill"]
])

/**
 * Translates `allowed-tools` to tool names: each entry itself, and this library's name for it. Entries about arguments
 * can't be enforced, and allow nothing.
 */
export const toolNames = (entries: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(
    entries
      .filter((entry) => !isPattern(entry))
      .flatMap((entry) => [entry, synonyms.get(normaliseName(entry)) ?? entry])
  )
]

/** Reports whether a tool may be used. */
export const allows = ({ tools }: Pick<Allowed, "tools">, name: string): boolean => {
  const folded = normaliseName(name)
  return tools.some((one) => normaliseName(one) === folded)
}

/** The tools that two skills both allow. */
export const narrower = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<string> => {
  const kept = new Set(right.map(normaliseName))
  return left.filter((name) => kept.has(normaliseName(name)))
}
