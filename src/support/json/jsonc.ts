/** JSON as people write it: with comments, and commas behind the last item. In time that grows with its length only. */

const isSpace = (character: string | undefined): boolean =>
  character === " " || character === "\n" || character === "\r" || character === "\t"

/** The end of a string that begins at `from`. */
const endOfString = (text: string, from: number): number => {
  let at = from + 1
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1
  return at + 1
}

const endOfComment = (text: string, from: number): number => {
  const isLine = text[from + 1] === "/"
  const end = text.indexOf(isLine ? "\n" : "*/", from + 2)
  return end === -1 ? text.length : isLine ? end : end + 2
}

/** Takes comments and last commas out. What is no JSON then is for the parser to say. */
export const toJson = (text: string): string => {
  const out: Array<string> = []
  let comma: number | undefined
  for (let at = text.startsWith("\uFEFF") ? 1 : 0; at < text.length;) {
    const character = text[at]
    if (character === '"') {
      const end = endOfString(text, at)
      out.push(text.slice(at, end))
      comma = undefined
      at = end
    } else if (character === "/" && (text[at + 1] === "/" || text[at + 1] === "*")) {
      at = endOfComment(text, at)
    } else {
      if ((character === "}" || character === "]") && comma !== undefined) out[comma] = ""
      if (character === ",") comma = out.length
      else if (!isSpace(character)) comma = undefined
      out.push(character ?? "")
      at++
    }
  }
  return out.join("")
}

/** The names that stand twice in one object of JSON: of these, a parser takes the last one in silence. */
export const repeated = (json: string): ReadonlyArray<string> => {
  const duplicates = new Set<string>()
  const open: Array<Set<string>> = []
  for (let at = 0; at < json.length;) {
    const character = json[at]
    if (character !== '"') {
      if (character === "{" || character === "[") open.push(new Set())
      else if (character === "}" || character === "]") open.pop()
      at++
      continue
    }
    const end = endOfString(json, at)
    let next = end
    while (isSpace(json[next])) next++
    if (json[next] === ":") {
      const name = String(JSON.parse(json.slice(at, end)))
      const names = open.at(-1)
      if (names?.has(name) === true) duplicates.add(name)
      names?.add(name)
    }
    at = end
  }
  return [...duplicates]
}
