/**
 * Finds and disables the programs that a repository configures for git.
 *
 * Programs in the settings of the machine, and on this machine of the user, stay enabled: git-lfs is one.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Question from "../../../core/Question.ts"
import { Sandbox } from "../../../core/Sandbox.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { escaped } from "../../../support/text/untrusted.ts"
import {
  describeFailure,
  type Environment,
  environmentOf,
  failOnExit,
  gitWords,
  quoteWords,
  type Repository,
  runLine
} from "./run.ts"

interface Setting {
  readonly key: string
  readonly value: string
}

/** A setting, with its scope (`local`, `global` …) and its file (`file:/home/ada/.gitconfig`). */
interface FoundSetting extends Setting {
  readonly scope: string
  readonly origin: string
}

const patterns = [
  "filter\\..*\\.(clean|smudge|process|required)",
  "merge\\..*\\.driver",
  "branch\\..*\\.mergeoptions",
  "hook\\..*\\.command",
  "gpg\\.(.*\\.)?program",
  "gpg\\.ssh\\.defaultkeycommand"
]

/**
 * Tells whether an agent can't have written a setting. On another machine, commands of the agent write the home folder,
 * too. Here a person's settings may include a file of the work tree.
 */
const isPersonal = ({ origin, scope }: FoundSetting, { top }: Repository, onHost: boolean): boolean => {
  if (scope === "command" || scope === "system") return true
  return scope === "global" && onHost && !origin.startsWith(`file:${top === "/" ? "" : top}/`)
}

/** Reads settings of the repository that name programs, also in included files. */
const readSettings = (repository: Repository): Effect.Effect<ReadonlyArray<Setting>, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const line = yield* quoteWords(
      gitWords(["config", "-z", "--show-scope", "--show-origin", "--get-regexp", `^(${patterns.join("|")})$`])
    )
    const answer = yield* runLine(line, { cwd: repository.cwd, env: environmentOf(repository) })
    if (answer.exitCode > 1) return yield* ToolError.make(describeFailure(answer))
    if (answer.truncated) return yield* ToolError.make("the settings of this repository are too long to look through")
    const { onHost } = yield* Sandbox
    const fields = answer.stdout.split("\0")
    return fields.flatMap((field, index) => {
      if (index % 3 !== 2) return []
      const end = field.indexOf("\n")
      const [scope = "", origin = ""] = fields.slice(index - 2, index)
      const setting = end < 0 ? { key: field, value: "" } : { key: field.slice(0, end), value: field.slice(end + 1) }
      return isPersonal({ ...setting, scope, origin }, repository, onHost === true) ? [] : [setting]
    })
  })

/** The text merge of git as a merge driver. */
const plainMerge = "git merge-file --marker-size=%L %A %O %B"

const removeLastPart = (key: string): string => key.slice(0, key.lastIndexOf("."))

/** Makes the setting that disables a program. */
const disableSetting = ({ key }: Setting): Setting | undefined => {
  if (key.startsWith("filter.")) return { key, value: key.endsWith(".required") ? "false" : "" }
  if (key.startsWith("merge.")) return { key, value: plainMerge }
  if (key.startsWith("branch.")) return { key, value: "" }
  if (key.startsWith("hook.")) return { key: `${removeLastPart(key)}.enabled`, value: "false" }
  return undefined
}

const toEnvironment = (settings: ReadonlyArray<Setting>): Environment => {
  const unique = [...new Map(settings.map((setting) => [setting.key, setting])).values()]
  return Object.fromEntries([
    ...(unique.length === 0 ? [] : [["GIT_CONFIG_COUNT", String(unique.length)]]),
    ...unique.flatMap(({ key, value }, index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value]
    ])
  ])
}

/** Makes the environment that disables all programs of the repository. */
export const makeSafeEnvironment = (repository: Repository): Effect.Effect<Environment, ToolError.ToolError, Sandbox> =>
  Effect.map(readSettings(repository), (settings) =>
    toEnvironment(settings.flatMap((setting) => disableSetting(setting) ?? []))
  )

/**
 * Programs of a repository for one command: a line about each for a person, and the environment that enables only these.
 * `hooks` is the folder of its hooks.
 */
export interface Programs {
  readonly lines: ReadonlyArray<string>
  readonly env: Environment
  readonly hooks: string | undefined
}

/** Hooks of a commit. */
const commitHooks = [
  "pre-commit",
  "prepare-commit-msg",
  "commit-msg",
  "post-commit",
  "post-index-change",
  "reference-transaction"
]

/** Lists executable hooks with a digest of each. */
const listHooks = `cd -- "$GIT_WORK_TREE" && cd -- "$hooks" 2>/dev/null && pwd -P || exit 0
for hook in ${commitHooks.join(" ")}; do
  [ -f "$hook" ] && [ -x "$hook" ] || continue
  printf "%s %s\\n" "$hook" "$(git hash-object --no-filters --stdin < "$hook")"
done`

const readHooks = (
  repository: Repository
): Effect.Effect<Pick<Programs, "lines" | "hooks">, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const setting = yield* quoteWords(["git", "config", "--type=path", "core.hooksPath"])
    const defaultFolder = yield* quoteWords([`${repository.common}/hooks`])
    const answer = yield* Effect.flatMap(
      runLine(`hooks=$(${setting}) || hooks=${defaultFolder}\n${listHooks}`, {
        cwd: repository.cwd,
        env: environmentOf(repository)
      }),
      failOnExit
    )
    const [folder = "", ...rows] = answer.stdout.trimEnd().split("\n")
    const lines = rows.map((line) => {
      const [name, digest] = line.split(" ")
      return `hook ${name} (${folder}/${name}, ${digest?.slice(0, 12)})`
    })
    return lines.length === 0 ? { lines, hooks: undefined } : { lines, hooks: folder }
  })

const signsCommits = (repository: Repository): Effect.Effect<boolean, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const line = yield* quoteWords(gitWords(["config", "--type=bool", "commit.gpgSign"]))
    const answer = yield* runLine(line, { cwd: repository.cwd, env: environmentOf(repository) })
    return answer.stdout.trim() === "true"
  })

/** Finds the programs of a checkout (filters), or of a commit (hooks, filters, signing). */
const findPrograms = (
  repository: Repository,
  kind: "checkout" | "commit"
): Effect.Effect<Programs, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const settings = yield* readSettings(repository)
    const signs = kind === "commit" && (yield* signsCommits(repository))
    const runs = ({ key }: Setting): boolean =>
      key.startsWith("filter.") || (key.startsWith("hook.") && kind === "commit") || (key.startsWith("gpg.") && signs)
    const { hooks, lines } = kind === "commit" ? yield* readHooks(repository) : { hooks: undefined, lines: [] }
    return {
      lines: [
        ...lines,
        ...settings
          .filter((setting) => runs(setting) && !setting.key.endsWith(".required") && setting.value !== "")
          .map(({ key, value }) => `${key}: ${value}`)
      ],
      env: toEnvironment(settings.flatMap((setting) => (runs(setting) ? [] : (disableSetting(setting) ?? [])))),
      hooks
    }
  })

/** Asks a person whether a command may run. Fails with the reason of a refusal. */
const askToRun = Effect.fnUntraced(function* (command: string) {
  const context = yield* Effect.serviceOption(ToolContext)
  if (Option.isNone(context)) return yield* ToolError.make("nobody is there to ask")
  const { ask, toolName } = context.value
  const details = { operation: "execute", command }
  yield* ask(Question.approval(escaped(`${toolName}: execute ${command}`), details, { covers: [`git ${command}`] }))
})

/**
 * Asks a person for approval of the programs that a command would run. Fails if the programs changed in the meantime.
 */
export const approvePrograms = (
  repository: Repository,
  kind: "checkout" | "commit",
  doing: string
): Effect.Effect<Programs, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const programs = yield* findPrograms(repository, kind)
    if (programs.lines.length === 0) return programs
    const lines = programs.lines.join("; ")
    yield* Effect.mapError(askToRun(`${doing}, for which this repository runs: ${lines}`), ({ message }) =>
      ToolError.make(
        `${doing} would run programs of this repository (${lines}): ${message}. Tell the person what would run, or leave it undone.`
      )
    )
    const now = yield* findPrograms(repository, kind)
    if (now.lines.join("\n") === programs.lines.join("\n")) return now
    return yield* ToolError.make(
      `nothing was done: the programs that this repository runs changed while they were being approved; call the tool again`
    )
  })
