/** Compares a request with the most similar recorded one. */
import { isObject, type Json } from "../../../core/Json.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import type { Fingerprint } from "./fingerprint.ts"
import type { Address, CassetteContents } from "./format.ts"

const same = (left: Json, right: Json): boolean => canonical(left) === canonical(right)

const commonMessages = (left: Address, right: Address): number => {
  let count = 0
  while (count < left.messages.length && left.messages[count] === right.messages[count]) count++
  return count
}

/** Counts the parts that two requests share. */
const countCommon = (left: Address, right: Address): number =>
  commonMessages(left, right) +
  (left.scope === right.scope ? 1 : 0) +
  (left.messages.length === right.messages.length ? 1 : 0) +
  (left.systemPrompt === right.systemPrompt ? 1 : 0) +
  (same(left.tools, right.tools) ? 1 : 0) +
  (same(left.toolChoice, right.toolChoice) ? 1 : 0) +
  (left.outputSchema === right.outputSchema ? 1 : 0) +
  (left.parameters === right.parameters ? 1 : 0)

const window = 80

/** Excerpts two values around their first difference. */
const excerptBoth = (recorded: Json | undefined, now: Json | undefined): string => {
  const showValue = (value: Json | undefined) =>
    value === undefined ? "nothing" : typeof value === "string" ? value : canonical(value)
  const [left, right] = [showValue(recorded), showValue(now)]
  let at = 0
  while (at < left.length && left[at] === right[at]) at++
  const from = Math.max(0, at - 20)
  const cutValue = (text: string) =>
    `${from > 0 ? "…" : ""}${text.slice(from, from + window)}${text.length > from + window ? "…" : ""}`
  return `recorded: ${cutValue(left)} | now: ${cutValue(right)}`
}

const roleOf = (value: Json | undefined): string =>
  isObject(value) && typeof value["role"] === "string" ? ` (${value["role"]})` : ""

const nameOf = (value: Json | undefined): string =>
  isObject(value) && typeof value["name"] === "string" ? value["name"] : "?"

const toolsDifference = (
  recorded: ReadonlyArray<Json | undefined>,
  now: ReadonlyArray<Json | undefined>
): ReadonlyArray<string> => {
  const before = new Map(recorded.map((tool) => [nameOf(tool), tool]))
  const after = new Map(now.map((tool) => [nameOf(tool), tool]))
  const added = [...after.keys()].filter((name) => !before.has(name)).map((name) => `tool ${name} is new`)
  const removed = [...before.keys()].filter((name) => !after.has(name)).map((name) => `tool ${name} is gone`)
  const changed = [...after].flatMap(([name, tool]) => {
    const old = before.get(name)
    return old === undefined || tool === undefined || same(old, tool)
      ? []
      : [`tool ${name} differs (${excerptBoth(old, tool)})`]
  })
  const all = [...added, ...removed, ...changed]
  return all.length === 0 ? ["the tools are in another order"] : all
}

/** Describes for a person the difference between a request and the most similar recorded one. */
export const describeNearest = (recorded: CassetteContents, wanted: Fingerprint): string => {
  let best = -1
  let index = -1
  for (const [at, turn] of recorded.turns.entries()) {
    const score = countCommon(turn.request, wanted.address)
    if (score > best) [best, index] = [score, at]
  }
  const turn = recorded.turns[index]
  if (turn === undefined) return "it has no turns at all"
  const before = turn.request
  const now = wanted.address
  const was = (hash: string | null | undefined) => (typeof hash !== "string" ? undefined : recorded.values.get(hash))
  const is = (hash: string | null | undefined) => (typeof hash !== "string" ? undefined : wanted.values.get(hash))
  const problems: Array<string> = []
  if (before.scope !== now.scope) {
    problems.push(`the scope differs (${excerptBoth(before.scope, now.scope)})`)
  }
  if (before.systemPrompt !== now.systemPrompt) {
    problems.push(`the system prompt differs (${excerptBoth(was(before.systemPrompt), is(now.systemPrompt))})`)
  }
  if (!same(before.tools, now.tools)) problems.push(...toolsDifference(before.tools.map(was), now.tools.map(is)))
  if (!same(before.toolChoice, now.toolChoice)) {
    problems.push(`the tool choice differs (${excerptBoth(before.toolChoice, now.toolChoice)})`)
  }
  if (before.outputSchema !== now.outputSchema) {
    problems.push(`the output schema differs (${excerptBoth(was(before.outputSchema), is(now.outputSchema))})`)
  }
  if (before.parameters !== now.parameters) {
    problems.push(`the parameters differ (${excerptBoth(was(before.parameters), is(now.parameters))})`)
  }
  if (!same(before.messages, now.messages)) {
    const at = commonMessages(before, now)
    const [old, fresh] = [was(before.messages[at]), is(now.messages[at])]
    const count = `${now.messages.length} now, ${before.messages.length} recorded`
    problems.push(`message ${at + 1}${roleOf(fresh ?? old)} differs (${count}; ${excerptBoth(old, fresh)})`)
  }
  return `the most similar one is turn ${index + 1}, but ${problems.join("; ")}`
}
