/** Finds halves of surrogate pairs in a value, in texts and keys, also inside of JSON in a text. */
export const halves = (value: unknown, path = "$"): ReadonlyArray<string> => {
  if (typeof value === "string") {
    if (!value.isWellFormed()) return [`${path}: half of a surrogate pair`]
    if (!value.startsWith("{")) return []
    try {
      return halves(JSON.parse(value), `${path}{}`)
    } catch {
      return []
    }
  }
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => [
    ...(key.isWellFormed() ? [] : [`${path}: a key with half of a surrogate pair`]),
    ...halves(item, `${path}.${key}`)
  ])
}
