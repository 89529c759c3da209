/** Counts the tokens of texts, JSON and media, estimated without a tokeniser. */

const isLetter = (code: number): boolean => (code | 32) >= 97 && (code | 32) <= 122
const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** Tokens of an ASCII character: words are cheap, digits and the punctuation of code are not. */
const ascii = Float64Array.from({ length: 128 }, (_, code) => (isLetter(code) ? 0.22 : isDigit(code) ? 0.42 : 0.48))

/** From here on a run of letters and digits is no word but a key, a hash or base64. */
const longestWord = 24

/** Tokens of a boundary between letters and digits in a word, where tokenisers cut. */
const seam = 0.45

/** Scripts by how finely tokenisers cut them, per UTF-16 unit; an emoji is two units. */
const other = (code: number): number => {
  if (code < 0x370) return 0.6
  if (code < 0x400) return 0.62
  if (code < 0x590) return 0.38
  if (code < 0x700) return 0.55
  if (code < 0x1100) return 0.7
  if (code >= 0xd800 && code <= 0xdfff) return 1
  return code >= 0x2000 && code < 0x2e80 ? 0.7 : 1
}

/** Estimates a text: good within about a quarter for prose in any script, for code and for JSON. */
export const textTokens = (text: string): number => {
  let sum = 0
  let word = 0
  let wasDigit = false
  let wasBlank = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === 32 || code === 10) {
      // Indentation is one token, however deep.
      sum += wasBlank ? 0.05 : code === 32 ? 0.15 : 0.6
      wasBlank = true
      word = 0
      continue
    }
    wasBlank = false
    if (code >= 128) {
      sum += other(code)
      word = 0
      continue
    }
    const digit = isDigit(code)
    if (digit || isLetter(code)) {
      sum += ++word > longestWord ? 0.55 : (ascii[code] ?? 0)
      if (word > 1 && word <= longestWord && digit !== wasDigit) sum += seam
    } else {
      sum += ascii[code] ?? 0
      word = 0
    }
    wasDigit = digit
  }
  return Math.ceil(sum)
}

const imageTokens = 1_600
const fileTokens = 3_000

/** An image or a file, as a message has it. */
interface Media {
  readonly type: "image" | "file"
  readonly source:
    | { readonly kind: "base64"; readonly data: string; readonly mimeType: string }
    | { readonly kind: "url" | "fileId" }
}

/** Estimates an image or a file. A text file counts by its length; the size of a document is unknown. */
export const mediaTokens = (block: Media): number => {
  if (block.type === "image") return imageTokens
  if (block.source.kind !== "base64") return fileTokens
  const bytes = block.source.data.length * 0.75
  return Math.ceil(block.source.mimeType.startsWith("text/") ? bytes / 3.5 : Math.max(fileTokens, bytes / 100))
}

/** The deepest nesting that is counted: JSON of a model may be built to overflow the stack. */
export const deepest = 64

/** Estimates a value as JSON; `count` estimates its texts. */
export const jsonTokens = (value: unknown, count: (text: string) => number = textTokens, depth = 0): number => {
  if (typeof value === "string") return count(value) + 1
  if (typeof value !== "object" || value === null) return 2
  if (depth >= deepest) return 4
  let sum = 1
  if (Array.isArray(value)) for (const item of value) sum += 1 + jsonTokens(item, count, depth + 1)
  else for (const [key, item] of Object.entries(value)) sum += 2 + count(key) + jsonTokens(item, count, depth + 1)
  return sum
}
