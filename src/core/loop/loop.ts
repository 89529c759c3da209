import * as Effect from "effect/Effect"
import type { Request } from "../Approval.ts"
import type { ModelRequest } from "../ChatModel.ts"
import * as Content from "../Content.ts"
import { canonical } from "../Json.ts"
import * as Message from "../Message.ts"
import type { Directive } from "../Middleware.ts"
import type { StopReason } from "../StopReason.ts"
import { finalAnswer as finalAnswerName } from "../Tool.ts"
import type { ToolCall } from "../ToolCall.ts"
import { make as say, type ToolOutput } from "../ToolOutput.ts"
import { zero } from "../Usage.ts"
import { append, emit, type Live, save } from "./live.ts"
import * as Output from "./output.ts"
import * as Tools from "./tools.ts"
import { ask } from "./turn.ts"

/** How a run ended by itself. */
export interface Ending {
  readonly stopReason: StopReason
  readonly text: string
  readonly output: unknown
  readonly pending: ReadonlyArray<Request>
}

/** What the loop remembers from round to round. */
interface Memory {
  /** Rounds since the last input. */
  round: number
  repairs: number
  repeats: number
  /** The calls of the last round that was executed: all in one, one by one, and the ids of those that failed. */
  asked: string
  calls: ReadonlyArray<ToolCall>
  failed: ReadonlySet<string>
  /** Those of them that may go better the next time. */
  mayPass: ReadonlySet<string>
}

/** Where a run that ends is led: to its end, or to an answer that has to be asked for first. */
type Out =
  | { readonly _tag: "Final"; readonly stopReason: StopReason }
  | { readonly _tag: "End"; readonly ending: Ending }

/** Where a round leads: on to the next, or out. */
type Step = { readonly _tag: "Next" } | Out

const next: Step = { _tag: "Next" }

const stop = (stopReason: StopReason, text: string, output: unknown = text): Out => ({
  _tag: "End",
  ending: { stopReason, text, output, pending: [] }
})

const suspend = (text: string, pending: ReadonlyArray<Request>): Out => ({
  _tag: "End",
  ending: { stopReason: "suspended", text, output: undefined, pending }
})

/** The last thing that the model said in this run. */
const lastText = (live: Live): string => {
  for (let index = live.messages.length - 1; index >= live.firstNew; index--) {
    const message = live.messages[index]
    if (message?.role !== "ai") continue
    const text = Message.text(message)
    if (text !== "") return text
  }
  return ""
}

/** An end without an answer of the model's: an agent that promises an output in a schema is asked for it first. */
const endOrFinal = (live: Live, stopReason: StopReason, text: string): Out =>
  live.compiled.definition.output === undefined ? stop(stopReason, text) : { _tag: "Final", stopReason }

/** An answer that a middleware gave in the model's place: of an agent with an `output` schema, it must fit. */
const answeredFor = Effect.fnUntraced(function* (live: Live, stopReason: StopReason, answer: Message.AiMessage) {
  yield* append(live, answer)
  const { output } = live.compiled.definition
  if (output === undefined) return stop(stopReason, Message.text(answer))
  const read = Output.read(live, output, answer)
  if (read._tag === "Answer") return stop(stopReason, read.text, read.output)
  return yield* Output.noOutput(live, Message.text(answer), "a middleware answered with something else")
})

/** Where a hook leads. */
const follow = Effect.fnUntraced(function* (live: Live, directive: Directive) {
  if (directive._tag === "ForceFinalAnswer") return { _tag: "Final", stopReason: directive.stopReason } satisfies Step
  if (directive._tag === "GoOn") {
    yield* append(live, directive.message)
    return next
  }
  if (directive.answer === undefined) return endOrFinal(live, directive.stopReason, lastText(live))
  return yield* answeredFor(live, directive.stopReason, directive.answer)
})

/** Asks the hooks of one kind, in their order, until one does not let the run go on. */
const directed = Effect.fnUntraced(function* (
  hooks: ReadonlyArray<() => Effect.Effect<Directive | void, unknown, unknown>>
) {
  for (const hook of hooks) {
    const directive = yield* hook()
    if (directive !== undefined) return directive
  }
  return undefined
})

const startRound = (live: Live): Effect.Effect<void> => {
  live.round++
  live.offered = live.tools
  return emit(live, { _tag: "RoundStarted", round: live.round })
}

const endRound = (live: Live, message: Message.AiMessage): Effect.Effect<void> => {
  const usage = live.usageSinceRound
  live.usageSinceRound = zero
  return emit(live, { _tag: "RoundCompleted", round: live.round, stopReason: message.stopReason, usage })
}

const requestOf = (live: Live): ModelRequest => ({
  messages: live.messages,
  systemPrompt: live.systemPrompt,
  tools: live.tools,
  toolChoice: "auto",
  parameters: live.compiled.definition.parameters,
  cacheHints: [],
  purpose: "turn",
  ...Output.requestFields(live)
})

const callCount = (message: Message.AiMessage): number => message.toolCalls.length + message.malformedToolCalls.length

/** The answer of a run whose model said nothing at all, even when it was asked for its last word. */
const noAnswer = "The model gave no answer."

/** Has the model answer without tools: through the same door as every turn. */
const finalAnswer = Effect.fnUntraced(function* (live: Live, stopReason: StopReason) {
  const { output } = live.compiled.definition
  for (let repairs = 0; ;) {
    yield* startRound(live)
    yield* save(live)
    const message = yield* ask(live, { ...requestOf(live), ...Output.finalRequest(live) })
    yield* Tools.appendTurn(live, message)
    if (output === undefined) {
      yield* Tools.decline(live, () => say("Not executed: tools are off now.", { isError: true }))
      yield* endRound(live, message)
      const text = lastText(live) || noAnswer
      return { stopReason, text, output: text, pending: [] } satisfies Ending
    }
    const answer = Output.read(live, output, message)
    if (answer._tag === "Answer") {
      yield* Output.answerCalls(live, undefined)
      yield* endRound(live, message)
      return { stopReason, text: answer.text, output: answer.output, pending: [] } satisfies Ending
    }
    const wrong =
      answer._tag === "Wrong"
        ? answer
        : { _tag: "Wrong" as const, problem: "- there is no answer", raw: Message.text(message) }
    repairs = yield* Output.repair(live, message, wrong, repairs)
    yield* endRound(live, message)
  }
})

/** Lets in what came from outside, where it can't part a call from its result. */
const admit = Effect.fnUntraced(function* (live: Live, kind: "steer" | "followUp") {
  const queue = kind === "steer" ? live.control?.steering : live.control?.followUps
  const messages = queue?.slice(0, kind === "steer" ? queue.length : 1) ?? []
  for (const message of messages) {
    yield* emit(live, { _tag: "Steered", messageId: message.id, kind })
    // Until now it is undelivered, if the run is ended while readers are waited for.
    queue?.shift()
    yield* append(live, message)
  }
  return messages.length > 0
})

/** A turn that called nothing: the answer, unless somebody has more to say or it is not what was promised. */
const answered = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage, memory: Memory) {
  if (message.stopReason === "pause") return next
  const { output } = live.compiled.definition
  const text = Message.text(message)
  const refused = message.stopReason === "refusal" || message.stopReason === "contentFilter"
  if (output !== undefined && !refused) {
    const answer = Output.read(live, output, message)
    if (answer._tag === "Answer") return yield* more(live, memory, stop("completed", answer.text, answer.output))
    if (answer._tag === "Wrong") {
      memory.repairs = yield* Output.repair(live, message, answer, memory.repairs)
      return next
    }
  }
  if (refused && output !== undefined) return yield* Output.noOutput(live, text, "the model refused to answer")
  return yield* more(
    live,
    memory,
    stop(refused ? "refused" : message.stopReason === "length" ? "length" : "completed", text)
  )
})

/** What was said meanwhile, or is to follow, keeps a run going that would end. */
const more = Effect.fnUntraced(function* (live: Live, memory: Memory, end: Step) {
  const steered = live.control !== undefined && live.control.steering.length > 0
  const follows = steered || (yield* admit(live, "followUp"))
  if (!follows) return end
  memory.round = 0
  memory.repairs = 0
  memory.asked = ""
  return next
})

const cut: { readonly [Reason in Message.TurnStop]?: string } = {
  length: "Not executed: your turn was cut by the output limit. Call again, with less in one turn.",
  interrupted: "Not executed: your turn was interrupted."
}

const signature = (call: ToolCall): string => `${call.name} ${canonical(call.arguments)}`

/** What a round calls, in whatever order; empty for one that calls nothing. */
const signatureOf = (calls: ReadonlyArray<ToolCall>): string =>
  calls.length === 1 && calls[0] !== undefined ? signature(calls[0]) : calls.map(signature).sort().join("\n")

/** The calls of a round that is the same as the last which are not made again, each with what the model is told. */
const notAgain = (live: Live, message: Message.AiMessage, memory: Memory): ReadonlyMap<string, ToolOutput> => {
  const signaturesOf = (ids: ReadonlySet<string>) =>
    new Set(memory.calls.filter((call) => ids.has(call.id)).map(signature))
  const failed = signaturesOf(memory.failed)
  const mayPass = signaturesOf(memory.mayPass)
  return new Map(
    message.toolCalls.flatMap((call) => {
      const asked = signature(call)
      if (live.compiled.tools.get(call.name)?.annotations.volatile === true || mayPass.has(asked)) return []
      return [[call.id, failed.has(asked) ? didFail : didWork]]
    })
  )
}

const didFail = say(
  "Not executed again: you made the same call in the round before, and it failed; the error is above. Change the arguments, use another tool, or answer without it.",
  { isError: true }
)

const didWork = say(
  "Not executed again: you made the same call in the round before, and its result is above. Use that result, make another call, or answer."
)

/** A round of which nothing is run again. Once the model is told what happened; then it must answer. */
const repeated = Effect.fnUntraced(function* (live: Live, memory: Memory, answers: ReadonlyMap<string, ToolOutput>) {
  memory.repeats++
  yield* Tools.decline(live, ({ id }) => answers.get(id) ?? didWork)
  yield* emit(live, {
    _tag: "Warning",
    code: "duplicate-round",
    message: "The model repeated its last round of calls."
  })
  return memory.repeats > 1 ? ({ _tag: "Final", stopReason: "duplicateRounds" } satisfies Step) : next
})

const none: ReadonlyMap<string, ToolOutput> = new Map()

/** A turn that called tools. */
const called = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage, memory: Memory) {
  const { output, stopWhen } = live.compiled.definition
  if (message.stopReason === "refusal" || message.stopReason === "contentFilter") {
    yield* Tools.decline(live, () => say("Not executed: the turn was refused.", { isError: true }))
    return yield* answered(live, { ...message, toolCalls: [], malformedToolCalls: [] }, memory)
  }
  if (message.stopReason !== "toolCalls" && message.stopReason !== "stop") {
    const text = cut[message.stopReason] ?? "Not executed: your turn was not complete."
    yield* Tools.decline(live, () => say(text, { isError: true }))
    return next
  }
  if (output !== undefined && message.toolCalls.some((call) => call.name === finalAnswerName)) {
    const answer = Output.read(live, output, message)
    if (answer._tag === "Answer") {
      yield* Output.answerCalls(live, undefined)
      return yield* more(live, memory, stop("completed", answer.text, answer.output))
    }
    if (answer._tag === "Wrong") {
      memory.repairs = yield* Output.repair(live, message, answer, memory.repairs)
      return next
    }
  }
  // A crash from here on must find the calls.
  yield* save(live)
  const asked = signatureOf(message.toolCalls)
  const isRepeat = asked !== "" && asked === memory.asked
  const answers = isRepeat ? notAgain(live, message, memory) : none
  if (isRepeat && answers.size === message.toolCalls.length) return yield* repeated(live, memory, answers)
  for (const call of live.batch) {
    const answer = answers.get(call.id)
    if (answer !== undefined) call.outcome ??= { output: answer }
  }
  const { direct, failed, mayPass, pending } = yield* Tools.round(live, message)
  if (pending.length > 0) return suspend(Message.text(message), pending)
  memory.asked = asked
  memory.calls = message.toolCalls
  memory.repeats = 0
  memory.failed = failed
  memory.mayPass = mayPass
  if (direct !== undefined && output === undefined) {
    return yield* more(live, memory, stop("completed", directText(direct)))
  }
  for (const condition of stopWhen) {
    if (yield* condition(live)) return endOrFinal(live, "stopCondition", lastText(live))
  }
  return next
})

const directText = (output: ToolOutput): string => Content.toText(output.content)

/** The round that a run takes up from a checkpoint: the turn is there, what it asks for may not be done. */
const takeUp = Effect.fnUntraced(function* (live: Live, message: Message.AiMessage, memory: Memory) {
  if (callCount(message) === 0) return yield* answered(live, message, memory)
  if (live.batch.length === 0) return next
  yield* startRound(live)
  const step = yield* called(live, message, memory)
  yield* endRound(live, message)
  return step
})

/** One round: the model's turn, and what it asks for. */
const round = Effect.fnUntraced(function* (live: Live, memory: Memory) {
  yield* startRound(live)
  yield* save(live)
  const message = yield* ask(live, requestOf(live))
  yield* Tools.appendTurn(live, message)
  const { afterModel } = live.compiled
  const directive =
    afterModel.length === 0 ? undefined : yield* directed(afterModel.map((hook) => () => hook(live, message)))
  let step: Step
  if (directive === undefined) {
    step = callCount(message) > 0 ? yield* called(live, message, memory) : yield* answered(live, message, memory)
  } else {
    // Its calls are answered first: what a hook says in the model's place comes after them.
    const why = directive._tag === "GoOn" ? "read what follows first." : "the run was stopped before it."
    yield* Tools.decline(live, () => say(`Not executed: ${why}`, { isError: true }))
    step = yield* follow(live, directive)
  }
  yield* endRound(live, message)
  return step
})

/**
 * The loop: round after round until there is an answer or a reason to stop, which a hook may have had before the first.
 * Nothing in a round goes over the history.
 */
export const loop = Effect.fnUntraced(function* (live: Live, first: Directive | undefined) {
  const { compiled } = live
  if (first !== undefined) {
    const step = yield* follow(live, first)
    if (step._tag === "End") return step.ending
    if (step._tag === "Final") return yield* finalAnswer(live, step.stopReason)
  }
  const { maxRounds } = compiled.definition
  const memory: Memory = {
    round: 0,
    repairs: 0,
    repeats: 0,
    asked: "",
    calls: [],
    failed: new Set(),
    mayPass: new Set()
  }
  const { resumed } = live
  if (resumed !== undefined) {
    const step: Step = yield* takeUp(live, resumed, memory)
    live.resumed = undefined
    live.left = new Map()
    if (step._tag === "End") return step.ending
    if (step._tag === "Final") return yield* finalAnswer(live, step.stopReason)
  }
  const before = compiled.beforeModel.map((hook) => () => hook(live))
  for (;;) {
    if (live.control !== undefined && live.control.steering.length > 0) {
      yield* admit(live, "steer")
      // Somebody said something new: doing the same again may be what they want.
      memory.asked = ""
    }
    if (memory.round >= maxRounds) return yield* finalAnswer(live, "maxRounds")
    memory.round++
    const instead = before.length === 0 ? undefined : yield* directed(before)
    // Something new was said, as by one who steers.
    if (instead?._tag === "GoOn") memory.asked = ""
    const step: Step = instead === undefined ? yield* round(live, memory) : yield* follow(live, instead)
    if (step._tag === "End") return step.ending
    if (step._tag === "Final") return yield* finalAnswer(live, step.stopReason)
  }
})
