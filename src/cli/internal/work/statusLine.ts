/** Makes the status line of a chat. The settings of the program or of Claude Code describe it. */
import { homedir } from "node:os"
import { basename, join } from "node:path"
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import manifest from "../../../../package.json" with { type: "json" }
import { isObject, type Json } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { Problem, StatusFacts, StatusLine } from "../chat/options.ts"
import { itemsOf } from "../config/items.ts"
import type { Values } from "../config/settings.ts"
import { smallFile } from "../project/folders.ts"
import { readBranch } from "../project/head.ts"
import { contextOf, costOf } from "../render/live.ts"
import type { Context, Services } from "./app.ts"

/** The time of a command, and the most bytes of its output that count. */
const limits = { time: "5 seconds", bytes: 10_000 } as const

/** The most bytes of a file of settings. */
const mostBytes = 1_000_000

const problemOf = (message: string): Problem => ({ message })

/** The facts in the form of Claude Code, whose scripts read them. */
const inputOf = (project: string, { agent, context, mode, model, threadId, usage, vim }: StatusFacts): Json => ({
  hook_event_name: "Status",
  session_id: threadId,
  cwd: project,
  workspace: { current_dir: project, project_dir: project },
  model: { id: model.slice(model.indexOf(":") + 1), display_name: model },
  version: manifest.version,
  cost: { total_cost_usd: usage.cost ?? 0 },
  context_window: {
    total_input_tokens: usage.inputTokens,
    total_output_tokens: usage.outputTokens,
    ...defined({
      context_window_size: context?.window,
      used_percentage: context?.window === undefined ? undefined : Math.round((100 * context.total) / context.window)
    })
  },
  mode,
  agent: { name: agent },
  ...(vim === undefined ? {} : { vim: { mode: vim.toUpperCase() } })
})

/** Runs a command with the facts on its standard input. Its first line is the status line. */
const runCommand = Effect.fnUntraced(
  function* (command: string, project: string, input: Json) {
    const spawner = yield* ChildProcessSpawner
    const stdin = Stream.make(new TextEncoder().encode(`${JSON.stringify(input)}\n`))
    const process = yield* spawner.spawn(
      ChildProcess.make("sh", ["-c", command], {
        cwd: project,
        env: { CLAUDE_PROJECT_DIR: project, DEEPAGENTS_PROJECT_DIR: project },
        extendEnv: true,
        killSignal: "SIGKILL",
        stdin: { stream: stdin, endOnDone: true },
        stderr: "ignore"
      })
    )
    let text = ""
    // More is read and dropped, so that the command can end.
    yield* Stream.runForEach(Stream.decodeText(process.stdout), (piece) =>
      Effect.sync(() => {
        if (text.length < limits.bytes) text += piece
      })
    )
    const code = yield* process.exitCode
    if (code !== 0) return yield* Effect.fail(problemOf(`its command ended with exit code ${code}`))
    return text.trim().split("\n")[0] ?? ""
  },
  Effect.scoped,
  Effect.timeoutOrElse({
    duration: limits.time,
    orElse: () => Effect.fail(problemOf(`its command took more than ${limits.time}`))
  }),
  Effect.mapError(({ message }) => problemOf(oneLine(message)))
)

type Setting = NonNullable<Values["statusLine"]>

/** The text of a part; empty for a part that is not known. */
const partOf = (name: Extract<Setting, ReadonlyArray<unknown>>[number], facts: StatusFacts, place: Place): string => {
  switch (name) {
    case "mode":
      return facts.mode
    case "agent":
      return facts.agent
    case "model":
      return facts.model
    case "folder":
      return basename(place.project)
    case "branch":
      return place.branch ?? ""
    case "context":
      return contextOf(facts) ?? ""
    case "cost":
      return costOf(facts.usage) ?? ""
    case "session":
      return facts.threadId
  }
}

interface Place {
  readonly project: string
  readonly branch: string | undefined
}

/** Reads the command in settings of Claude Code. */
const commandIn = (text: string): string | undefined => {
  const json = Result.getOrUndefined(Result.try((): Json => JSON.parse(text)))
  const line = isObject(json) ? json["statusLine"] : undefined
  const command = isObject(line) ? line["command"] : undefined
  return typeof command === "string" && command.trim() !== "" ? command : undefined
}

/** Finds the setting that counts: the user's, else the project's if it is trusted, else Claude Code's of the user. */
const settingOf = Effect.fnUntraced(function* ({ project, settings }: Context) {
  if (settings.statusLine !== undefined) return settings.statusLine.value
  const item = itemsOf(project, "status line").at(-1)
  const text = item?.text ?? (yield* smallFile(join(homedir(), ".claude", "settings.json"), mostBytes)) ?? ""
  const command = commandIn(text)
  return command === undefined ? undefined : { command }
})

/** Makes the status line; `undefined` for the usual one. */
export const findStatusLine = Effect.fnUntraced(function* (context: Context) {
  const setting: Setting | undefined = yield* settingOf(context)
  if (setting === undefined) return undefined
  const services = yield* Effect.context<Services>()
  const { project } = context.places
  const lineOf: StatusLine =
    "command" in setting
      ? (facts) => Effect.provideContext(runCommand(setting.command, project, inputOf(project, facts)), services)
      : (facts) =>
          Effect.map(readBranch(project), (branch) =>
            setting
              .map((name) => partOf(name, facts, { project, branch }))
              .filter((part) => part !== "")
              .join(" · ")
          )
  return lineOf
})
