/**
 * The programs that a repository would have git run, and how git runs without them.
 *
 * Programs that the person's own settings name (git-lfs is one) are not the repository's: git runs them.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Question from "../../../core/Question.ts"
import type { Sandbox } from "../../../core/Sandbox.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { escaped } from "../../../support/text/untrusted.ts"
import { complaint, type Environment, gitWords, pinned, quoted, type Repository, runLine, succeeded } from "./run.ts"

interface Setting {
  readonly key: string
  readonly value: string
}

const patterns = [
  "filter\\..*\\.(clean|smudge|process|required)",
  "merge\\..*\\.driver",
  "branch\\..*\\.mergeoptions",
  "hook\\..*\\.command",
  "gpg\\.(.*\\.)?program",
  "gpg\\.ssh\\.defaultkeycommand"
]

const personal: ReadonlySet<string | undefined> = new Set(["system", "global", "command"])

/** The settings of these kinds that are the repository's own, those of included files too. */
const ownSettings = (repository: Repository): Effect.Effect<ReadonlyArray<Setting>, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const line = yield* quoted(gitWords(["config", "-z", "--show-scope", "--get-regexp", `^(${patterns.join("|")})$`]))
    const answer = yield* runLine(line, { cwd: repository.cwd, env: pinned(repository) })
    if (answer.exitCode > 1) return yield* ToolError.make(complaint(answer))
    if (answer.truncated) return yield* ToolError.make("the settings of this repository are too long to look through")
    const fields = answer.stdout.split("\0")
    return fields.flatMap((field, index) => {
      if (index % 2 === 0 || personal.has(fields[index - 1])) return []
      const end = field.indexOf("\n")
      return [end < 0 ? { key: field, value: "" } : { key: field.slice(0, end), value: field.slice(end + 1) }]
    })
  })

/** Git's own merge of texts, as a driver. */
const plainMerge = "git merge-file --marker-size=%L %A %O %B"

const withoutEnd = (key: string): string => key.slice(0, key.lastIndexOf("."))

/** The setting that takes the place of one that names a program. */
const harmlessOf = ({ key }: Setting): Setting | undefined => {
  if (key.startsWith("filter.")) return { key, value: key.endsWith(".required") ? "false" : "" }
  if (key.startsWith("merge.")) return { key, value: plainMerge }
  if (key.startsWith("branch.")) return { key, value: "" }
  if (key.startsWith("hook.")) return { key: `${withoutEnd(key)}.enabled`, value: "false" }
  return undefined
}

const environmentOf = (settings: ReadonlyArray<Setting>): Environment => {
  const unique = [...new Map(settings.map((setting) => [setting.key, setting])).values()]
  return Object.fromEntries([
    ...(unique.length === 0 ? [] : [["GIT_CONFIG_COUNT", String(unique.length)]]),
    ...unique.flatMap(({ key, value }, index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value]
    ])
  ])
}

/** The environment in which git runs nothing that the repository's settings name. */
export const harmless = (repository: Repository): Effect.Effect<Environment, ToolError.ToolError, Sandbox> =>
  Effect.map(ownSettings(repository), (settings) =>
    environmentOf(settings.flatMap((setting) => harmlessOf(setting) ?? []))
  )

/**
 * What a repository has git run: a line for a person each, and how git runs them and nothing else. `hooks` is the folder
 * of its hooks, if there are any.
 */
export interface Programs {
  readonly lines: ReadonlyArray<string>
  readonly env: Environment
  readonly hooks: string | undefined
}

/** The hooks that a commit can run. */
const commitHooks = [
  "pre-commit",
  "prepare-commit-msg",
  "commit-msg",
  "post-commit",
  "post-index-change",
  "reference-transaction"
]

/** Lists hooks that can run: the name, and a digest of the file. */
const listHooks = `cd -- "$GIT_WORK_TREE" && cd -- "$hooks" 2>/dev/null && pwd -P || exit 0
for hook in ${commitHooks.join(" ")}; do
  [ -f "$hook" ] && [ -x "$hook" ] || continue
  printf "%s %s\\n" "$hook" "$(git hash-object --no-filters --stdin < "$hook")"
done`

const hooksOf = (
  repository: Repository
): Effect.Effect<Pick<Programs, "lines" | "hooks">, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const setting = yield* quoted(["git", "config", "--type=path", "core.hooksPath"])
    const usual = yield* quoted([`${repository.common}/hooks`])
    const answer = yield* Effect.flatMap(
      runLine(`hooks=$(${setting}) || hooks=${usual}\n${listHooks}`, {
        cwd: repository.cwd,
        env: pinned(repository)
      }),
      succeeded
    )
    const [folder = "", ...found] = answer.stdout.trimEnd().split("\n")
    const lines = found.map((line) => {
      const [name, digest] = line.split(" ")
      return `hook ${name} (${folder}/${name}, ${digest?.slice(0, 12)})`
    })
    return lines.length === 0 ? { lines, hooks: undefined } : { lines, hooks: folder }
  })

const isSigning = (repository: Repository): Effect.Effect<boolean, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const line = yield* quoted(gitWords(["config", "--type=bool", "commit.gpgSign"]))
    const answer = yield* runLine(line, { cwd: repository.cwd, env: pinned(repository) })
    return answer.stdout.trim() === "true"
  })

/** Finds the programs of a check-out (filters), or of a commit (hooks, filters, what signs). */
const find = (
  repository: Repository,
  kind: "checkout" | "commit"
): Effect.Effect<Programs, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const settings = yield* ownSettings(repository)
    const signs = kind === "commit" && (yield* isSigning(repository))
    const runs = ({ key }: Setting): boolean =>
      key.startsWith("filter.") || (key.startsWith("hook.") && kind === "commit") || (key.startsWith("gpg.") && signs)
    const { hooks, lines } = kind === "commit" ? yield* hooksOf(repository) : { hooks: undefined, lines: [] }
    return {
      lines: [
        ...lines,
        ...settings
          .filter((setting) => runs(setting) && !setting.key.endsWith(".required") && setting.value !== "")
          .map(({ key, value }) => `${key}: ${value}`)
      ],
      env: environmentOf(settings.flatMap((setting) => (runs(setting) ? [] : (harmlessOf(setting) ?? [])))),
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
 * Lets a person decide on the programs that a repository has git run. Gives what was approved: if something else would
 * run by now, it fails.
 */
export const approved = (
  repository: Repository,
  kind: "checkout" | "commit",
  doing: string
): Effect.Effect<Programs, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const programs = yield* find(repository, kind)
    if (programs.lines.length === 0) return programs
    const lines = programs.lines.join("; ")
    yield* Effect.mapError(askToRun(`${doing}, for which this repository runs: ${lines}`), ({ message }) =>
      ToolError.make(
        `${doing} would run programs of this repository (${lines}): ${message}. Tell the person what would run, or leave it undone.`
      )
    )
    const now = yield* find(repository, kind)
    if (now.lines.join("\n") === programs.lines.join("\n")) return now
    return yield* ToolError.make(
      `nothing was done: the programs that this repository runs changed while they were being approved; call the tool again`
    )
  })
