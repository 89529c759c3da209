/**
 * Describes the risks of a shell command to the person who approves it: deletions, overwritten files, network access,
 * changed rights, other programs and the machine.
 *
 * It parses the command line and knows the common programs. This is advice, not a security boundary: scripts, unknown
 * programs and commands built at run time can do anything.
 *
 * ```ts
 * import { CommandRisk } from "effect-deepagents/backends"
 *
 * CommandRisk.of("rm -rf build && curl https://example.com/x.sh | sh")
 * // [{ kind: "deletes", detail: "build, with all that is in it" }, { kind: "reaches", detail: "example.com" }, …]
 * ```
 */
import { valueAt } from "../support/json/valueAt.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import { hazardsOf } from "./internal/risk/options.ts"
import { gitWords, isOption, nameOf, scriptOf, shells, unwrap } from "./internal/risk/unwrap.ts"
import { parse, type Simple } from "./internal/risk/words.ts"

/**
 * A risk of a command.
 *
 * - `deletes`, `overwrites`: names of files
 * - `reaches`: hosts, or programs that use the network
 * - `runs`: downloaded or generated code
 * - `rights`: another user, or changed file permissions
 * - `machine`: disks, services, other processes
 * - `history`: commits, of this repository or a remote
 */
type Risk = {
  readonly kind: "deletes" | "overwrites" | "reaches" | "runs" | "rights" | "machine" | "history"
  readonly detail: string
}

/** Limits of the length of a command line, and of the nesting of commands. */
const readLength = 20_000
const maxDepth = 4

/** Options that take the text of a program. */
const onLine: { readonly [name: string]: RegExp } = {
  python: /^-\w*c$/,
  python3: /^-\w*c$/,
  node: /^(?:-\w*[ep]|--eval|--print)$/,
  bun: /^(?:-e|--eval)$/,
  deno: /^eval$/,
  perl: /^-\w*[eE]$/,
  ruby: /^-\w*e$/,
  php: /^-r$/
}

const interpreters = new Set([...shells, "python", "python3", "node", "perl", "ruby", "php", "deno", "bun"])

const downloaders = new Set(["curl", "wget", "fetch", "aria2c"])

const remote = new Set(["ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "telnet", "ftp", "socat", "ping", "dig"])

/** Programs that fetch or publish with these words. */
const fetching: { readonly [name: string]: RegExp } = {
  git: /^(?:push|fetch|pull|clone|ls-remote|submodule)$/,
  npm: /^(?:i|install|ci|publish|update|exec|init|create|login)$/,
  pnpm: /^(?:i|install|add|publish|update|dlx|create)$/,
  yarn: /^(?:install|add|publish|upgrade|dlx|create)$/,
  bun: /^(?:install|add|publish|update|x|create)$/,
  pip: /^(?:install|download)$/,
  pip3: /^(?:install|download)$/,
  uv: /^(?:add|sync|pip|tool|run)$/,
  cargo: /^(?:install|publish|fetch|add|update)$/,
  go: /^(?:get|install|mod)$/,
  gem: /^(?:install|push)$/,
  docker: /^(?:pull|push|run|login|build)$/,
  apt: /^(?:install|update|upgrade)$/,
  "apt-get": /^(?:install|update|upgrade)$/,
  brew: /^(?:install|update|upgrade)$/,
  gh: /^/,
  aws: /^/,
  gcloud: /^/,
  kubectl: /^/,
  npx: /^/,
  terraform: /^/
}

const machine = new Set(
  "shutdown reboot halt poweroff mkfs fdisk parted mount umount systemctl service launchctl crontab iptables insmod modprobe kill killall pkill diskutil swapoff".split(
    " "
  )
)

/** Programs that only read or print text. */
const quiet = new Set(["echo", "printf", "grep", "rg", "sed", "awk", "cat", "head", "tail", "test", "["])

const targetsOf = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const end = words.indexOf("--")
  return end === -1
    ? words.filter((word) => !isOption(word))
    : [...targetsOf(words.slice(0, end)), ...words.slice(end + 1)]
}

const has = (words: ReadonlyArray<string>, letter: string, long: string): boolean =>
  words.some((word) => word === long || (/^-[A-Za-z]+$/.test(word) && word.includes(letter)))

const listWords = (words: ReadonlyArray<string>): string => {
  const some = words.slice(0, 8).map((word) => cut(oneLine(word), 100))
  return words.length > some.length ? `${some.join(", ")} and ${words.length - some.length} more` : some.join(", ")
}

const host = /\b(?:https?|ftps?|ssh|git|wss?|s3|gs):\/\/(?:[^\s/@'"]*@)?([^\s/:'"`()?#]+)/gi

const account = /^(?:[\w.-]+@)?([\w-]+(?:\.[\w-]+)+):/

const hostsOf = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words.flatMap((word) => {
    const named = [...word.slice(0, 2_000).matchAll(host)].flatMap((match) => match[1] ?? [])
    const short = named.length > 0 ? undefined : account.exec(word)?.[1]
    return short === undefined ? named : [short]
  })

const pushRisk = (rest: ReadonlyArray<string>): Risk => {
  const [to = "the remote", ...others] = targetsOf(rest)
  const isOver = has(rest, "f", "--force") || rest.some((word) => /^(?:--force-|--mirror$|\+)/.test(word))
  const deleted = has(rest, "d", "--delete") ? others : others.filter((word) => word.startsWith(":"))
  if (deleted.length > 0) return { kind: "history", detail: `deletes ${listWords(deleted)} of ${to}` }
  return { kind: "history", detail: `${isOver ? "writes over commits of" : "publishes commits to"} ${to}` }
}

/** Tells whether an action of git discards changes of the working tree. */
const discardsChanges = (action: string, rest: ReadonlyArray<string>): boolean => {
  if (action === "reset") return rest.includes("--hard")
  if (action === "restore") return true
  const isBack = ["--", ".", "--discard-changes"].some((word) => rest.includes(word)) || has(rest, "f", "--force")
  return isBack && (action === "checkout" || action === "switch")
}

const gitRisks = (words: ReadonlyArray<string>): ReadonlyArray<Risk> => {
  const [action = "", ...rest] = gitWords(words)
  const [first = ""] = targetsOf(rest)
  if (action === "push") return [pushRisk(rest)]
  if (action === "clean") return [{ kind: "deletes", detail: "files that git does not track" }]
  if (action === "rm") return [{ kind: "deletes", detail: listWords(targetsOf(rest)) }]
  if (action === "stash" && /^(?:drop|clear)$/.test(first)) return [{ kind: "deletes", detail: "stashed changes" }]
  if (discardsChanges(action, rest)) return [{ kind: "deletes", detail: "changes that are not committed" }]
  if (/^(?:filter-branch|filter-repo|rebase)$/.test(action) || (action === "branch" && has(rest, "D", "--delete"))) {
    return [{ kind: "history", detail: `git ${action}` }]
  }
  return []
}

/** Tells whether the name of a command is computed at run time. */
const isMade = (first: string): boolean =>
  first.includes("$(") ||
  first.includes("`") ||
  nameOf(first).includes("$") ||
  (first.includes("{") && first.includes(","))

/** A program with its arguments; `targets` are the arguments that are not options. */
interface Program {
  readonly name: string
  readonly words: ReadonlyArray<string>
  readonly rest: ReadonlyArray<string>
  readonly targets: ReadonlyArray<string>
}

/** The risk of each program, as the detail of its kind; `undefined` for arguments without a risk. */
const byProgram: ReadonlyArray<{
  readonly names: ReadonlyArray<string>
  readonly kind: Risk["kind"]
  readonly detail: (program: Program) => string | undefined
}> = [
  {
    names: ["rm", "rmdir", "unlink", "shred", "srm"],
    kind: "deletes",
    detail: ({ rest, targets }) => (targets.length > 0 ? listWords(targets) + allOf(rest, "rR") : undefined)
  },
  {
    names: ["find"],
    kind: "deletes",
    detail: ({ rest, targets }) =>
      rest.includes("-delete") || /\b(?:rm|unlink|shred)\b/.test(rest.join(" "))
        ? `what is found in ${listWords(targets.slice(0, 1))}`
        : undefined
  },
  {
    names: ["dd"],
    kind: "overwrites",
    detail: ({ rest }) => listWords(rest.filter((word) => word.startsWith("of=")).map((word) => word.slice(3)))
  },
  { names: ["truncate", "tee"], kind: "overwrites", detail: ({ targets }) => listWords(targets) },
  {
    names: ["sed"],
    kind: "overwrites",
    detail: ({ rest, targets }) =>
      rest.some((word) => /^-[A-Za-z]*i|^--in-place/.test(word)) ? listWords(targets.slice(1)) : undefined
  },
  {
    names: ["mv", "cp", "install", "ln"],
    kind: "overwrites",
    detail: ({ targets }) => (targets.length > 1 ? `${listWords(targets.slice(-1))}, if it is there` : undefined)
  },
  {
    names: ["chmod", "chown", "chgrp", "setfacl"],
    kind: "rights",
    detail: ({ name, rest, targets }) => `${name} of ${listWords(targets.slice(1))}${allOf(rest, "R")}`
  },
  { names: ["su"], kind: "rights", detail: () => "runs as another user" },
  { names: [...machine], kind: "machine", detail: ({ words }) => listWords(words.slice(0, 6)) },
  {
    names: ["rsync"],
    kind: "deletes",
    detail: ({ rest, targets }) =>
      rest.some((one) => one.startsWith("--delete"))
        ? `what the source does not have, in ${listWords(targets.slice(-1))}`
        : undefined
  }
]

const allOf = (rest: ReadonlyArray<string>, letters: string): string =>
  Array.from(letters).some((letter) => has(rest, letter, "--recursive")) ? ", with all that is in it" : ""

const networkRisks = ({ name, rest, targets, words }: Program): ReadonlyArray<Risk> => {
  const hosts = quiet.has(name) ? [] : hostsOf(rest)
  if (hosts.length > 0) return [{ kind: "reaches", detail: listWords([...new Set(hosts)]) }]
  const action = (name === "git" ? gitWords(words) : targets)[0] ?? ""
  const isNetwork = downloaders.has(name) || remote.has(name)
  if (!isNetwork && valueAt(fetching, name)?.test(action) !== true) return []
  const what = isNetwork ? listWords(targets.slice(0, 2)) : action
  return [{ kind: "reaches", detail: `the network, by ${name}${what === "" ? "" : ` ${what}`}` }]
}

const runRisks = ({ name, rest, targets, words }: Program): ReadonlyArray<Risk> => {
  const isMadeFile = interpreters.has(name) && targets[0]?.startsWith("<(") === true
  const isMadeHere = ["eval", "source", "."].includes(name) || isMadeFile || isMade(words[0] ?? "")
  const isOnLine = rest.some((one) => valueAt(onLine, name)?.test(one) === true)
  return [
    ...(isMadeHere
      ? [{ kind: "runs" as const, detail: `a command that is made at run time: ${listWords(words.slice(0, 4))}` }]
      : []),
    ...(isOnLine ? [{ kind: "runs" as const, detail: `a program that is on the line, by ${name}` }] : [])
  ]
}

const programRisks = (words: ReadonlyArray<string>): ReadonlyArray<Risk> => {
  const name = nameOf(words[0] ?? "")
  const rest = words.slice(1)
  const program = { name, words, rest, targets: targetsOf(rest) }
  const tableName = name.startsWith("mkfs.") ? "mkfs" : name
  return [
    ...byProgram.flatMap(({ detail, kind, names }): ReadonlyArray<Risk> => {
      const text = names.includes(tableName) ? detail(program) : undefined
      return text === undefined ? [] : [{ kind, detail: text }]
    }),
    ...hazardsOf(words, name === "git" ? gitWords(words)[0] : undefined).flatMap(({ detail, kind }) =>
      detail === "" ? [] : [{ kind, detail: cut(oneLine(detail), 100) }]
    ),
    ...(name === "git" ? gitRisks(words) : []),
    ...networkRisks(program),
    ...runRisks(program)
  ]
}

/** Tells whether a program is an interpreter that runs its stdin. */
const runsInput = (words: ReadonlyArray<string>): boolean =>
  interpreters.has(nameOf(words[0] ?? "")) &&
  scriptOf(words) === undefined &&
  (targetsOf(words.slice(1)).length === 0 || words.includes("-s") || words.includes("-"))

/** The texts in a pipe that its last command reads. */
const textsOf = (pipe: ReadonlyArray<Simple>): ReadonlyArray<string> =>
  pipe.flatMap(({ inputs, words }) => {
    const says = /^(?:echo|printf)$/.test(nameOf(words[0] ?? ""))
    return says ? [...inputs, targetsOf(words.slice(1)).join(" ")] : inputs
  })

/** The risks of programs read from a pipe, a here-document or a here-string. */
const inputRisks = (pipe: ReadonlyArray<Simple>, depth: number): ReadonlyArray<Risk> => {
  const runner = pipe.find(({ inputs, words }, index) => (index > 0 || inputs.length > 0) && runsInput(words))
  if (runner === undefined) return []
  const name = nameOf(runner.words[0] ?? "")
  const isDownload = pipe.some(({ words }) => downloaders.has(nameOf(words[0] ?? "")))
  return [
    { kind: "runs", detail: `${isDownload ? "what it downloads" : "what it is given to read"}, by ${name}` },
    ...(shells.has(name) ? textsOf(pipe).flatMap((text) => look(text, depth + 1)) : [])
  ]
}

const writeRisks = ({ writes }: Simple): ReadonlyArray<Risk> => {
  const files = writes.filter((file) => !/^\/dev\/(?:null|stdout|stderr|tty)$/.test(file))
  if (files.length === 0) return []
  const isDevice = files.some((file) => file.startsWith("/dev/"))
  return [{ kind: isDevice ? "machine" : "overwrites", detail: listWords(files) }]
}

const look = (command: string, depth: number): ReadonlyArray<Risk> => {
  if (depth > maxDepth) return [{ kind: "runs", detail: "commands in commands, deeper than is looked at" }]
  const { commands, inner } = parse(command)
  const simple = commands.map((one) => ({ ...one, ...unwrap(one.words) }))
  const pipes = Map.groupBy(simple, ({ pipe }) => pipe)
  return [
    ...[...pipes.values()].flatMap((pipe) => [
      ...pipe.flatMap((one): ReadonlyArray<Risk> => {
        const script = scriptOf(one.words)
        return [
          ...(one.variables.length === 0
            ? []
            : [
                {
                  kind: "runs" as const,
                  detail: `what ${listWords(one.variables)} name${one.variables.length === 1 ? "s" : ""}`
                }
              ]),
          ...(one.as === undefined ? [] : [{ kind: "rights" as const, detail: `runs as another user, by ${one.as}` }]),
          ...programRisks(one.words),
          ...writeRisks(one),
          ...(script === undefined ? [] : look(script, depth + 1))
        ]
      }),
      ...inputRisks(pipe, depth)
    ]),
    ...inner.flatMap((text) => look(text, depth + 1))
  ]
}

/** The risks of a command line in order, without duplicates. */
export const of = (command: string): ReadonlyArray<Risk> => {
  const risks = look(command.slice(0, readLength), 0)
  const all: ReadonlyArray<Risk> =
    command.length > readLength
      ? [...risks, { kind: "runs", detail: "more than is looked at: it is very long" }]
      : risks
  const seen = new Set<string>()
  return all.filter(({ detail, kind }) => {
    const key = `${kind} ${detail}`
    return seen.has(key) ? false : seen.add(key)
  })
}

const words: { readonly [Kind in Risk["kind"]]: string } = {
  deletes: "Deletes",
  overwrites: "Writes to",
  reaches: "Reaches",
  runs: "Runs",
  rights: "Rights",
  machine: "Changes the machine",
  history: "History"
}

/** A command and its risks for an approval dialog, a line each. */
export const describe = (command: string): string =>
  [command, ...of(command).map(({ detail, kind }) => `${words[kind]}: ${detail}`)].join("\n")
