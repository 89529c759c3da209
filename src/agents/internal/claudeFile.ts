/** Translates the front matter of agents of Claude Code. */
import { defined } from "../../support/json/defined.ts"
import { valueAt } from "../../support/json/valueAt.ts"

/** Tools of Claude Code that a file need not choose here: every deep agent has their like, or none has. */
const unchosen = new Set(["BashOutput", "KillShell", "TodoWrite", "Task", "Agent", "Skill", "AskUserQuestion"])

const claudeModels: { readonly [alias: string]: string | undefined } = {
  inherit: undefined,
  sonnet: "anthropic:claude-sonnet-5-5",
  opus: "anthropic:claude-opus-5-5",
  haiku: "anthropic:claude-haiku-5-5"
}

/** The front matter of a file, before it is decoded. */
export type Raw = { readonly [field: string]: unknown }

export const isRecord = (value: unknown): value is Raw =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Removes parentheses and their contents, to any depth. An unclosed one hides the rest. */
const removeParentheses = (text: string): string => {
  let depth = 0
  return text
    .split(/([()])/)
    .map((piece) => {
      if (piece === "(") depth += 1
      else if (piece === ")") depth = Math.max(0, depth - 1)
      else if (depth === 0) return piece
      return " "
    })
    .join("")
}

/** Splits `Read, Bash(git add:*)` into names. Rules about arguments are another program's. */
export const splitNames = (value: unknown): unknown =>
  typeof value === "string" ? (removeParentheses(value).match(/[^\s,]+/g) ?? []) : value

const chosenOf = (value: unknown): unknown => {
  const names: unknown = splitNames(value)
  return Array.isArray(names) ? names.filter((name: unknown) => typeof name !== "string" || !unchosen.has(name)) : names
}

/** Translates the known fields of a file of Claude Code. */
export const fromClaude = (raw: Raw, fields: ReadonlyArray<string>): Raw => {
  const knownFields = Object.fromEntries(Object.entries(raw).filter(([field]) => fields.includes(field)))
  const { disallowedTools, model, tools, ...rest } = knownFields
  const spec = typeof model === "string" ? (valueAt(claudeModels, model) ?? model) : model
  return defined({
    ...rest,
    model: spec,
    tools: tools === undefined ? undefined : chosenOf(tools),
    disallowedTools: disallowedTools === undefined ? undefined : chosenOf(disallowedTools)
  })
}
