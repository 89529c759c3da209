/**
 * Takes a command line apart as a POSIX shell would, as far as it is needed to say what it does: simple commands with
 * their words, what they write to, which pipe they are in, and the commands inside of substitutions.
 *
 * It is no shell: variables are not known, and what can't be told stays as it is written.
 */

/** A simple command. `pipe` numbers the pipeline that it is part of; `writes` are the files that output goes to. */
export interface Simple {
  readonly words: ReadonlyArray<string>
  readonly writes: ReadonlyArray<string>
  readonly pipe: number
}

/** A command line taken apart; `inner` are the texts of substitutions, which are commands too. */
export interface Line {
  readonly commands: ReadonlyArray<Simple>
  readonly inner: ReadonlyArray<string>
}

/** The end of a substitution that begins at `from`, behind its `(`: quotes and parentheses in it are paired. */
const endOf = (text: string, from: number): number => {
  let depth = 1
  let quote = ""
  for (let at = from; at < text.length; at++) {
    const one = text.charAt(at)
    if (one === "\\" && quote !== "'") at++
    else if (quote !== "") quote = one === quote ? "" : quote
    else if (one === "'" || one === '"') quote = one
    else if (one === "(") depth++
    else if (one === ")" && --depth === 0) return at
  }
  return text.length
}

const isSpace = (one: string): boolean => one === " " || one === "\t" || one === "\r"

export const parse = (text: string): Line => {
  const commands: Array<Simple> = []
  const inner: Array<string> = []
  let words: Array<string> = []
  let writes: Array<string> = []
  let word: string | undefined
  let pipe = 0
  let redirect: "read" | "write" | undefined
  const endWord = () => {
    if (word === undefined) return
    if (redirect === "write") writes.push(word)
    else if (redirect === undefined) words.push(word)
    redirect = undefined
    word = undefined
  }
  const endCommand = () => {
    endWord()
    redirect = undefined
    if (words.length > 0 || writes.length > 0) commands.push({ words, writes, pipe })
    words = []
    writes = []
  }
  /** Takes a substitution at `at`, and gives the place of its last character; `at` itself if there is none. */
  const substitution = (at: number): number => {
    const one = text.charAt(at)
    const opens = text.charAt(at + 1) === "(" && (one === "$" || one === "<" || one === ">")
    const end = opens ? endOf(text, at + 2) : one === "`" ? text.indexOf("`", at + 1) : -1
    if (end === -1) return at
    inner.push(text.slice(at + (opens ? 2 : 1), end))
    word = `${word ?? ""}${text.slice(at, end + 1)}`
    return end
  }
  for (let at = 0; at < text.length; at++) {
    const one = text.charAt(at)
    const next = text.charAt(at + 1)
    if (one === "\\") {
      if (next !== "\n") word = `${word ?? ""}${next}`
      at++
    } else if (one === "'") {
      const end = text.indexOf("'", at + 1)
      word = `${word ?? ""}${text.slice(at + 1, end === -1 ? undefined : end)}`
      at = end === -1 ? text.length : end
    } else if (one === '"') {
      word ??= ""
      for (at++; at < text.length && text.charAt(at) !== '"'; at++) {
        if (text.charAt(at) === "\\") {
          word += text.charAt(++at)
          continue
        }
        const end = substitution(at)
        if (end === at) word += text.charAt(at)
        at = end
      }
    } else if (one === "`" || ((one === "$" || one === "<" || one === ">") && next === "(")) {
      at = substitution(at)
    } else if (isSpace(one)) endWord()
    else if (one === "#" && word === undefined) {
      const end = text.indexOf("\n", at)
      at = end === -1 ? text.length : end - 1
    } else if (one === ">" || one === "<" || (one === "&" && next === ">")) {
      // A number before it is the channel.
      if (word !== undefined && /^\d+$/.test(word)) word = undefined
      endWord()
      redirect = one === "<" ? "read" : "write"
      if (one === "&") at++
      while (text.charAt(at + 1) === ">" || text.charAt(at + 1) === "<" || text.charAt(at + 1) === "|") at++
      // Another channel is no file.
      if (text.charAt(at + 1) === "&") {
        redirect = "read"
        at++
      }
    } else if (one === "|" && next !== "|") {
      endCommand()
      if (next === "&") at++
    } else if (one === ";" || one === "&" || one === "|" || one === "\n") {
      endCommand()
      pipe++
      if (next === one) at++
    } else if ((one === "(" || one === ")") && word === undefined) {
      endCommand()
      pipe++
    } else word = `${word ?? ""}${one}`
  }
  endCommand()
  return { commands, inner }
}
