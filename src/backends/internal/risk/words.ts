/**
 * Parses a command line like a POSIX shell, as far as its risks need: simple commands with their words, output files
 * and pipes, and the commands in substitutions. Variables are not expanded.
 */

/**
 * A simple command. `pipe` numbers the pipeline that it is part of; `writes` are the files that output goes to, `inputs` the
 * texts that it reads: here-documents and here-strings.
 */
export interface Simple {
  readonly words: ReadonlyArray<string>
  readonly writes: ReadonlyArray<string>
  readonly inputs: ReadonlyArray<string>
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
  let inputs: Array<string> = []
  /** Here-documents whose texts begin on the next line. */
  let documents: Array<{ readonly end: string; readonly isPlain: boolean; readonly inputs: Array<string> }> = []
  let word: string | undefined
  let isQuoted = false
  let open = 0
  let pipe = 0
  let redirect: "read" | "write" | "text" | "document" | undefined
  const endWord = () => {
    if (word !== undefined) {
      if (redirect === "write") writes.push(word)
      else if (redirect === "text") inputs.push(word)
      else if (redirect === "document") documents.push({ end: word, isPlain: isQuoted, inputs })
      else if (redirect === undefined) words.push(word)
      redirect = undefined
    }
    word = undefined
    isQuoted = false
    open = 0
  }
  const endCommand = () => {
    endWord()
    redirect = undefined
    if (words.length > 0 || writes.length > 0) commands.push({ words, writes, inputs, pipe })
    words = []
    writes = []
    inputs = []
  }
  /** Takes a substitution at `at`, and gives the index of its last character; `at` itself without one. */
  const substitution = (at: number): number => {
    const one = text.charAt(at)
    const opens = text.charAt(at + 1) === "(" && (one === "$" || one === "<" || one === ">")
    const end = opens ? endOf(text, at + 2) : one === "`" ? text.indexOf("`", at + 1) : -1
    if (end === -1) return at
    inner.push(text.slice(at + (opens ? 2 : 1), end))
    word = `${word ?? ""}${text.slice(at, end + 1)}`
    return end
  }
  /** Takes the here-documents that begin at `from`, and gives the place behind them. */
  const takeDocuments = (from: number): number => {
    let at = from
    for (const document of documents) {
      const start = at
      let stop = text.length
      while (at < text.length) {
        const end = text.indexOf("\n", at)
        const line = text.slice(at, end === -1 ? undefined : end)
        if (line.replace(/^\t+/, "") === document.end) stop = at
        at = end === -1 ? text.length : end + 1
        if (stop < text.length) break
      }
      document.inputs.push(text.slice(start, stop))
      // Between quotes, a text is as it is written; else the commands in it run.
      for (let index = start; !document.isPlain && index < stop; index++) {
        if (text.charAt(index) === "\\") index++
        else if (/[$`]/.test(text.charAt(index))) index = substitution(index)
      }
      word = undefined
    }
    documents = []
    return at
  }
  /** Takes an escape or a quoted text, and gives the index of its last character. */
  const takeQuoted = (at: number, one: string): number => {
    isQuoted = true
    if (one === "\\") {
      const escaped = text.charAt(at + 1)
      if (escaped !== "\n") word = `${word ?? ""}${escaped}`
      return at + 1
    }
    if (one === "'") {
      const end = text.indexOf("'", at + 1)
      word = `${word ?? ""}${text.slice(at + 1, end === -1 ? undefined : end)}`
      return end === -1 ? text.length : end
    }
    word ??= ""
    let index = at + 1
    for (; index < text.length && text.charAt(index) !== '"'; index++) {
      if (text.charAt(index) === "\\") {
        word += text.charAt(++index)
        continue
      }
      const end = substitution(index)
      if (end === index) word += text.charAt(index)
      index = end
    }
    return index
  }
  const takeRedirection = (start: number, one: string): number => {
    // A number before it is the channel.
    if (word !== undefined && /^\d+$/.test(word)) word = undefined
    endWord()
    const isDocument = text.startsWith("<<", start)
    redirect = text.startsWith("<<<", start) ? "text" : isDocument ? "document" : one === "<" ? "read" : "write"
    let at = one === "&" ? start + 1 : start
    while (/[<>|]/.test(text.charAt(at + 1))) at++
    if (redirect === "document" && text.charAt(at + 1) === "-") at++
    if (text.charAt(at + 1) !== "&") return at
    // Another channel is not a file.
    redirect = "read"
    return at + 1
  }
  const takeSeparator = (at: number, one: string): number => {
    const next = text.charAt(at + 1)
    endCommand()
    if (one === "|" && next !== "|") return next === "&" ? at + 1 : at
    pipe++
    if (one === "\n") return takeDocuments(at + 1) - 1
    return next === one ? at + 1 : at
  }
  const takeParenthesis = (one: string): void => {
    if (one === "(" && word !== undefined) {
      word += one
      open++
    } else if (one === ")" && open > 0) {
      word = `${word ?? ""})`
      open--
    } else {
      endCommand()
      pipe++
    }
  }
  for (let at = 0; at < text.length; at++) {
    const one = text.charAt(at)
    const next = text.charAt(at + 1)
    if (one === "\\" || one === "'" || one === '"') at = takeQuoted(at, one)
    else if (one === "`" || (/[$<>]/.test(one) && next === "(")) at = substitution(at)
    else if (isSpace(one)) endWord()
    else if (one === "#" && word === undefined) {
      const end = text.indexOf("\n", at)
      at = end === -1 ? text.length : end - 1
    } else if (one === ">" || one === "<" || (one === "&" && next === ">")) at = takeRedirection(at, one)
    else if (/[;&|\n]/.test(one)) at = takeSeparator(at, one)
    else if (one === "(" || one === ")") takeParenthesis(one)
    else word = `${word ?? ""}${one}`
  }
  endCommand()
  return { commands, inner }
}
