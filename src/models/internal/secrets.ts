/**
 * Keeps keys and conversations out of errors: providers like to quote both.
 */

/** Shorter texts are words that any message may use. */
const shortest = 8

/** Words of this length are hidden on their own: keys, ids, what somebody pasted. */
const longWord = 16

/** Puts `[hidden]` in the place of every secret, longest first. */
export const hide = (text: string, secrets: ReadonlyArray<string>): string =>
  secrets
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
    .filter((secret) => secret.length >= shortest && text.includes(secret))
    .sort((left, right) => right.length - left.length)
    .reduce((shown, secret) => shown.replaceAll(secret, "[hidden]"), text)

/** Everything in a JSON value that an error could quote: its texts, their lines, their long words. */
export const quotable = (value: unknown): ReadonlyArray<string> => {
  const texts = new Set<string>()
  const visit = (one: unknown): void => {
    if (typeof one === "string") {
      texts.add(one)
      for (const line of one.split("\n")) texts.add(line.trim())
      for (const word of one.split(/[^\p{L}\p{N}_-]+/u)) if (word.length >= longWord) texts.add(word)
    } else if (Array.isArray(one)) one.forEach(visit)
    else if (typeof one === "object" && one !== null) Object.values(one).forEach(visit)
  }
  visit(value)
  return [...texts]
}
