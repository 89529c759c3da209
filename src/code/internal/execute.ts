/** Runs the script of one call, over the tools and agents of its run. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ToolDefinition } from "../../core/ChatModel.ts"
import type { Json } from "../../core/Json.ts"
import * as Tool from "../../core/Tool.ts"
import { ToolContext } from "../../core/ToolContext.ts"
import * as ToolError from "../../core/ToolError.ts"
import { cut } from "../../support/text/text.ts"
import type { ScriptCall, Limits, ScriptError, ScriptLine } from "../Scripts.ts"
import type { AnyAgent } from "./agents.ts"
import { agentTool, answerCall, findDefinition, nameOf, type World } from "./answers.ts"
import * as Continued from "./continued.ts"
import { type Door, runScript } from "./host.ts"
import { makePrinted, print, progressOf, shorten, textOf } from "./outputs.ts"
import { fromOutcome, makeKeys, outcomeOf } from "./review/plan.ts"
import { runReviewed } from "./review/review.ts"
import { ownStack } from "./said.ts"
import { type makeCatalogue, withoutFence } from "./setup.ts"
import * as Values from "./values.ts"

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
  /** How long stored values last. */
  readonly store: Values.Lasting
  /** True for a script that another script can continue, if it fails. */
  readonly canContinue: boolean
  /** The id of the failed script that this one continues. */
  readonly continues?: string | undefined
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

/** The end of a script that failed, for the model. */
interface Failure {
  readonly error: ScriptError | ToolError.ToolError
  readonly printed: string
  /** The calls that were done and change something. */
  readonly calls: ReadonlyArray<string>
  /** The id by which another script continues this one. */
  readonly id: string | undefined
}

/** Tells the model of a failure, and of the calls before it: a corrected script must not repeat them. */
const failureOf = ({ calls, error, id, printed }: Failure) => {
  const { message, reason } = error
  const stack = ToolError.isToolError(error) ? "" : ownStack(error.stack)
  const lines = [
    ToolError.isToolError(error) ? message : `The script failed (${reason}): ${message}`,
    ...(stack === "" ? [] : [stack]),
    ...(calls.length === 0
      ? []
      : [
          `These calls of it were done${id === undefined ? ". Don't do them again" : ""}:`,
          ...calls.slice(0, mostDone).map((call) => `- ${call}`),
          ...(calls.length > mostDone ? [`- and ${calls.length - mostDone} more`] : [])
        ]),
    ...(id === undefined
      ? []
      : [
          `Give the whole corrected script with "continues": "${id}": calls of it that were done get their results, and are not made again.`
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
  const { agents, args, canContinue, catalogueOf, continues, limits, review, source, store } = call
  const { calls = 256, output = defaultOutput } = limits
  const context = yield* ToolContext
  const all = toolsOf(call, context.run.offered)
  const printed = makePrinted()
  const doneCalls: Array<string> = []
  const slots = Semaphore.makeUnsafe(agentsAtOnce)
  const askCounts = new Map<string, number>()
  const values = Values.make(context, store)
  const makeWorld = (): World => ({
    context,
    tools: all,
    catalogue: catalogueOf(all),
    agents,
    slots,
    calls,
    values,
    made: 0,
    askCounts
  })
  const world = makeWorld()
  const key = `${context.threadId ?? context.runId} ${context.callId}`
  // Two sub-agents of one thread may have calls of one id.
  const file = `${context.runId} ${context.callId}`
  const script = yield* Continued.open(context, Continued.failedSlot, key, continues)
  const { now, outcomes, seed } = script
  let count = 0
  const onDone = ({ given, kind, name }: ScriptCall): void => {
    if (kind !== "tool" || findDefinition(world, name)?.annotations.readOnly === true) return
    doneCalls.push(`${name}(${cut(JSON.stringify(given), 200)})`)
  }
  const tell = (message: ScriptLine): Effect.Effect<void> => {
    if (message.kind === "text") print(printed, message.text)
    return count++ < mostTold ? context.emit(progressOf(message)) : Effect.void
  }
  const keyOf = makeKeys()
  const door: Door<unknown> = {
    answer: (asked) => {
      const place = keyOf(asked, nameOf(world, asked))
      const before = outcomes.get(place)
      if (before !== undefined) return fromOutcome(before)
      const answer = Effect.tap(answerCall(world, asked), () => Effect.sync(() => onDone(asked)))
      return Effect.flatMap(outcomeOf(answer), (outcome) => {
        outcomes.set(place, outcome)
        return fromOutcome(outcome)
      })
    },
    tell,
    working: context.working
  }
  const program = {
    source: withoutFence(source),
    args,
    seed,
    now,
    tools: all.map((tool) => tool.name),
    limits: { ...limits, calls }
  }
  const work: Effect.Effect<Json, ScriptError | ToolError.ToolError, unknown> = review
    ? runReviewed({
        name: "script",
        program,
        makeWorld,
        outcomes,
        answer: answerCall,
        working: context.working,
        tell,
        onDone
      })
    : runScript(program, door)
  const value = yield* Effect.catch(work, (error) =>
    Effect.gen(function* () {
      const isKept = canContinue && (yield* Continued.keepFailed(context.state, Continued.failedSlot, script))
      const text = yield* shorten(textOf(printed, undefined), output, file)
      return yield* failureOf({ error, printed: text, calls: doneCalls, id: isKept ? script.id : undefined })
    })
  )
  if (continues !== undefined) yield* Continued.forget(context.state, Continued.failedSlot, script)
  return yield* shorten(textOf(printed, value), output, file)
})
