/** Keeps keys and conversations out of errors: providers like to quote both. */

/**
 * Texts that must not be in an error: keys and secret headers, and the texts of the request, which are read only on
 * demand.
 */
export interface Confidential {
  readonly secrets: ReadonlyArray<string>
  readonly said?: (() => Iterable<string>) | undefined
}

/** Characters of a server's answer that are looked at. A server may say as much as it likes. */
export const longestSaid = 8_192

/** Shorter texts are words that any message may use. */
const shortest = 8

/** Words of this length are hidden on their own: keys, ids, what somebody pasted. */
const longWords = /[\p{L}\p{N}_-]{16,}/gu

/** Characters that are compared before everything is hidden: no conversation has that much in common with an error. */
const patience = 5_000_000

const hidden = "[hidden]"

/**
 * Measures how much of a secret a text ends with, and finds the whole secret in the text. Linear in both (Knuth, Morris
 * and Pratt).
 */
const overlap = (text: string, secret: string): { readonly isInside: boolean; readonly atEnd: number } => {
  const length = Math.min(secret.length, text.length + 1)
  const borders = new Uint16Array(length + 1)
  for (let at = 1, border = 0; at < length; at++) {
    while (border > 0 && secret[at] !== secret[border]) border = borders[border] ?? 0
    if (secret[at] === secret[border]) border++
    borders[at + 1] = border
  }
  let matched = 0
  let isInside = false
  for (let at = 0; at < text.length; at++) {
    while (matched > 0 && (matched === length || text[at] !== secret[matched])) matched = borders[matched] ?? 0
    if (text[at] === secret[matched]) matched++
    isInside ||= matched === secret.length
  }
  return { isInside, atEnd: matched === secret.length ? 0 : matched }
}

/** Gives the parts of a text that an error may quote: all of it, its lines, its long words. */
function* quotes(text: string): Iterable<string> {
  yield text
  if (text.includes("\n")) for (const line of text.split("\n")) yield line.trim()
  for (const [word] of text.matchAll(longWords)) yield word
}

function* listSecrets({ said, secrets }: Confidential): Iterable<string> {
  for (const secret of secrets) yield secret
  for (const text of said?.() ?? []) yield* quotes(text)
}

/**
 * Returns the start of a server's message, with `[hidden]` for everything confidential, longest first. It drops a
 * secret that the cut splits. The work is linear in the conversation, and bounded.
 */
export const hide = (text: string, confidential: Confidential): string => {
  const isCut = text.length > longestSaid
  let visibleText = isCut ? text.slice(0, longestSaid) : text
  if (visibleText.length < shortest) return visibleText
  const beginnings = new Set<string>()
  for (let at = 0; at + shortest <= visibleText.length; at++) beginnings.add(visibleText.slice(at, at + shortest))
  const matches = new Set<string>()
  const seen = new Set<string>()
  let end = visibleText.length
  let work = 0
  const look = (secret: string): void => {
    const beginning = secret.slice(0, shortest)
    if (secret.length < shortest || !beginnings.has(beginning) || seen.has(secret)) return
    seen.add(secret)
    work += visibleText.length + Math.min(secret.length, visibleText.length)
    const { atEnd, isInside } = overlap(visibleText, secret)
    if (isInside) matches.add(secret)
    // A secret that the cut went through.
    if (isCut && atEnd >= shortest) end = Math.min(end, visibleText.length - atEnd)
  }
  for (const secret of listSecrets(confidential)) {
    look(secret)
    const escaped = JSON.stringify(secret).slice(1, -1)
    if (escaped.length !== secret.length) look(escaped)
    if (work > patience) return hidden
  }
  visibleText = visibleText.slice(0, end)
  return [...matches]
    .sort((left, right) => right.length - left.length)
    .reduce((rest, secret) => rest.replaceAll(secret, hidden), visibleText)
}

/** Words of a protocol, and names that a developer chose. They stay visible, or errors would be useless. */
const protocol = new Set([
  "type",
  "role",
  "model",
  "name",
  "id",
  "call_id",
  "tool_call_id",
  "tool_use_id",
  "status",
  "object",
  "required"
])

/** The texts in a JSON value. Those under the keys of a protocol are left out of a request, and not of arguments. */
export function* textsOf(value: unknown, of: "request" | "arguments"): Iterable<string> {
  const stack = [value]
  while (stack.length > 0) {
    const one = stack.pop()
    if (typeof one === "string") yield one
    if (typeof one !== "object" || one === null) continue
    for (const [key, inner] of Object.entries(one)) {
      const isWord = protocol.has(key) && (typeof inner !== "object" || key === "required")
      if (of === "arguments" || !isWord) stack.push(inner)
    }
  }
}
