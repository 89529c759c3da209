// oxlint-disable-next-line no-control-regex -- they are what is looked for
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/u

const problem = (id: string, most: number): string | undefined => {
  if (typeof id !== "string" || id === "") return "it is empty"
  if (id.length > most) return `it is longer than ${most} characters`
  if (!id.isWellFormed()) return "it is no valid Unicode"
  return control.test(id) ? "it has control characters" : undefined
}

/** What is wrong with the id of a thread, or the name of a label. */
export const threadIdProblem = (id: string): string | undefined => problem(id, 512)

/** What is wrong with the id of an entry. */
export const entryIdProblem = (id: string): string | undefined => problem(id, 128)
