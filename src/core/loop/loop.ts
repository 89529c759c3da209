/**
 * The loop of an agent: round after round, until there is an answer or a reason to stop. Read it from top to bottom.
 *
 * A round is one turn of the model and its consequence: tool calls, or an answer. It leads to the next
 * round, or out of the loop, if need be by one last turn without tools. Nothing in a round goes over the whole history.
 */
import * as Effect from "effect/Effect"
import { defined } from "../../support/json/defined.ts"
import type { Request } from "../Approval.ts"
import type { ModelRequest } from "../ChatModel.ts"
import * as Content from "../Content.ts"
import * as Message from "../Message.ts"
import type { Directive } from "../Middleware.ts"
import type { Run } from "../Run.ts"
import type { StopReason } from "../StopReason.ts"
import { finalAnswer as finalAnswerName } from "../Tool.ts"
import { make as say, type ToolOutput } from "../ToolOutput.ts"
import { zero } from "../Usage.ts"
import { didWork, type LastRound, notAgain, signatureOf } from "./calls/repeats.ts"
import * as Tools from "./calls/tools.ts"
import { refresh } from "./dynamicTools.ts"
import type { Live } from "./live.ts"
import * as Output from "./output.ts"
import { record, settle, save } from "./records/journal.ts"
import { emit, report, settleReaders } from "./report.ts"
import { ask, withAccepted } from "./turn.ts"
import { countWork } from "./work.ts"

/** The end of a run that was neither interrupted nor failed. */
export interface RunEnd {
  readonly stopReason: StopReason
  readonly text: string
  readonly output: unknown
  readonly pending: ReadonlyArray<Request>
}

/** The step after a round: to the next one, to a last turn without tools, or to the end. */
type Step =
  | { readonly _tag: "Next" }
  | { readonly _tag: "Final"; readonly stopReason: StopReason }
  | { readonly _tag: "End"; readonly ending: RunEnd }

interface Memory {
  /** Rounds since the last input. */
  round: number
  /** Messages of middleware before rounds, since the last input. */
  messages: number
  /** The number of wrong answers that were sent back, and of rounds in a row that repeated the last. */
  repairs: number
  repeats: number
  last: LastRound
}

/**
 * Runs the rounds of a run. `first` is a hook's directive instead of the first round. While it waits for the model, it
 * holds nothing but `turned`.
 */
export const loop = (live: Live, first: Directive | undefined): Effect.Effect<RunEnd, unknown, unknown> => {
  const memory: Memory = { round: 0, messages: 0, repairs: 0, repeats: 0, last: nothing }
  const goOn = (step: Step): Effect.Effect<RunEnd, unknown, unknown> => {
    if (step._tag === "Next") return round
    return step._tag === "End" ? Effect.succeed(step.ending) : finalAnswer(live, step.stopReason)
  }
  const turned = Effect.flatMap(
    Effect.suspend(() => turn(live, memory)),
    (message) => Effect.flatMap(afterTurn(live, memory, message), goOn)
  )
  const round = Effect.suspend(() =>
    Effect.flatMap(beforeTurn(live, memory), (instead) => (instead === undefined ? turned : goOn(instead)))
  )
  return Effect.flatMap(enter(live, first, memory), goOn)
}

/** Follows a directive instead of the first round, then resumes an open round. */
const enter = Effect.fnUntraced(function* (live: Live, first: Directive | undefined, memory: Memory) {
  const step: Step = first === undefined ? next : yield* follow(live, first)
  return step._tag === "Next" && live.round.resumed !== undefined
    ? yield* resumedRound(live, live.round.resumed.turn, memory)
    : step
})

/** The part of a round before the turn: steering messages and hooks. Gives a step if there is to be no turn. */
const beforeTurn = Effect.fnUntraced(function* (live: Live, memory: Memory) {
  const { beforeModel, definition } = live.compiled
  if (live.control !== undefined && live.control.steering.length > 0) {
    yield* admit(live, "steer")
    memory.last = nothing
  }
  if (memory.round >= definition.maxRounds) return final("maxRounds")
  memory.round++
  const instead = beforeModel.length === 0 ? undefined : yield* directed(beforeModel, live.run)
  if (instead !== undefined) {
    if (instead._tag === "Continue") {
      memory.last = nothing
      // A message is no round. A middleware that always has one more ends all the same.
      if (memory.messages < definition.maxRounds) memory.round--
      memory.messages++
    }
    return yield* follow(live, instead)
  }
  yield* startRound(live)
  countWork(live, "rounds", 1)
  yield* save(live)
  return undefined
})

const turn = (live: Live, memory: Memory): ReturnType<typeof ask> => {
  const request = requestOf(live)
  if (memory.repairs > 0) return ask(live, { ...request, ...Output.repairRequest(live) })
  // A crash can only have cut off the first turn of a run.
  return memory.round > 1 ? ask(live, request) : Effect.flatMap(withAccepted(live, request), (one) => ask(live, one))
}

/** The part of a round after the turn: records the turn, and runs its calls or takes its answer. */
const afterTurn = Effect.fnUntraced(function* (live: Live, memory: Memory, message: Message.AiMessage) {
  const { afterModel } = live.compiled
  Tools.recordTurn(live, message)
  yield* Tools.settleTurn(live, message)
  const after = afterModel.length === 0 ? undefined : yield* directed(afterModel, live.run, message)
  let step: Step
  if (after === undefined) {
    step = callCount(message) > 0 ? yield* called(live, message, memory) : yield* answered(live, message, memory)
  } else {
    // The calls are answered first: a message of a hook comes after the answers.
    const why = after._tag === "Continue" ? "read what follows first." : "the run was stopped before it."
    yield* Tools.decline(live, () => say(`Not executed: ${why}`, { isError: true }))
    step = yield* follow(live, after)
  }
  yield* endRound(live, message)
  return step
})

/** Resumes the round of a checkpoint: its turn is recorded, its calls may be open. */
const resumedRound = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage, memory: Memory) {
  let step: Step = next
  if (callCount(message) === 0) step = yield* answered(live, message, memory)
  else if (live.round.batch.length > 0) {
    yield* startRound(live, false)
    step = yield* called(live, message, memory)
    yield* endRound(live, message)
  }
  live.round.resumed = undefined
  return step
})

/** A turn that called tools: runs them, unless the turn was cut, gives the answer, or repeats the one before. */
const called = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage, memory: Memory) {
  const { output, stopWhen } = live.compiled.definition
  if (isRefusal(message)) {
    yield* Tools.decline(live, () => say("Not executed: the turn was refused.", { isError: true }))
    return yield* answered(live, { ...message, toolCalls: [], malformedToolCalls: [] }, memory)
  }
  if (message.stopReason !== "toolCalls" && message.stopReason !== "stop") {
    const text = cut[message.stopReason] ?? "Not executed: your turn was not complete."
    yield* Tools.decline(live, () => say(text, { isError: true }))
    return next
  }
  if (output !== undefined && message.toolCalls.some((call) => call.name === finalAnswerName)) {
    const answer = yield* Output.readAnswer(live, output, message)
    if (answer._tag === "Answer") {
      yield* Output.answerCalls(live, undefined)
      return yield* more(live, memory, stop("completed", answer.text, answer.output))
    }
    if (answer._tag === "Wrong") {
      memory.repairs = yield* Output.repair(live, message, answer, memory.repairs)
      return next
    }
  }
  const signature = signatureOf(message.toolCalls)
  if (signature !== "" && signature === memory.last.signature) {
    const answers = notAgain(live, message, memory.last)
    if (answers.size === message.toolCalls.length) return yield* repeated(live, memory, answers)
    for (const call of live.round.batch) {
      const answer = answers.get(call.id)
      if (answer !== undefined) call.outcome ??= { output: answer }
    }
  }
  const { direct, failed, mayPass, pending } = yield* Tools.round(live, message)
  if (pending.length > 0) return suspend(Message.text(message), pending)
  memory.repeats = 0
  memory.last = { signature, calls: message.toolCalls, failed, mayPass }
  if (direct !== undefined && output === undefined) {
    return yield* more(live, memory, stop("completed", Content.toText(direct.content)))
  }
  for (const condition of stopWhen) {
    if (yield* condition(live.run)) return endOrFinal(live, "stopCondition", lastText(live))
  }
  return next
})

/** A round of which nothing is run again. The model is told so once; after that it must answer. */
const repeated = Effect.fnUntraced(function* (live: Live, memory: Memory, answers: ReadonlyMap<string, ToolOutput>) {
  memory.repeats++
  yield* Tools.decline(live, ({ id }) => answers.get(id) ?? didWork)
  yield* emit(live, {
    _tag: "Warning",
    code: "duplicate-round",
    message: "The model repeated its last round of calls."
  })
  return memory.repeats > 1 ? final("duplicateRounds") : next
})

/** A turn without calls: the answer, unless there is a follow-up or it does not fit the output schema. */
const answered = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage, memory: Memory) {
  if (message.stopReason === "pause") return next
  const { output } = live.compiled.definition
  const text = Message.text(message)
  if (isRefusal(message)) {
    if (output !== undefined) return yield* Output.noOutput(live, text, "the model refused to answer")
    return yield* more(live, memory, stop("refused", text))
  }
  if (output !== undefined) {
    const answer = yield* Output.readAnswer(live, output, message)
    if (answer._tag === "Answer") return yield* more(live, memory, stop("completed", answer.text, answer.output))
    if (answer._tag === "Wrong") {
      memory.repairs = yield* Output.repair(live, message, answer, memory.repairs)
      return next
    }
  }
  return yield* more(live, memory, stop(message.stopReason === "length" ? "length" : "completed", text))
})

/** The end of a run, unless a steering message or a follow-up arrived meanwhile. */
const more = Effect.fnUntraced(function* (live: Live, memory: Memory, end: Step) {
  const steered = live.control !== undefined && live.control.steering.length > 0
  const follows = steered || (yield* admit(live, "followUp"))
  if (!follows) return end
  memory.round = 0
  memory.messages = 0
  memory.repairs = 0
  memory.last = nothing
  return next
})

/** Appends messages from outside: all steering messages, or one follow-up. */
const admit = Effect.fnUntraced(function* (live: Live, kind: "steer" | "followUp") {
  const queue = kind === "steer" ? live.control?.steering : live.control?.followUps
  const messages = queue?.slice(0, kind === "steer" ? queue.length : 1) ?? []
  for (const message of messages) {
    yield* emit(live, { _tag: "Steered", messageId: message.id, kind })
    // Until now it is undelivered, if the run is ended while readers are waited for.
    queue?.shift()
    record(live, message)
    yield* settle(live)
  }
  return messages.length > 0
})

/** Runs hooks in order, until a hook returns a directive. */
const directed = Effect.fnUntraced(function* <Rest extends ReadonlyArray<unknown>>(
  hooks: ReadonlyArray<(run: Run, ...rest: Rest) => Effect.Effect<Directive | void, unknown, unknown>>,
  run: Run,
  ...rest: Rest
) {
  for (const hook of hooks) {
    const directive = yield* hook(run, ...rest)
    if (directive !== undefined) return directive
  }
  return undefined
})

const follow = Effect.fnUntraced(function* (live: Live, directive: Directive) {
  if (directive._tag === "ForceFinalAnswer") return final(directive.stopReason)
  if (directive._tag === "Continue") {
    record(live, directive.message)
    yield* settle(live)
    return next
  }
  if (directive.answer === undefined) return endOrFinal(live, directive.stopReason, lastText(live))
  return yield* answeredFor(live, directive.stopReason, directive.answer)
})

/** An answer that a middleware gave in the model's place: of an agent with an `output` schema, it must fit. */
const answeredFor = Effect.fnUntraced(function* (live: Live, stopReason: StopReason, answer: Message.AiMessage) {
  record(live, answer)
  yield* settle(live)
  const { output } = live.compiled.definition
  if (output === undefined) return stop(stopReason, Message.text(answer))
  const result = yield* Output.readAnswer(live, output, answer)
  if (result._tag === "Answer") return stop(stopReason, result.text, result.output)
  const text = Message.text(answer)
  // A budget that ends an agent before its first turn says why. That is no answer that could fit.
  if (stopReason.startsWith("budget:")) return yield* Output.noAnswer(live, stopReason, text)
  return yield* Output.noOutput(live, text, "a middleware answered with something else")
})

/** The last turn: has the model answer without tools, through the same door as every turn. */
const finalAnswer = Effect.fnUntraced(function* (live: Live, stopReason: StopReason) {
  const { output } = live.compiled.definition
  for (let repairs = 0; ;) {
    yield* startRound(live)
    yield* save(live)
    const message = yield* ask(live, { ...requestOf(live), ...Output.finalRequest(live) })
    Tools.recordTurn(live, message)
    yield* Tools.settleTurn(live, message)
    if (output === undefined) {
      yield* Tools.decline(live, () => say("Not executed: tools are off now.", { isError: true }))
      yield* endRound(live, message)
      const text = lastText(live) || "The model gave no answer."
      return { stopReason, text, output: text, pending: [] } satisfies RunEnd
    }
    const answer = yield* Output.readAnswer(live, output, message)
    if (answer._tag === "Answer") {
      yield* Output.answerCalls(live, undefined)
      yield* endRound(live, message)
      return { stopReason, text: answer.text, output: answer.output, pending: [] } satisfies RunEnd
    }
    const wrong =
      answer._tag === "Wrong"
        ? answer
        : { _tag: "Wrong" as const, problem: "- there is no answer", raw: Message.text(message) }
    repairs = yield* Output.repair(live, message, wrong, repairs)
    yield* endRound(live, message)
  }
})

/** Begins a round. `hasTurn` is `false` for a round that asks the model nothing. */
export const startRound = (live: Live, hasTurn = true): Effect.Effect<void, unknown, unknown> =>
  live.compiled.dynamicTools.length === 0
    ? countRound(live, hasTurn)
    : Effect.andThen(refresh(live), countRound(live, hasTurn))

const countRound = (live: Live, hasTurn: boolean): Effect.Effect<void> =>
  Effect.suspend(() => {
    live.run.round++
    live.run.offered = live.turn.tools
    // Readers name the text of the turn by the message that it becomes.
    const messageId = hasTurn && live.origin.hub.isWatched ? live.makeId() : undefined
    live.turn.messageId = messageId
    report(live, { _tag: "RoundStarted", round: live.run.round, ...defined({ messageId }) })
    return settleReaders(live)
  })

export const endRound = (live: Live, { stopReason }: Pick<Message.AiMessage, "stopReason">): Effect.Effect<void> =>
  Effect.suspend(() => {
    const usage = live.turn.usageSinceRound
    live.turn.usageSinceRound = zero
    report(live, { _tag: "RoundCompleted", round: live.run.round, stopReason, usage })
    return settleReaders(live)
  })

const requestOf = (live: Live): ModelRequest => ({
  messages: live.run.messages,
  systemPrompt: live.turn.systemPrompt,
  tools: live.turn.tools,
  toolChoice: "auto",
  outputSchema: Output.requestSchema(live),
  parameters: live.compiled.definition.parameters,
  cacheHints: [],
  purpose: "turn"
})

const callCount = (message: Message.AiMessage): number => message.toolCalls.length + message.malformedToolCalls.length

const isRefusal = ({ stopReason }: Message.AiMessage): boolean =>
  stopReason === "refusal" || stopReason === "contentFilter"

const cut: { readonly [Reason in Message.TurnStop]?: string } = {
  length: "Not executed: your turn was cut by the output limit. Call again, with less in one turn.",
  interrupted: "Not executed: your turn was interrupted."
}

/** Nothing to repeat: no round was executed, or the model was given something new since. */
const nothing: LastRound = { signature: "", calls: [], failed: Tools.none, mayPass: Tools.none }

const next: Step = { _tag: "Next" }

const final = (stopReason: StopReason): Step => ({ _tag: "Final", stopReason })

const stop = (stopReason: StopReason, text: string, output: unknown = text): Step => ({
  _tag: "End",
  ending: { stopReason, text, output, pending: [] }
})

const suspend = (text: string, pending: ReadonlyArray<Request>): Step => ({
  _tag: "End",
  ending: { stopReason: "suspended", text, output: undefined, pending }
})

/** An end without an answer of the model's: an agent with an output schema is asked for one first. */
const endOrFinal = (live: Live, stopReason: StopReason, text: string): Step =>
  live.compiled.definition.output === undefined ? stop(stopReason, text) : final(stopReason)

/** The last text that the model gave in this run. */
const lastText = (live: Live): string => {
  for (let index = live.run.messages.length - 1; index >= live.firstNew; index--) {
    const message = live.run.messages[index]
    if (message?.role !== "ai") continue
    const text = Message.text(message)
    if (text !== "") return text
  }
  return ""
}
