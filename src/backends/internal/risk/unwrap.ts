/** Finds the commands behind the words of a command: programs that run other programs, scripts in arguments. */
import { valueAt } from "../../../support/json/valueAt.ts"
import { parse } from "./words.ts"

/** Programs that run the command in their arguments, and their options that take a value. */
const wrappers: { readonly [name: string]: RegExp } = {
  sudo: /^-[ugphCrtT]$/,
  doas: /^-[uC]$/,
  env: /^-[uS]$/,
  nohup: /^$/,
  time: /^-[fo]$/,
  exec: /^-a$/,
  command: /^$/,
  nice: /^-n$/,
  ionice: /^-[cn]$/,
  timeout: /^-[ks]$/,
  stdbuf: /^-[ioe]$/,
  setsid: /^$/,
  xargs: /^-[IndPLs]$/,
  busybox: /^$/,
  builtin: /^$/,
  flock: /^-[wE]$/,
  chroot: /^$/
}

/** The number of operands of such a program before the command. */
const operands: { readonly [name: string]: number } = { timeout: 1, flock: 1, chroot: 1 }

/** Keywords of the shell that precede a command. */
const keywords = new Set(["then", "do", "else", "elif", "if", "while", "until", "coproc", "!", "{"])

/** Programs that pass all words after their options (and the host of ssh) to a shell. */
const passing: { readonly [name: string]: RegExp } = {
  watch: /^-[nq]$/,
  parallel: /^-[jNnPI]$/,
  ssh: /^-[bcDEeFIiJLlmOopQRSWw]$/
}

export const shells = new Set(["sh", "bash", "dash", "zsh", "ksh", "fish"])

export const isOption = (word: string): boolean => word.startsWith("-") && word !== "-"

/** Drops leading options and their values. */
const behindOptions = (words: ReadonlyArray<string>, valued: RegExp): ReadonlyArray<string> => {
  let at = 0
  while (at < words.length && isOption(words[at] ?? "")) at += valued.test(words[at] ?? "") ? 2 : 1
  return words.slice(at)
}

export const nameOf = (word: string): string => word.slice(word.lastIndexOf("/") + 1)

const assignment = /^[A-Za-z_]\w*\+?=/

/** Variables that name programs, or files of code that programs load. */
const naming =
  /^(?:PATH|IFS|ENV|BASH_ENV|SHELL|EDITOR|VISUAL|PAGER|BROWSER|PROMPT_COMMAND|LD_\w+|DYLD_\w+|GIT_\w+|NODE_OPTIONS|NODE_PATH|PYTHON(?:PATH|HOME|STARTUP)|PERL5(?:OPT|LIB)|RUBY(?:OPT|LIB)|JAVA_TOOL_OPTIONS|MAKEFLAGS|RUSTC\w*|npm_config_\w+)\+?=/

/** A command without the programs that run it. `stages` are its words before each of them, the outermost first. */
export interface InnerCommand {
  readonly words: ReadonlyArray<string>
  readonly stages: ReadonlyArray<ReadonlyArray<string>>
  /** The program that changes the user. */
  readonly as?: string
  /** The variables in front of it that decide which code runs. */
  readonly variables: ReadonlyArray<string>
}

/** Removes the programs that only run the command in their arguments. */
export const unwrap = (commandWords: ReadonlyArray<string>): InnerCommand => {
  let words = commandWords
  let as: string | undefined
  const stages: Array<ReadonlyArray<string>> = []
  const variables: Array<string> = []
  for (let step = 0; step < 20; step++) {
    const first = words[0]
    if (first === undefined) break
    if (assignment.test(first) || keywords.has(first) || /^[\w-]+\(\)\{?$/.test(first)) {
      if (naming.test(first)) variables.push(first.slice(0, first.indexOf("=")))
      words = words.slice(1)
      continue
    }
    if (first === "function") {
      words = words.slice(2)
      continue
    }
    stages.push(words)
    const name = nameOf(first)
    const valued = valueAt(wrappers, name)
    if (valued === undefined) break
    if (name === "sudo" || name === "doas") as = name
    const behind = behindOptions(words.slice(1), valued).slice(valueAt(operands, name) ?? 0)
    words = behind[0] === "-c" ? ["sh", ...behind] : behind
  }
  return { words, stages, variables, ...(as === undefined ? {} : { as }) }
}

/** The action of git and its arguments. */
export const gitWords = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  behindOptions(words.slice(1), /^(?:-[Cc]|--git-dir|--work-tree|--namespace)$/)

/** The script in the arguments of a shell, after `-c` and the like. */
export const scriptOf = (words: ReadonlyArray<string>): string | undefined => {
  const [first = "", ...rest] = words
  const name = nameOf(first)
  if (name === "eval") return rest[0]?.startsWith("$") === true ? undefined : rest.join(" ")
  if (name === "trap") return behindOptions(rest, /^$/)[0]
  if (name === "alias") return rest.map((one) => one.slice(one.indexOf("=") + 1)).join("\n")
  const valued = valueAt(passing, name)
  if (valued !== undefined)
    return behindOptions(rest, valued)
      .slice(name === "ssh" ? 1 : 0)
      .join(" ")
  if (!shells.has(name) && name !== "su" && name !== "script") return undefined
  const at = rest.findIndex((word) => /^-[a-z]*c$/.test(word))
  return at === -1 ? undefined : behindOptions(rest.slice(at + 1), /^$/)[0]
}

/** The commands that a program runs for each file. */
const eachOf = (words: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const name = nameOf(words[0] ?? "")
  const opens =
    name === "find" ? /^-(?:exec|execdir|ok|okdir)$/ : name === "fd" ? /^(?:-[xX]|--exec(?:-batch)?)$/ : undefined
  return opens === undefined ? [] : words.flatMap((word, at) => (opens.test(word) ? [words.slice(at + 1)] : []))
}

/**
 * All commands of a line that its text shows, each with the programs that run it: in substitutions, in the scripts of
 * shells, behind `find -exec`. At most four deep.
 */
export const commandsIn = (line: string, depth = 0): ReadonlyArray<ReadonlyArray<string>> => {
  if (depth > 4) return []
  const { commands, inner } = parse(line.slice(0, 20_000))
  const runs = (words: ReadonlyArray<string>, level: number): ReadonlyArray<ReadonlyArray<string>> => {
    const { stages } = unwrap(words)
    return stages.flatMap((stage) => {
      const script = scriptOf(stage)
      return [
        stage,
        ...(script === undefined ? [] : commandsIn(script, level + 1)),
        ...(level > 4 ? [] : eachOf(stage).flatMap((each) => runs(each, level + 1)))
      ]
    })
  }
  // A shell may read the printed text.
  const hasShell = commands.some(({ words }) => shells.has(nameOf(unwrap(words).words[0] ?? "")))
  return [
    ...commands.flatMap(({ inputs, words }) => [
      ...runs(words, depth),
      ...inputs.flatMap((text) => commandsIn(text, depth + 1)),
      ...(hasShell && /^(?:echo|printf)$/.test(nameOf(words[0] ?? ""))
        ? commandsIn(words.slice(1).join(" "), depth + 1)
        : [])
    ]),
    ...inner.flatMap((text) => commandsIn(text, depth + 1))
  ]
}
