/** Tells the model its working environment: once at the beginning of a thread, and each later change at its end. */
import { arch, platform } from "node:os"
import { basename } from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as AgentState from "../../../../core/AgentState.ts"
import { Backend } from "../../../../core/Backend.ts"
import * as Message from "../../../../core/Message.ts"
import * as Middleware from "../../../../core/Middleware.ts"
import { Sandbox } from "../../../../core/Sandbox.ts"
import { oneLine } from "../../../../support/text/untrusted.ts"
import * as Git from "../../../../workspace/Git.ts"
import type { Containment } from "../../approvals/permits.ts"
import type { Approvals } from "../../config/settings.ts"
import { branchIn, readHead } from "../../project/head.ts"
import type { Folders } from "./host.ts"

/** The `source` of messages about the environment. */
const source = "environment"

const Facts = Schema.Struct({
  folder: Schema.String,
  branch: Schema.String,
  others: Schema.Array(Schema.String),
  system: Schema.String,
  date: Schema.String,
  model: Schema.String,
  mode: Schema.String
})
type Facts = typeof Facts.Type

/** The facts that a thread was told last. Empty before the first message. */
const lastFacts = AgentState.slot("environment", { schema: Schema.Array(Facts), initial: [] })

/** The allowed calls of each mode. */
const free: { readonly [M in Approvals]: string } = {
  ask: "reading; changes and commands that do more than read are asked about",
  "auto-edit": "reading and changing files; commands that do more than read are asked about",
  plan: "reading only: this is plan mode, nothing may be changed and changes are refused. Make a plan",
  yolo: "everything"
}

/** The allowed calls of the mode `auto-edit`, by the commands that a sandbox keeps in the folder. */
export const freeCommands: { readonly [C in Containment]: string } = {
  none: "",
  all: "reading, changing files, and commands: they reach this folder alone",
  unapproved:
    "reading, changing files, and commands: they then run isolated, in this folder alone, without network, home and changes of .git; with outside: true the user is asked, and the command has all rights"
}

/** Names come from the disk, and must not look like markup. */
const clean = (name: string): string => oneLine(name).replaceAll(/[<>]/g, "?").slice(0, 200)

/** Reads the branch of a folder; empty outside of git. */
const branchOf = Effect.fnUntraced(function* (folder: string) {
  const head = yield* readHead(folder)
  if (head === undefined) return ""
  const branch = branchIn(head)
  return branch === undefined ? `detached at ${clean(head).slice(0, 10)}` : `branch ${clean(branch)}`
})

/** The time limit of the count of changes: a first request must not wait for a large work tree. */
const countTime = "2 seconds"

/** Counts the changed files of a folder. `undefined` if git does not answer in time. */
const countChanges = Effect.fnUntraced(function* (folder: string) {
  const sandbox = Option.getOrUndefined(yield* Effect.serviceOption(Sandbox))
  if (sandbox === undefined) return undefined
  return yield* Git.countChanges(folder).pipe(
    Effect.provideService(Sandbox, sandbox),
    Effect.timeout(countTime),
    Effect.orElseSucceed(() => undefined)
  )
})

const describeChanges = (count: number | undefined): string =>
  count === undefined ? "" : count === 0 ? ", no changes" : `, ${count} changed or new file${count === 1 ? "" : "s"}`

/** The time zone of this machine. */
export const localZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone

const dateOf = (millis: number): string =>
  `${new Intl.DateTimeFormat("en-CA", { dateStyle: "short" }).format(millis)} (${localZone()})`

/** The lasting part of an agent's environment. */
interface Place {
  readonly folder: string
  readonly shell: string
  readonly model: Effect.Effect<string>
  /** The reach of commands; empty without a sandbox. */
  readonly sandbox?: string | undefined
  readonly folders: Folders
  readonly mode: Effect.Effect<Approvals>
  /** The allowed calls of the mode `auto-edit` if a sandbox keeps commands in the folder; empty without one. */
  readonly freeCommands?: string | undefined
}

const factsOf = Effect.fnUntraced(function* ({
  folder: project,
  folders,
  freeCommands: commands = "",
  mode,
  model,
  sandbox = "",
  shell
}: Place) {
  // A coder in a worktree has another folder.
  const files = Option.getOrUndefined(yield* Effect.serviceOption(Backend))
  const folder = files?.paths?.cwd ?? project
  const now = yield* mode
  return {
    folder: clean(folder),
    branch: yield* branchOf(folder),
    others: folders.list().map(({ access, path }) => `${clean(path)}${access === "read" ? " (read only)" : ""}`),
    system: `${platform()} ${arch()}, ${basename(shell)}${sandbox === "" ? "" : `; commands are ${clean(sandbox)}`}`,
    date: dateOf(yield* Clock.currentTimeMillis),
    model: clean(yield* model),
    mode: commands !== "" && now === "auto-edit" ? commands : now
  } satisfies Facts
})

const freeIn = (mode: string): string => Object.entries(free).find(([name]) => name === mode)?.[1] ?? mode

/** The block at the beginning of a thread. */
const block = ({ branch, date, folder, mode, model, others, system }: Facts, changes: number | undefined): string =>
  [
    "<environment>",
    `Working folder: ${folder}${branch === "" ? "" : ` (git, ${branch}${describeChanges(changes)})`}`,
    ...(others.length === 0 ? [] : [`Other folders: ${others.join(", ")}`]),
    `System: ${system}. Date: ${date}. Model: ${model}`,
    `Without asking: ${freeIn(mode)}`,
    "</environment>"
  ].join("\n")

/** The notice of the changes. Empty if there are none. */
const notice = (before: Facts, now: Facts): string => {
  const fresh = now.others.filter((one) => !before.others.includes(one))
  const changes = [
    ...(now.date === before.date ? [] : [`It is ${now.date} now.`]),
    ...(now.branch === before.branch ? [] : [`The folder is on another commit: ${now.branch || "no git"}.`]),
    ...(now.folder === before.folder ? [] : [`The working folder is ${now.folder}.`]),
    ...(fresh.length === 0 ? [] : [`Folders were added: ${fresh.join(", ")}.`]),
    ...(now.model === before.model ? [] : [`The model is ${now.model}.`]),
    ...(now.mode === before.mode ? [] : [`Without asking from now on: ${freeIn(now.mode)}.`])
  ]
  return changes.length === 0 ? "" : `<notice>\n${changes.join("\n")}\n</notice>`
}

/**
 * Tells an agent and its sub-agents their environment. Both texts are messages of the thread, so the system prompt stays
 * the same in all folders, and the beginning of a conversation on all days.
 */
export const environment = (place: Place): Middleware.Middleware =>
  Middleware.make({
    name: "Environment",
    inherit: true,
    state: [lastFacts],
    beforeModel: Effect.fnUntraced(function* (run) {
      const [before] = yield* run.state.get(lastFacts)
      const now = yield* factsOf(place)
      const text =
        before === undefined
          ? block(now, now.branch === "" ? undefined : yield* countChanges(now.folder))
          : notice(before, now)
      if (text === "") return undefined
      yield* run.state.set(lastFacts, [now])
      return Middleware.continueWith(Message.human(text, { source }))
    })
  })
