// oxlint-disable-next-line no-control-regex -- they are what is looked for
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/u

/** What is wrong with an id of so many characters at most. */
export const idProblem = (id: string, most: number): string | undefined => {
  if (typeof id !== "string" || id === "") return "it is empty"
  if (id.length > most) return `it is longer than ${most} characters`
  if (!id.isWellFormed()) return "it is no valid Unicode"
  return control.test(id) ? "it has control characters" : undefined
}

/** What is wrong with the id of a thread, or the name of a label. */
export const threadIdProblem = (id: string): string | undefined => idProblem(id, 512)

/** What is wrong with the id of an entry. */
export const entryIdProblem = (id: string): string | undefined => idProblem(id, 128)

/**
 * A text as a database can have it. One that can't has a zero character or half a pair of surrogates; no id has those,
 * so it is looked for as the empty text, which no id is either.
 */
export const key = (id: string): string => (id.includes("\u0000") || !id.isWellFormed() ? "" : id)
