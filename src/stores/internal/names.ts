// oxlint-disable-next-line no-control-regex -- they are what is looked for
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/u

/** What is wrong with a name. Two names that differ are two, wherever they are kept. */
export const problem = (name: string, most = 256): string | undefined => {
  if (typeof name !== "string" || name === "") return "it is empty"
  if (name.length > most) return `it is longer than ${most} characters`
  if (!name.isWellFormed()) return "it is no valid Unicode"
  return control.test(name) ? "it has control characters" : undefined
}
