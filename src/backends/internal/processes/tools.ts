/** The tools for processes in the background: `read_output`, `send_input`, `kill_process`. `execute` starts them. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Run } from "../../../core/Run.ts"
import type { Sandbox } from "../../../core/Sandbox.ts"
import * as Tool from "../../../core/Tool.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import * as ToolError from "../../../core/ToolError.ts"
import * as ToolOutput from "../../../core/ToolOutput.ts"
import * as Attached from "../../../support/effect/attached.ts"
import { ProcessTable } from "./service.ts"
import { describeEnd, makeTable, maxWait, type Service, type Settings, type Window } from "./table.ts"

/** The limits of a table whose options don't say. */
export const usual: Settings = {
  most: 8,
  time: Duration.hours(4),
  output: 64 * 1024 * 1024,
  folder: undefined
}

const runs = Attached.make<Run, Service>()

/** The table of the session; without one, the table of the run. */
export const tableOf = Effect.fnUntraced(function* (run: Run) {
  const shared = yield* Effect.serviceOption(ProcessTable)
  if (shared._tag === "Some") return shared.value
  const table = runs.get(run)
  if (table !== undefined) return table
  const newTable = yield* makeTable(usual, run.scope, undefined)
  // Another call of the round may have made one meanwhile.
  const first = runs.get(run) ?? newTable
  runs.set(run, first)
  return first
})

const tableOfCall = Effect.flatMap(ToolContext, ({ run }) => tableOf(run))

const text = (description: string) => Schema.String.annotate({ description })

const id = text("The id of the process, as execute gave it")

const renderWindow = (
  { isFound, next, offset, process, size, text: output }: Window,
  until = ""
): ToolOutput.ToolOutput => {
  const { end } = process
  const more = next < size ? `; there is more: read on from offset ${next}` : `; the next output is at offset ${next}`
  const untilNote =
    isFound === undefined
      ? ""
      : isFound
        ? `; it wrote ${JSON.stringify(until)}`
        : `; ${JSON.stringify(until)} did not come`
  const head = `[process ${process.id}: ${describeEnd(end)}${untilNote}; output from ${offset} to ${next} of ${size} bytes${more}; all of it is in the file ${process.output}]`
  return ToolOutput.make(output === "" ? head : `${output.trimEnd()}\n${head}`, {
    details: {
      kind: "process",
      id: process.id,
      offset: next,
      running: end === undefined,
      ...(end !== undefined && "exitCode" in end ? { exitCode: end.exitCode } : {})
    }
  })
}

/** Starts a process, and gives its first output. */
export const startProcess = Effect.fnUntraced(function* (command: string, pty: boolean) {
  const { run } = yield* ToolContext
  const table = yield* tableOf(run)
  const { id: name } = yield* table.start(command, { pty, owner: run.runId })
  const first = yield* Effect.result(table.read(name))
  if (first._tag === "Success") return renderWindow(first.success)
  const { end } = yield* table.kill(name)
  return yield* ToolError.make(`the process could not be started: ${describeEnd(end)}`)
})

const readTool = Tool.make("read_output", {
  description:
    "Reads the output of a process in the background, from an offset in bytes: give the one that was told last, to read only what is new. With wait it waits until there is something, with until until a text is there; or until it has ended.",
  parameters: {
    id,
    offset: Schema.optionalKey(Schema.Finite.annotate({ description: "Where to begin; 0 if left out" })),
    wait: Schema.optionalKey(Schema.Finite.annotate({ description: `How many seconds to wait, at most ${maxWait}` })),
    until: Schema.optionalKey(
      Schema.NonEmptyString.annotate({
        description: "A literal text to wait for, such as a line that says it is ready"
      })
    )
  },
  annotations: {
    readOnly: true,
    idempotent: true,
    volatile: true,
    paged: true,
    addresses: [],
    aliases: ["BashOutput"]
  },
  execute: Effect.fnUntraced(function* ({ id: name, offset, until, wait }) {
    const table = yield* tableOfCall
    return renderWindow(yield* table.read(name, { offset, wait, until }), until)
  })
})

const sendTool = Tool.make("send_input", {
  description: "Writes to the input of a process in the background: a line, unless you say otherwise.",
  parameters: {
    id,
    text: text("What is written"),
    newline: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Whether a line end follows; true if left out" })
    ),
    close: Schema.optionalKey(
      Schema.Boolean.annotate({
        description: "Whether the input ends with it, as a program sees it that reads to the end"
      })
    )
  },
  annotations: { destructive: true, openWorld: true, volatile: true, runsCommands: true },
  execute: Effect.fnUntraced(function* ({ close = false, id: name, newline = true, text: input }) {
    const table = yield* tableOfCall
    yield* table.send(name, newline ? `${input}\n` : input, close)
    return `Sent to ${name}.`
  })
})

const killTool = Tool.make("kill_process", {
  description: "Ends a process in the background, and all that it started.",
  parameters: { id },
  annotations: { destructive: false, idempotent: true, openWorld: false, aliases: ["KillShell", "KillBash"] },
  execute: Effect.fnUntraced(function* ({ id: name }) {
    const { end } = yield* Effect.flatMap(tableOfCall, (table) => table.kill(name))
    return `${name}: ${describeEnd(end)}.`
  })
})

/** The tools beside `execute`. */
export const processTools: ReadonlyArray<Tool.Tool<Sandbox | ToolContext>> = [readTool, sendTool, killTool]
