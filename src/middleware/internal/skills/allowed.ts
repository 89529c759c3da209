/** Tools that a skill in use allows, under the names that published skills have for them. */
import { normaliseName } from "../../../support/text/names.ts"
import { isPattern } from "./scan.ts"

/** Tools that a skill in use allows, by name. */
export interface Allowed {
  readonly skills: ReadonlyArray<string>
  readonly tools: ReadonlyArray<string>
  readonly turn: string
}

/** Names of the tools of this library in published skills. */
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
 * The entries of `allowed-tools` as names of tools: each as it is, and what this library calls it. What is about
 * arguments can't be kept to, and allows nothing.
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

/** Gives the tools that two skills both allow. */
export const narrower = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<string> => {
  const kept = new Set(right.map(normaliseName))
  return left.filter((name) => kept.has(normaliseName(name)))
}
