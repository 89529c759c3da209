/**
 * Processes in the background: a server, a watcher, a long build, a program that asks for input.
 *
 * `FileTools.make({ execute: { background: true } })` makes the tools: `execute` starts a process, `read_output` reads
 * its output from an offset or waits for a text, `send_input` writes to it, `kill_process` ends it. Processes end with
 * their run. With `layer` they end with the layer, so a server goes on from turn to turn. On this machine they end also
 * when the program is killed.
 *
 * The sandbox needs a POSIX shell with `mkfifo`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { FileTools, Processes } from "effect-deepagents/backends"
 *
 * const coder = Agent.make({
 *   name: "coder",
 *   prompt: "You run the development server, and mend what it complains about.",
 *   tools: FileTools.make({ execute: { background: true } }),
 *   middleware: [Processes.notices()]
 * })
 *
 * // The server of the first turn answers in the second.
 * const chat = Agent.run(coder, "Start the server", { threadId: "ada" }).pipe(
 *   Effect.andThen(Agent.run(coder, "Does it answer?", { threadId: "ada" })),
 *   Effect.provide(Processes.layer())
 * )
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { IdGenerator } from "../core/IdGenerator.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import type { Run } from "../core/Run.ts"
import { Sandbox } from "../core/Sandbox.ts"
import * as Attached from "../support/effect/attached.ts"
import { defined } from "../support/json/defined.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import { ProcessTable } from "./internal/processes/service.ts"
import { describeEnd, makeTable, type Process } from "./internal/processes/table.ts"
import { tableOf, usual } from "./internal/processes/tools.ts"
import * as shapes from "./internal/shapes.ts"

export { ProcessTable } from "./internal/processes/service.ts"
export type { End, Process, Reading, Service, Window } from "./internal/processes/table.ts"
export { describeEnd } from "./internal/processes/table.ts"

/** Limits of processes, and the folder of their outputs. */
export interface Options {
  /** The most processes that run at once. Default: 8. */
  readonly most?: number | undefined
  /** The time after which a process is ended. Default: 4 hours. */
  readonly time?: Duration.Input | undefined
  /** The most output of a process, in bytes. More output ends it. Default: 64 MiB. */
  readonly output?: number | undefined
  /**
   * The folder of this session's outputs, a path of the sandbox. What an earlier program left in it is ended, and told
   * as gone. Default: `.processes` in the `paths.scratch` of the sandbox, or in its root, shared by all sessions, where
   * nothing is told.
   */
  readonly folder?: string | undefined
}

const checkLayer = makeLayerCheck("Processes.layer", shapes.processesLayer)

/** Makes the table of a session. Its processes end when the layer is released. */
export const layer = (options: Options = {}): Layer.Layer<ProcessTable, never, Sandbox> =>
  checkLayer(options) ??
  Layer.effect(
    ProcessTable,
    Effect.gen(function* () {
      const { time, ...others } = options
      const settings = {
        ...usual,
        ...defined(others),
        ...(time === undefined ? {} : { time: Duration.fromInputUnsafe(time) })
      }
      const sandbox = yield* Sandbox
      return yield* makeTable(settings, yield* Effect.scope, options.folder === undefined ? undefined : sandbox)
    })
  )

/** The `source` of the messages that report ended processes to the model. */
export const source = "processes"

const name = "Processes"

const maxCommand = 200

const describeNotice = (ended: ReadonlyArray<Process>): string =>
  [
    "This is said by the system, not by the user. Of your processes in the background:",
    ...ended.map(
      ({ command, end, id }) =>
        `- ${id} (${cut(oneLine(command), maxCommand)}): ${describeEnd(end)}. read_output has its output.`
    )
  ].join("\n")

/** The ids of processes that a message of a run reports. */
interface Notice {
  readonly message: string
  readonly ids: ReadonlyArray<string>
}

/**
 * Tells the model before a round which processes have ended. A sub-agent is told of its own, the outermost agent of all.
 * A notice counts once it is in the conversation.
 */
export const notices = (): Middleware.Middleware => {
  const noticesByRun = Attached.make<Run, Notice>()
  return Middleware.make({
    name,
    beforeModel: Effect.fnUntraced(function* (run: Run) {
      const table = yield* tableOf(run)
      const last = noticesByRun.get(run)
      if (last !== undefined && run.messages.findLast(({ id }) => id === last.message) !== undefined) {
        yield* table.told(last.ids)
      }
      const ended = yield* table.untold(run.parent === undefined ? undefined : run.runId)
      if (ended.length === 0) return undefined
      const makeId = yield* IdGenerator
      const message = makeId()
      noticesByRun.set(run, { message, ids: ended.map(({ id }) => id) })
      return Middleware.continueWith(Message.human(describeNotice(ended), { id: message, source }))
    })
  })
}
