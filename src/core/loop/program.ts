/**
 * Runs a program: an agent whose work is an effect. The program is one open call with the id of the message that asked,
 * so its records work like those of a tool.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { cut } from "../../support/text/text.ts"
import { AgentError, type Reason } from "../AgentError.ts"
import * as Message from "../Message.ts"
import type { Directive } from "../Middleware.ts"
import { type Suspension, suspension } from "../thread/suspension.ts"
import { untouched } from "./calls/calls.ts"
import { leaveOpenIfSuspended, runAttempt } from "./calls/execute.ts"
import { resolved } from "./calls/tools.ts"
import type { Program } from "./definition.ts"
import type { Live } from "./live.ts"
import { endRound, type RunEnd, startRound } from "./loop.ts"
import { forget, forgetFailure } from "./records/inside.ts"
import { record, settle, save } from "./records/journal.ts"

const failed = (live: Live, reason: Reason): AgentError => new AgentError({ agent: live.run.agent, reason })

/** The message that a program works on: the last human message. */
const questionIn = (messages: ReadonlyArray<Message.Message>): Message.HumanMessage | undefined =>
  messages.findLast((message) => message.role === "human")

/** The id of the open call that a program is: of the first question, where later ones find the work on earlier ones. */
export const openCallId = ({ keeps }: Program, messages: ReadonlyArray<Message.Message>): string | undefined =>
  (keeps ? messages.find((message) => message.role === "human") : questionIn(messages))?.id

/** Runs a program. A `directive` of a hook replaces it, if it brings an answer: there is no model to say it to. */
export const programmed = Effect.fnUntraced(function* (live: Live, program: Program, directive: Directive | undefined) {
  const { messages } = live.run
  if (directive?._tag === "End" && directive.answer !== undefined) {
    record(live, directive.answer)
    yield* settle(live)
  } else if (directive !== undefined && directive._tag !== "Continue") {
    const problem = `a middleware ended it before it began (${directive.stopReason})`
    return yield* Effect.fail(failed(live, { _tag: "InvalidOutput", raw: "", problem }))
  }
  const last = messages.at(-1)
  if (last?.role === "ai" && live.round.batch.length === 0) {
    const text = Message.text(last)
    const output = yield* Effect.mapError(program.output.read(text), (problem) =>
      failed(live, { _tag: "InvalidOutput", raw: text, problem })
    )
    const stopReason = directive?._tag === "End" ? directive.stopReason : "completed"
    return { stopReason, text, output, pending: [] } satisfies RunEnd
  }
  const question = questionIn(messages)
  if (question === undefined || live.round.batch.length > 0) {
    const problem =
      "there is no question for it: the conversation ends in the middle of a turn of another agent; give an input"
    return yield* Effect.fail(failed(live, { _tag: "InvalidInput", problem }))
  }
  const input = yield* Effect.mapError(program.input.read(Message.text(question)), (problem) =>
    failed(live, { _tag: "InvalidInput", problem: misfit(program, problem) })
  )
  yield* startRound(live, false)
  // Decisions hold for every later resume.
  if (live.round.suspension !== null) yield* live.run.state.set(suspension, live.round.suspension)
  yield* save(live)
  const call = untouched({ id: openCallId(program, messages) ?? question.id, name: live.compiled.definition.name })
  const work = Effect.onError(
    Effect.suspend(() => program.run(input)),
    (cause) => Effect.sync(() => forgetFailure(live, call.id, Cause.squash(cause)))
  )
  const output = yield* leaveOpenIfSuspended(call, runAttempt(live, call, work))
  if (call.suspended !== undefined) {
    const { decisions, requests } = live.round.suspension ?? none
    const decided = new Set(decisions.map(({ id }) => id))
    yield* live.run.state.set(suspension, {
      messageId: question.id,
      requests: [...requests.filter(({ id }) => decided.has(id)), ...call.suspended],
      decisions,
      waiting: [],
      answers: [],
      unknown: []
    })
    yield* endRound(live, { stopReason: "pause" })
    return { stopReason: "suspended", text: "", output: undefined, pending: call.suspended } satisfies RunEnd
  }
  const text = yield* Effect.mapError(program.output.write(output), (problem) =>
    failed(live, { _tag: "InvalidOutput", raw: "", problem: `its result can't be written as JSON:\n${problem}` })
  )
  if (!program.keeps) forget(live, call.id)
  record(live, Message.ai(text, { id: live.makeId(), source: "program" }))
  yield* settle(live)
  yield* resolved(live)
  yield* endRound(live, { stopReason: "stop" })
  return { stopReason: "completed", text, output, pending: [] } satisfies RunEnd
})

const none: Pick<Suspension, "decisions" | "requests"> = { decisions: [], requests: [] }

/** Explains a misfit of the input, with the schema: a model may have written the input. */
const misfit = ({ input }: Program, problem: string): string =>
  `the input does not fit:\n${problem}${input.jsonSchema === undefined ? "" : `\nGive what fits this JSON Schema: ${cut(JSON.stringify(input.jsonSchema), 2_000)}`}`
