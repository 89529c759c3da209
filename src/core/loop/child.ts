/** Runs sub-agents inside the tool call that asks for them. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { check } from "../../support/options/check.ts"
import { sha256Sync } from "../../support/store/sha256.ts"
import { AgentError } from "../AgentError.ts"
import type { AgentResult } from "../AgentResult.ts"
import { type Json } from "../Json.ts"
import * as Message from "../Message.ts"
import type { Input, RunOptions } from "../runOptions.ts"
import { canonical } from "../schema/jsonTree.ts"
import * as shapes from "../schema/shapes.ts"
import { isCodec } from "../schema/standard.ts"
import type { Parameters } from "../Tool.ts"
import { ToolContext } from "../ToolContext.ts"
import { make as toolError } from "../ToolError.ts"
import { nothingSpent, zero } from "../Usage.ts"
import { callProblem, fail, isResume } from "./beginning.ts"
import { type CompiledAgent, compile, type Definition, readAnswer, withoutSuspending } from "./definition.ts"
import { interpret } from "./interpret.ts"
import { type Attempt, type Live, liveOf } from "./live.ts"
import { attemptOf, countActive, park } from "./records/attempts.ts"
import { attach, type Conversation, conversationOf } from "./records/conversations.ts"
import * as Inside from "./records/inside.ts"
import { save } from "./records/journal.ts"
import type { End } from "./records/records.ts"
import { sharedSnapshot } from "./records/store.ts"
import { emit, report } from "./report.ts"

const taskParameters = {
  task: Schema.String.annotate({
    description: "The task, in full: the sub-agent sees nothing of this conversation, and only its answer comes back."
  })
}

const taskIn = (args: unknown): unknown => (Predicate.hasProperty(args, "task") ? args.task : "")

/** The parameters of an agent as a tool, and the input that arguments are. */
export const parametersOf = ({
  program
}: Definition): { readonly parameters: Parameters; readonly inputOf: (args: unknown) => Input } => {
  const schema = program?.schema
  if (program === undefined || schema === undefined) {
    return { parameters: taskParameters, inputOf: (args) => String(taskIn(args)) }
  }
  const { input } = program
  return !isCodec(schema) || input.jsonSchema?.["type"] === "object"
    ? // Any schema decodes it.
      { parameters: schema as Parameters, inputOf: (args) => Message.human(input.say(args)) }
    : {
        parameters: { task: schema },
        inputOf: (args) => Message.human(input.say(taskIn(args)))
      }
}

export interface ChildOptions extends Omit<RunOptions, "threadId"> {
  /** The conversation to continue within the same tool call. Default: a new one. */
  readonly session?: string | undefined
}

/** The middleware that the current tool call passes on to all its agents. */
export const inherited = Effect.flatMap(ToolContext, ({ run }) =>
  Effect.map(liveOf(run), (live) => live.compiled.inherited)
)

/** Compiles a sub-agent under its parent: it can be suspended only if the parent can. */
const under = (parent: Live, compiled: CompiledAgent, suspends: boolean): CompiledAgent => {
  const { inherited } = parent.compiled
  const whole = inherited.length === 0 ? compiled : compile(compiled.definition, inherited)
  return suspends || !whole.suspends ? whole : withoutSuspending(whole)
}

/** The part of an input by which it is known again when the call is run again. */
const wordsOf = (input: Input): Json => {
  if (typeof input === "string") return input
  if (isResume(input)) return "resume"
  const messages = "role" in input ? [input] : input
  return messages.map(({ content, role }) => [
    role,
    content.map((block) => (block.type === "text" ? block.text : block))
  ])
}

const digest = (input: Input, history: ReadonlyArray<Message.Message> | undefined): string =>
  sha256Sync(canonical([wordsOf(input), history === undefined ? null : wordsOf(history)])).slice(0, 32)

const checkDelegate = check(shapes.agentDelegate)

/** Runs a sub-agent inside the tool call that is being executed. */
export const delegate = Effect.fnUntraced(function* (compiled: CompiledAgent, input: Input, options: ChildOptions) {
  const problem = checkDelegate(options) ?? callProblem(input, {})
  if (problem !== undefined) return yield* fail(compiled, { _tag: "InvalidInput", problem })
  const context = yield* ToolContext
  const parent = yield* liveOf(context.run)
  const attempt = attemptOf(context)
  if (attempt === undefined) {
    return yield* begin(parent, context.callId, under(parent, compiled, false), input, options, {})
  }
  const ready = under(parent, compiled, parent.compiled.suspends)
  const { session, ...rest } = options
  if (!Inside.isKept(parent) && session === undefined) {
    const place = { under: attempt.call }
    return yield* countActive(attempt, begin(parent, context.callId, ready, input, rest, place))
  }
  if (session === undefined) {
    const place = Inside.claim(attempt, "agent", ready.definition.name, digest(input, options.history))
    return yield* countActive(attempt, converse(attempt, place, ready, input, rest))
  }
  const place = `session:${ready.definition.name}:${session}`
  const sessions = (attempt.sessions ??= new Map<string, Semaphore.Semaphore>())
  const lock = sessions.get(place) ?? Semaphore.makeUnsafe(1)
  sessions.set(place, lock)
  // A conversation goes on from input to input: one after the other. A call that waits for its turn is not at work.
  return yield* lock.withPermits(1)(
    countActive(
      attempt,
      Effect.suspend(() => {
        attempt.counts = (attempt.counts ?? new Map<string, number>()).set(place, 1)
        return converse(attempt, place, ready, input, rest)
      })
    )
  )
})

/** Answers an input of a conversation: from its record, or by a run that begins or resumes. */
const converse = Effect.fnUntraced(function* (
  attempt: Attempt,
  place: string,
  compiled: CompiledAgent,
  input: Input,
  options: ChildOptions
) {
  const { call, live: parent } = attempt
  const agent = compiled.definition.name
  Inside.adopt(attempt, place, agent)
  const record = yield* Effect.fromResult(Inside.find(attempt, place, "Child"))
  const ends = record?.ends ?? []
  const conversation = record === undefined ? undefined : yield* conversationOf(attempt, place)
  const words = digest(input, options.history)
  // Inputs that were given at once may come in another order now.
  const nth = Inside.count(attempt, `${place}: ${words}`)
  const end = ends.filter((one) => one.input === words)[nth - 1]
  if (end !== undefined && conversation !== undefined) return yield* answered(parent, compiled, conversation, end)
  const isOpen = conversation !== undefined && conversation.messages.length > (ends.at(-1)?.to ?? 0)
  const resumes = isOpen && (record?.open === undefined || record.open === words)
  Inside.keep(attempt, place, { _tag: "Child", agent, open: words, ends })
  let child: Live | undefined
  const journalSlot = Inside.journalSlot(attempt, place)
  const result = yield* begin(
    parent,
    call.id,
    compiled,
    resumes
      ? { _tag: "Resume", checkpoint: conversation, decisions: [], unknownOutcome: parent.unknownOutcome }
      : input,
    resumes ? {} : conversation === undefined ? options : { history: conversation.messages, state: conversation.state },
    {
      under: call,
      journalSlot,
      onLive: (live) => {
        child = live
        attach(attempt, place, live, conversation?.messages ?? [])
      }
    }
  )
  if (result.stopReason === "suspended") return yield* park(attempt, result.pending)
  const from = resumes ? (ends.at(-1)?.to ?? 0) : result.messages.length - result.newMessages.length
  Inside.keep(attempt, place, {
    _tag: "Child",
    agent,
    ends: [
      ...ends,
      {
        input: words,
        from,
        to: result.messages.length,
        stopReason: result.stopReason,
        text: result.text,
        usage: result.usage,
        rounds: result.rounds
      }
    ]
  })
  if (child !== undefined) yield* save(child)
  return { ...result, newMessages: result.messages.slice(from) }
})

/** The result that a sub-agent had when the call was run before. */
const answered = Effect.fnUntraced(function* (
  parent: Live,
  { definition }: CompiledAgent,
  { messages, spent, state }: Conversation,
  { from, rounds, stopReason, text, to, usage }: End
) {
  return {
    stopReason,
    text,
    output: yield* readAgain(parent, definition.name, readAnswer(definition, text)),
    pending: [],
    messages: messages.slice(0, to),
    newMessages: messages.slice(from, to),
    state: { ...Inside.divide(state).state, ...sharedSnapshot(parent.run.state) },
    usage,
    rounds,
    spent: spent ?? nothingSpent
  } satisfies AgentResult<unknown>
})

const readAgain = (parent: Live, agent: string, reading: Effect.Effect<unknown, string>) =>
  Effect.mapError(
    reading,
    (problem) =>
      new AgentError({
        agent: parent.run.agent,
        reason: { _tag: "InvalidState", slot: `answer of "${agent}"`, problem }
      })
  )

/** The place of a sub-agent's run: the call that it is in, and the slot that keeps it. */
interface Within {
  readonly under?: Live["under"]
  readonly journalSlot?: string | undefined
  readonly onLive?: ((live: Live) => void) | undefined
}

const begin = Effect.fnUntraced(function* (
  parent: Live,
  callId: string,
  compiled: CompiledAgent,
  input: Input,
  options: RunOptions,
  within: Within
) {
  const agent = compiled.definition.name
  const childRunId = parent.makeId()
  let live: Live | undefined
  yield* emit(parent, { _tag: "SubagentStarted", callId, agent, childRunId })
  return yield* Effect.onExit(
    interpret(compiled, input, options, {
      runId: childRunId,
      hub: parent.origin.hub,
      control: undefined,
      parent,
      under: within.under,
      place: within.journalSlot,
      onLive: (one) => {
        live = one
        within.onLive?.(one)
      }
    }),
    (exit) =>
      Effect.sync(() => {
        const outcome = Exit.isSuccess(exit)
          ? exit.value.stopReason
          : Cause.hasInterrupts(exit.cause)
            ? "interrupted"
            : "failed"
        const usage = live?.run.usage ?? zero
        report(parent, { _tag: "SubagentCompleted", callId, agent, childRunId, outcome, usage })
      })
  )
})

/** The output of a sub-agent, if it has one. */
export const answerOf = <O>(
  { definition }: CompiledAgent,
  { output, stopReason, text }: AgentResult<O>
): Effect.Effect<Exclude<O, undefined>, AgentError> => {
  const isSaid = definition.program !== undefined || definition.output !== undefined || text !== ""
  return stopReason === "suspended" || stopReason === "refused" || !isSaid
    ? Effect.fail(new AgentError({ agent: definition.name, reason: { _tag: "NoAnswer", stopReason, text } }))
    : // Only a run that is suspended has no output.
      Effect.succeed(output as Exclude<O, undefined>)
}

/** The end of a sub-agent as its parent's model sees it: the text of its answer, which for a schema is the JSON. */
export const toOutput = (result: AgentResult<unknown>) =>
  result.stopReason === "suspended"
    ? Effect.fail(toolError("The sub-agent stopped: a call of its own needs a decision that nobody here can give."))
    : Effect.succeed(result.text === "" ? "The sub-agent ended without an answer." : result.text)
