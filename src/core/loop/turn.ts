/** The one door to the model: asks for a turn, and reports its parts as they arrive. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import { isPlain, plain, transformPull } from "../../support/effect/pulled.ts"
import { tunnel } from "../../support/effect/tunnel.ts"
import { textTokens } from "../../support/text/tokens.ts"
import {
  absent,
  incomplete,
  type ModelRequest,
  type ModelSession,
  type ToolDefinition,
  type TurnPart
} from "../ChatModel.ts"
import { type JsonObject, stringify } from "../Json.ts"
import type * as Message from "../Message.ts"
import { isModelError, type ModelError } from "../ModelError.ts"
import type { Run } from "../Run.ts"
import { isTooDeep, maxDepth } from "../schema/jsonTree.ts"
import { accepted } from "../thread/accepted.ts"
import { partial } from "../thread/parts.ts"
import type { MalformedToolCall, ToolCall } from "../ToolCall.ts"
import { make, priced, type Usage } from "../Usage.ts"
import type { CompiledAgent } from "./definition.ts"
import type { Live, OwnRun, UnfinishedTurn } from "./live.ts"
import { draftOf } from "./records/draft.ts"
import { save } from "./records/journal.ts"
import { report, reportDelta, settleReaders } from "./report.ts"
import { resolveName } from "./toolset.ts"
import { estimateRequest } from "./window.ts"
import { countUsage } from "./work.ts"

type Next = ModelSession["nextTurn"]

type Turn = Stream.Stream<TurnPart, ModelError>

/** A failure of middleware itself, neither the model's nor the end of a stream. */
const isOwn = (error: unknown): boolean => !isModelError(error) && !Cause.isDone(error)

/** The failures that an outer middleware may know, and the end of a stream; the others go by. */
const hideOwnFailures = (cause: Cause.Cause<unknown>): Effect.Effect<never, unknown> =>
  Pull.isDoneCause(cause)
    ? Effect.failCause(cause)
    : Effect.catchIf(Effect.failCause(cause), isOwn, (error) => Effect.die(tunnel(error)))

const withKnown = <A>(pull: Effect.Effect<A, unknown, unknown>): Effect.Effect<A, unknown, unknown> =>
  Effect.catchCause(pull, hideOwnFailures)

/** Narrows a stream to the failures that outer middleware may see: those of the model. */
const hide = (turn: Stream.Stream<TurnPart, unknown, unknown>): Turn =>
  // The needs of the middleware are in the context of the whole run: the agent's type saw to that.
  (isPlain(turn) ? turn : plain(transformPull(turn, withKnown))) as Turn

const around =
  (run: OwnRun, hook: CompiledAgent["wrapModelCall"][number], next: Next): Next =>
  (request) =>
    hide(hook(request, next, run))

const isHidden = ({ hidden }: ToolDefinition): boolean => hidden === true

/** The tools that a call of the turn may mean. */
const allowedOf = ({ callable, toolChoice, tools }: ModelRequest): ReadonlyArray<ToolDefinition> => {
  const offered = callable ?? tools
  return typeof toolChoice === "object" && "oneOf" in toolChoice
    ? offered.filter(({ hidden, name }) => hidden === true || toolChoice.oneOf.includes(name))
    : offered
}

/** The one door to the model: every `wrapModelCall` around the session, built once a run. */
export const makeNextTurn = (
  run: OwnRun,
  { wrapModelCall }: CompiledAgent,
  session: ModelSession,
  onTurn: (request: ModelRequest) => void
): Next => {
  const door: Next = (request) => {
    const visibleRequest = request.tools.some(isHidden)
      ? { ...request, tools: request.tools.filter((tool) => !isHidden(tool)) }
      : request
    if (request.purpose === "turn") {
      run.offered = allowedOf(request)
      onTurn(visibleRequest)
    }
    return (request.session ?? session).nextTurn(visibleRequest)
  }
  return wrapModelCall.reduceRight<Next>((next, hook) => around(run, hook, next), door)
}

/** A call that is being written: the id that it has in this run, and the tool. */
interface StartedCall {
  readonly id: string
  readonly name: string
}

/** True for an id that a new call can't have: it is empty, or another call of the conversation has it. */
const isTaken = (live: Live, id: string): boolean => id === "" || live.turn.callIds.has(id)

/** A call with arguments that are nested too deep to work with: they are kept as text, for the model to change. */
const tooDeep = ({ arguments: args, id, name }: ToolCall): MalformedToolCall => ({
  id,
  name,
  raw: stringify(args),
  problem: `its arguments lie more than ${maxDepth} arrays and objects deep`
})

/** The message of a turn with the id that readers know. */
const announced = ({ turn }: Live, message: Message.AiMessage): Message.AiMessage =>
  turn.messageId === undefined ? message : { ...message, id: turn.messageId }

/**
 * A turn's message as the loop wants it: tool names as their tools spell them, ids that tell the calls of a
 * conversation apart (servers that count anew each turn say `call_0` again and again), and no arguments that can't be
 * worked with.
 */
const canonical = (
  live: Live,
  message: Message.AiMessage,
  started: ReadonlyMap<string, StartedCall> | undefined
): Message.AiMessage => {
  if (message.toolCalls.length + message.malformedToolCalls.length === 0) return message
  const deep = message.toolCalls.filter((call) => isTooDeep(call.arguments))
  const calls = deep.length === 0 ? message.toolCalls : message.toolCalls.filter((call) => !deep.includes(call))
  const malformed =
    deep.length === 0 ? message.malformedToolCalls : [...message.malformedToolCalls, ...deep.map(tooDeep)]
  let changed = deep.length > 0
  const freshId = (id: string): string => {
    const startedId = started?.get(id)?.id ?? id
    const own = isTaken(live, startedId) ? live.makeId() : startedId
    live.turn.callIds.add(own)
    changed ||= own !== id
    return own
  }
  const toolCalls = calls.map((call) => {
    const name = resolveName(live.turn.toolset, call.name) ?? call.name
    const id = freshId(call.id)
    if (name === call.name && id === call.id) return call
    changed = true
    return { ...call, id, name }
  })
  const malformedToolCalls = malformed.map((call) => {
    const id = freshId(call.id)
    return id === call.id ? call : { ...call, id }
  })
  return changed ? { ...message, toolCalls, malformedToolCalls } : message
}

/**
 * Asks the model for a turn of the conversation, and reports its parts as they arrive. An interruption keeps the text in
 * `live.turn.partial`.
 */
export const ask = (live: Live, request: ModelRequest): Effect.Effect<Message.AiMessage, unknown, unknown> =>
  Effect.suspend(() => {
    const reader = makeReader(live, request)
    const { draft } = reader
    const streamed = Stream.runForEachArray(live.turn.next(request), (parts) => {
      const at = live.origin.hub.isWatched ? live.origin.clock.currentTimeMillisUnsafe() : 0
      for (const part of parts) reader.take(part, at)
      const settled = draft === undefined ? settleReaders(live) : Effect.andThen(draft.due, settleReaders(live))
      const resume = reader.accepted()
      return resume === undefined ? settled : Effect.andThen(keepAccepted(live, request, resume), settled)
    })
    return Effect.flatMap(draft === undefined ? streamed : draft.around(streamed), () => {
      const message = reader.message()
      if (message === undefined) return Effect.fail(incomplete(modelOf(live)))
      live.turn.partial = undefined
      return reader.isKept() ? Effect.as(live.run.state.set(accepted, null), message) : Effect.succeed(message)
    })
  })

/** Stores a turn that the provider makes in the background, before more of it is read. */
const keepAccepted = (live: Live, { messages }: ModelRequest, resume: JsonObject): Effect.Effect<void, unknown> => {
  const after = messages.at(-1)?.id
  if (after === undefined || !live.records.isJournaled) return Effect.void
  return Effect.andThen(live.run.state.set(accepted, { after, resume }), save(live))
}

/** The request of a turn, with the turn that an earlier run began for it. */
export const withAccepted = Effect.fnUntraced(function* (
  live: Live,
  request: ModelRequest
): Effect.fn.Return<ModelRequest, unknown> {
  // Reading a slot makes it a part of the state that people see.
  if ((yield* live.run.state.names(accepted.name)).length === 0) return request
  const acceptedTurn = yield* live.run.state.get(accepted)
  return acceptedTurn !== null && acceptedTurn.after === request.messages.at(-1)?.id
    ? { ...request, resume: acceptedTurn.resume }
    : request
})

/** Reads the parts of a turn: reports them, drafts them, and makes the message of the turn. */
const makeReader = (live: Live, request: ModelRequest) => {
  const partialTurn: UnfinishedTurn = { request, text: "", reasoning: "", calls: "", isCounted: false }
  live.turn.partial = partialTurn
  const draft = draftOf(live)
  let started: Map<string, StartedCall> | undefined
  let thinking = false
  let answer: Message.AiMessage | undefined
  let resume: JsonObject | undefined
  let isKept = false

  const takeCall = (part: Extract<TurnPart, { readonly _tag: "ToolCallStart" | "ToolCallDelta" }>): void => {
    if (part._tag === "ToolCallStart") {
      const id = isTaken(live, part.id) ? live.makeId() : part.id
      started = (started ?? new Map<string, StartedCall>()).set(part.id, { id, name: part.name })
    }
    const { id: callId, name: toolName } = started?.get(part.id) ?? { id: part.id, name: "" }
    const delta = part._tag === "ToolCallStart" ? "" : part.delta
    partialTurn.calls += delta
    draft?.calling(callId, toolName, delta)
    report(live, { _tag: "ToolCallDelta", callId, toolName, delta })
  }

  const take = (part: TurnPart, at: number): void => {
    if (thinking && part._tag !== "ReasoningDelta") {
      thinking = false
      report(live, { _tag: "ReasoningCompleted" })
    }
    switch (part._tag) {
      case "TextDelta":
        partialTurn.text += part.text
        draft?.saying("Text", part.text)
        return reportDelta(live, "TextDelta", part.text, at)
      case "ReasoningDelta":
        if (!thinking) {
          thinking = true
          report(live, { _tag: "ReasoningStarted" })
        }
        partialTurn.reasoning += part.text
        draft?.saying("Reasoning", part.text)
        return reportDelta(live, "ReasoningDelta", part.text, at)
      case "ToolCallStart":
      case "ToolCallDelta":
        return takeCall(part)
      case "TurnRestarted":
        partialTurn.text = ""
        partialTurn.reasoning = ""
        partialTurn.calls = ""
        started = undefined
        answer = undefined
        draft?.restart()
        return report(live, part)
      case "Warning":
        return report(live, part)
      case "TurnAccepted":
        resume = part.resume
        isKept = true
        return
      case "TurnDone":
        countUsage(live, part.message.usage)
        partialTurn.isCounted = true
        answer = part.message
    }
  }
  return {
    draft,
    take,
    message: () => answer && canonical(live, announced(live, answer), started),
    /** The turn that the provider accepted since the last look. */
    accepted: () => {
      const one = resume
      resume = undefined
      return one
    },
    isKept: () => isKept
  }
}

/** The model of a run, for error messages. Only a program may run without one. */
const modelOf = ({ run }: Live) => run.model ?? absent

/** Asks the model something on the side: the same door, no events, nothing appended. */
export const call = (live: Live, request: Parameters<Run["call"]>[0]): ReturnType<Run["call"]> =>
  Effect.suspend(() => {
    let answer: Message.AiMessage | undefined
    const turn = live.turn.next({
      systemPrompt: "",
      tools: [],
      toolChoice: "none",
      parameters: {},
      cacheHints: [],
      ...request
    })
    const take = (part: TurnPart): void => {
      if (part._tag === "TurnRestarted") answer = undefined
      if (part._tag !== "TurnDone") return
      countUsage(live, part.message.usage)
      answer = part.message
    }
    return Effect.flatMap(
      Stream.runForEachArray(turn, (parts) => Effect.sync(() => parts.forEach(take))),
      () => (answer === undefined ? Effect.fail(incomplete(modelOf(live))) : Effect.succeed(answer))
    )
  })

/**
 * Estimates the usage of a turn that was cut off, since no provider reports it. Nothing is counted before the first part
 * arrived.
 */
const estimateUsage = (
  live: Live,
  { calls, isCounted, reasoning, request, text }: UnfinishedTurn
): Usage | undefined => {
  if (isCounted || text + reasoning + calls === "") return undefined
  const reasoningTokens = textTokens(reasoning)
  const usage = make({
    inputTokens: estimateRequest(request),
    outputTokens: textTokens(text) + textTokens(calls) + reasoningTokens,
    reasoningTokens
  })
  const prices = (request.session?.model ?? live.run.model)?.prices
  return { ...(prices === undefined ? usage : priced(usage, prices)), isEstimated: true }
}

/** Counts the tokens and the money of a turn that was cut off, as an estimate. */
export const countPartial = (live: Live): void => {
  const partialTurn = live.turn.partial
  if (partialTurn === undefined) return
  countUsage(live, estimateUsage(live, partialTurn))
  partialTurn.isCounted = true
}

/** The partial answer of a turn that was cut off, if it had begun. */
export const partialMessage = (live: Live): Message.AiMessage | undefined => {
  const partialTurn = live.turn.partial
  if (partialTurn === undefined) return undefined
  const { text, reasoning } = partialTurn
  const pieces = [{ _tag: "Text", from: 0, text } as const, { _tag: "Reasoning", from: 0, text: reasoning } as const]
  return partial([{ _tag: "Part", turn: live.turn.messageId ?? live.makeId(), model: modelOf(live).modelId, pieces }])
}
