/** Reads the rules of `robots.txt` by RFC 9309. */
import { encodePart } from "../../../support/text/percent.ts"

interface Rule {
  readonly allows: boolean
  readonly pattern: string
}

/** Normalises the escapes of a path or a pattern (RFC 9309, 2.2.2). */
const normalise = (text: string): string =>
  text.replaceAll(/[^\x21-\x7e]+/g, encodePart).replaceAll(/%[\da-f]{2}/gi, (code) => {
    const one = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return /[\w.~-]/.test(one) ? one : code.toUpperCase()
  })

/** Returns true if a pattern (`*` for anything, `$` for the end) matches the start of a path. */
const isMatch = (pattern: string, path: string): boolean => {
  const isWhole = pattern.endsWith("$")
  const parts = (isWhole ? pattern.slice(0, -1) : pattern).split("*")
  const [head = "", ...rest] = parts
  if (!path.startsWith(head)) return false
  let at = head.length
  for (const [index, part] of rest.entries()) {
    if (isWhole && index === rest.length - 1) return path.length - part.length >= at && path.endsWith(part)
    const position = path.indexOf(part, at)
    if (position === -1) return false
    at = position + part.length
  }
  return !isWhole || at === path.length
}

/** Returns true if a program may read a path. */
export const isAllowed = (robots: string, agent: string, path: string): boolean => {
  const name = agent.toLowerCase()
  const own: Array<Rule> = []
  const common: Array<Rule> = []
  let groups = new Set<Array<Rule>>()
  let isOwnGroup = false
  let inRules = true
  for (const line of robots.slice(0, 500_000).split(/\r?\n|\r/)) {
    const [key = "", ...more] = (line.split("#")[0] ?? "").split(":")
    const value = more.join(":").trim()
    const field = key.trim().toLowerCase()
    if (field === "user-agent") {
      if (inRules) groups = new Set()
      inRules = false
      if (value === "*") groups.add(common)
      else if (name.includes(value.toLowerCase()) && value !== "") {
        isOwnGroup = true
        groups.add(own)
      }
    } else if (field === "allow" || field === "disallow") {
      inRules = true
      const pattern = normalise(value)
      if (value !== "") for (const group of groups) group.push({ allows: field === "allow", pattern })
    }
  }
  const target = normalise(path)
  const fitting = (isOwnGroup ? own : common).filter(({ pattern }) => isMatch(pattern, target))
  // The longest rule wins. Between equal lengths, `allow` wins.
  const longest = fitting.reduce((most, { pattern }) => Math.max(most, pattern.length), -1)
  const strongest = fitting.filter(({ pattern }) => pattern.length === longest)
  return strongest.length === 0 || strongest.some((rule) => rule.allows)
}
