/** Runs the script of one call, over the tools and agents of its run. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ToolDefinition } from "../../core/ChatModel.ts"
import type { Json } from "../../core/Json.ts"
import * as Tool from "../../core/Tool.ts"
import { ToolContext } from "../../core/ToolContext.ts"
import * as ToolError from "../../core/ToolError.ts"
import { cut } from "../../support/text/text.ts"
import type { Asked, Limits, ScriptError, Told } from "../Scripts.ts"
import type { AnyAgent } from "./agents.ts"
import { agentTool, answerCall, findDefinition, type World } from "./answers.ts"
import { type Door, runScript } from "./host.ts"
import { makePrinted, print, progressOf, shorten, textOf } from "./outputs.ts"
import { runReviewed } from "./review/review.ts"
import { beginScript, type makeCatalogue, withoutFence } from "./setup.ts"

/** A script, and the part of its run that it reaches. */
interface Call {
  readonly source: string
  /** The value of `args`. */
  readonly args: Json
  /** The tools of scripts alone. */
  readonly own: ReadonlyArray<ToolDefinition>
  /** The names of the offered tools that scripts can't call. */
  readonly hidden: ReadonlyArray<string>
  readonly agents: ReadonlyArray<AnyAgent>
  readonly limits: Limits & { readonly output?: number | undefined }
  /** True for a script that a person approves as a whole. */
  readonly review: boolean
  readonly catalogueOf: ReturnType<typeof makeCatalogue>
}

/** The tools of the run that a script may call: its own, and the offered tools of the model. */
const toolsOf = ({ hidden, own }: Call, offered: ReadonlyArray<ToolDefinition>) => {
  const names = new Set([...hidden, agentTool.name, Tool.finalAnswer, ...own.map((tool) => tool.name)])
  return [...own, ...offered.filter((tool) => !names.has(tool.name))]
}

/** The most calls that are listed for a model. */
const mostDone = 20

/** The most lines of a script that people see while it runs. */
const mostTold = 500

/** The most agents of a script that run at once. The others wait. */
const agentsAtOnce = 16

/** Tells the model of a failure, and of the calls before it: a corrected script must not repeat them. */
const failureOf = (error: ScriptError | ToolError.ToolError, printed: string, calls: ReadonlyArray<string>) => {
  const { message, reason } = error
  const stack = ToolError.isToolError(error) ? "" : (error.stack ?? "")
  const lines = [
    ToolError.isToolError(error) ? message : `The script failed (${reason}): ${message}`,
    ...(stack === "" ? [] : [stack]),
    ...(calls.length === 0
      ? []
      : [
          "These calls of it were done. Don't do them again:",
          ...calls.slice(0, mostDone).map((call) => `- ${call}`),
          ...(calls.length > mostDone ? [`- and ${calls.length - mostDone} more`] : [])
        ]),
    ...(printed === "" ? [] : ["It had printed:", printed])
  ]
  const text = lines.join("\n")
  return ToolError.isToolError(error)
    ? new ToolError.ToolError({ reason: error.reason, message: text })
    : ToolError.make(text)
}

const defaultOutput = 30_000

/** Runs a script to the text that the model reads. */
export const executeScript = Effect.fnUntraced(function* (call: Call) {
  const { agents, args, catalogueOf, limits, review, source } = call
  const { calls = 256, output = defaultOutput } = limits
  const context = yield* ToolContext
  const all = toolsOf(call, context.run.offered)
  const printed = makePrinted()
  const doneCalls: Array<string> = []
  const slots = Semaphore.makeUnsafe(agentsAtOnce)
  const askCounts = new Map<string, number>()
  const makeWorld = (): World => ({
    context,
    tools: all,
    catalogue: catalogueOf(all),
    agents,
    slots,
    calls,
    made: 0,
    askCounts
  })
  const world = makeWorld()
  const key = `${context.threadId ?? context.runId} ${context.callId}`
  let count = 0
  const onDone = ({ given, kind, name }: Asked): void => {
    if (kind !== "tool" || findDefinition(world, name)?.annotations.readOnly === true) return
    doneCalls.push(`${name}(${cut(JSON.stringify(given), 200)})`)
  }
  const tell = (message: Told): Effect.Effect<void> => {
    if (message.kind === "text") print(printed, message.text)
    return count++ < mostTold ? context.emit(progressOf(message)) : Effect.void
  }
  const door: Door<unknown> = {
    answer: (asked) => Effect.tap(answerCall(world, asked), () => Effect.sync(() => onDone(asked))),
    tell,
    working: context.working
  }
  const { now, seed } = yield* beginScript(context)
  const program = {
    source: withoutFence(source),
    args,
    seed,
    now,
    tools: all.map((tool) => tool.name),
    limits: { ...limits, calls }
  }
  const work: Effect.Effect<Json, ScriptError | ToolError.ToolError, unknown> = review
    ? runReviewed({ program, makeWorld, tell, onDone })
    : runScript(program, door)
  const value = yield* Effect.catch(work, (error) =>
    Effect.flatMap(shorten(textOf(printed, undefined), output, key), (text) =>
      Effect.fail(failureOf(error, text, doneCalls))
    )
  )
  return yield* shorten(textOf(printed, value), output, key)
})
