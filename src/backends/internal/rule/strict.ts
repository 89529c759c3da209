/**
 * Parses the part of the shell's language on which all shells agree: simple commands with quoted words, joined by `;`,
 * `&&`, `||`, `|` and line breaks, with plain redirections. Every other text is outside of the subset: `undefined`.
 *
 * Outside are substitutions, variables, groups, braces, keywords, here-documents, the background, comments, history,
 * invisible characters and unquoted letters beyond ASCII. Rules that allow decide inside of the subset only.
 */

/** A word without its quotes. `isPlain` is false if it has wildcards; `leads` is true if its first sign is a wildcard. */
export interface Word {
  readonly text: string
  readonly isPlain: boolean
  readonly leads: boolean
}

/** The sign behind a command. */
export type Joint = ";" | "&&" | "||" | "|" | ""

/** A simple command. `reads` and `writes` are the files of its redirections; `joint` is the sign behind it. */
export interface Command {
  readonly assigns: ReadonlyArray<readonly [name: string, value: string]>
  readonly words: ReadonlyArray<Word>
  readonly reads: ReadonlyArray<Word>
  readonly writes: ReadonlyArray<Word>
  readonly joint: Joint
}

const maxLength = 4_000

const keywords = new Set(
  "if then else elif fi do done case esac for while until select function in coproc repeat foreach end".split(" ")
)

/** Characters that nobody sees, and spaces that are no space to a shell. */
const odd = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/u

type Token =
  | { readonly kind: "word"; readonly word: Word; readonly assign: readonly [string, string] | undefined }
  | { readonly kind: "joint"; readonly joint: Exclude<Joint, ""> }
  | { readonly kind: "file"; readonly to: "reads" | "writes"; readonly word: Word }

const blank = /[ \t]+/y
const joints = /(?:;|\n)(?![;&|])[ \t\n]*|(?:&&|\|\||\|)(?![;&|])[ \t\n]*/y
/** Another channel in the place of a file. */
const channel = /\d?>&[012-](?=[ \t\n;|&]|$)/y
const redirection = /(\d?)(>>|>\||>|<)(?![<>&(|])[ \t]*/y
const manyDigits = /\d{2,}[<>]/y

const plain = /[A-Za-z0-9_@%+:,./^=#-]+/y
const wild = /[*?[\]]/y
const single = /'([^']*)'/y
const double = /"((?:[^"\\$`]|\\[^\n])*)"/y
const escaped = /\\([\u0020-\u007e])/y
const tilde = /~/y

const match = (pattern: RegExp, text: string, at: number): RegExpExecArray | undefined => {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}

const unescape = (text: string): string => text.replaceAll(/\\(["\\$`])/g, "$1")

/** Tells whether a `~` at this place stands for itself, or for the home folder at the beginning of a path. */
const isKnownTilde = (text: string, at: number, start: number): boolean =>
  at === start ? /^~(?:[/ \t\n;|&]|$)/.test(text.slice(at)) : /[\w.^/-]/.test(text.charAt(at - 1))

interface TakenWord {
  readonly word: Word
  readonly assign: readonly [string, string] | undefined
  readonly end: number
}

/** Takes the word that begins at `start`. */
// oxlint-disable-next-line eslint/complexity -- one branch for each kind of character
const takeWord = (text: string, start: number): TakenWord | undefined => {
  let at = start
  let out = ""
  let isPlain = true
  while (at < text.length && !/[\s;&|<>]/.test(text.charAt(at))) {
    const literal = match(plain, text, at) ?? match(wild, text, at) ?? match(tilde, text, at)
    if (literal !== undefined) {
      const [part] = literal
      if (at === start && /^[=#]/.test(part)) return undefined
      if (part === "~" && !isKnownTilde(text, at, start)) return undefined
      if (/^[*?[\]]/.test(part)) isPlain = false
      out += part
      at += part.length
      continue
    }
    const quoted = match(single, text, at) ?? match(escaped, text, at)
    const doubled = quoted === undefined ? match(double, text, at) : undefined
    const quotation = quoted ?? doubled
    if (quotation === undefined) return undefined
    out += doubled === undefined ? (quotation[1] ?? "") : unescape(quotation[1] ?? "")
    at += quotation[0].length
  }
  if (at === start) return undefined
  const isBracket = /^[[\]]$/.test(out)
  // A name in quotes is no assignment.
  const name = /^([A-Za-z_]\w*)=/.exec(text.slice(start, at))?.[1]
  return {
    word: { text: out, isPlain: isPlain || isBracket, leads: !isBracket && /^[*?[\]]/.test(text.charAt(start)) },
    assign: name === undefined ? undefined : [name, out.slice(name.length + 1)],
    end: at
  }
}

const tokensOf = (text: string): ReadonlyArray<Token> | undefined => {
  const tokens: Array<Token> = []
  let at = 0
  while (at < text.length) {
    const skipped = match(blank, text, at) ?? match(channel, text, at)
    if (skipped !== undefined) {
      at += skipped[0].length
      continue
    }
    const joint = match(joints, text, at)
    if (joint !== undefined) {
      const sign = joint[0].trim()
      tokens.push({ kind: "joint", joint: sign === "&&" || sign === "||" || sign === "|" ? sign : ";" })
      at += joint[0].length
      continue
    }
    if (match(manyDigits, text, at) !== undefined) return undefined
    const redirect = match(redirection, text, at)
    const token = takeWord(text, redirect === undefined ? at : at + redirect[0].length)
    if (token === undefined) return undefined
    const { assign, end, word } = token
    tokens.push(
      redirect === undefined
        ? { kind: "word", word, assign }
        : { kind: "file", to: redirect[2] === "<" ? "reads" : "writes", word }
    )
    at = end
  }
  return tokens
}

interface OpenCommand {
  readonly assigns: Array<readonly [string, string]>
  readonly words: Array<Word>
  readonly reads: Array<Word>
  readonly writes: Array<Word>
}

const open = (): OpenCommand => ({ assigns: [], words: [], reads: [], writes: [] })

/** Tells whether a command begins with the plain name of a program. */
const isWhole = ({ words: [first] }: OpenCommand): boolean =>
  first !== undefined && first.isPlain && first.text !== "" && !keywords.has(first.text) && !/^\w+\+?=/.test(first.text)

/** Removes the blanks of a shell at both ends. A regular expression that ends with `$` would be quadratic. */
const trimBlanks = (text: string): string => {
  let [from, to] = [0, text.length]
  while (from < to && blanks.has(text.charAt(from))) from++
  while (to > from && blanks.has(text.charAt(to - 1))) to--
  return text.slice(from, to)
}

const blanks: ReadonlySet<string> = new Set([" ", "\t", "\n"])

/** The commands of a line; `undefined` outside of the subset. */
export const parse = (line: string): ReadonlyArray<Command> | undefined => {
  const text = trimBlanks(line)
  if (text === "" || text.length > maxLength || odd.test(text.replaceAll(/[\n\t]/g, " "))) return undefined
  const tokens = tokensOf(text)
  if (tokens === undefined) return undefined
  const commands: Array<Command> = []
  let now = open()
  for (const token of tokens) {
    if (token.kind === "file") {
      if (!token.word.isPlain) return undefined
      now[token.to].push(token.word)
    } else if (token.kind === "word") {
      // Bash takes an assignment behind its keyword `time`, other shells take a word.
      if (now.words[0]?.text === "time" && /^\w+\+?=/.test(token.word.text)) return undefined
      if (token.assign === undefined || now.words.length > 0) now.words.push(token.word)
      else if (token.word.isPlain) now.assigns.push(token.assign)
      else return undefined
    } else {
      if (!isWhole(now)) return undefined
      commands.push({ ...now, joint: token.joint })
      now = open()
    }
  }
  if (isWhole(now)) return [...commands, { ...now, joint: "" }]
  // A line may end with `;`.
  const isEnded = commands.at(-1)?.joint === ";"
  return isEnded && Object.values(now).every((part) => part.length === 0) ? commands : undefined
}
