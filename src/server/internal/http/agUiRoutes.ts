/** The route of AG-UI: `HttpAgent` posts its runs to `/ag-ui`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { type HumanMessage, type Message, text } from "../../../core/Message.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { decode, encode } from "../../AgUi.ts"
import { findPlace, observeDecision, observeInput } from "../packets/response.ts"
import type { Position } from "../position.ts"
import { nameThread } from "../posting.ts"
import type { ThreadRef } from "../tenant.ts"
import { chooseAgent } from "./agents.ts"
import { decideOn, findDecided } from "./deciding.ts"
import { readBefore, readTranscript } from "./messages.ts"
import type { Failure } from "./problem.ts"
import { type Route, route, type TenantCall } from "./route.ts"
import { encodePackets, respondEvents } from "./sse.ts"

/**
 * Finds the input of a run that this message steered: a client that comes again has the messages of the snapshot, and so the
 * last one of its user may be a steering message.
 */
const findSteered = Effect.fnUntraced(function* (
  call: TenantCall,
  thread: ThreadRef,
  message: HumanMessage,
  id: string
): Effect.fn.Return<{ readonly id: string; readonly position: Position } | undefined, Failure> {
  const messages = yield* readTranscript(call.tenant.store, thread.id)
  const at = messages.findLastIndex((one) => one.id === id && one.role === "human" && text(one) === text(message))
  const input = messages.slice(0, Math.max(0, at)).findLast((one) => one.id.startsWith("input:"))
  const inputId = input?.id.slice("input:".length) ?? ""
  const position = input === undefined ? undefined : yield* findPlace(thread, inputId)
  return position === undefined ? undefined : { id: inputId, position }
})

const run = route({
  method: "POST",
  path: "/ag-ui",
  summary: "Runs an agent for AG-UI, or goes on with the answers to its interrupts. Only the last message counts.",
  query: { agent: "The name of the agent. Default: the first one" },
  body: Schema.Unknown,
  returns: "text/event-stream",
  handle: Effect.fnUntraced(function* (call) {
    const { beats, runs } = call.door
    const request = yield* decode(call.body)
    const { runId, threadId } = request
    const thread = yield* call.tenant.thread(threadId)
    yield* call.enter
    const respond = (
      events: Stream.Stream<AgentEvent, Failure>,
      context: { readonly told?: ReadonlyArray<AgentEvent>; readonly before?: ReadonlyArray<Message> } = {}
    ) => respondEvents(beats, encodePackets(encode({ threadId, runId, ...context })(events)))
    /** Tells a response again, to a client that may have a part of it. */
    const respondAgain = Effect.fnUntraced(function* (id: string, position: Position, input?: HumanMessage) {
      const before = yield* readBefore(call.tenant.store, threadId, id, input)
      return respond(observeInput(runs, thread, id, position), { before })
    })
    if (request._tag === "Decisions") {
      const earlierRun = yield* findDecided(call, thread, request.interrupts)
      if (earlierRun !== undefined) return yield* respondAgain(earlierRun.id, earlierRun.position)
      const { position, told } = yield* decideOn(call, thread, request.decide)
      return respond(observeDecision(runs, thread, position), { told })
    }
    const agent = yield* chooseAgent(call)
    const { id, message } = request
    const steered = yield* findSteered(call, thread, message, id)
    if (steered !== undefined) return yield* respondAgain(steered.id, steered.position)
    yield* nameThread(call, threadId, cut(joinLines(text(message)), 60))
    const { isNew, position } = yield* runs.start(thread, { agent, input: message, id, busy: "refuse" })
    return isNew ? respond(observeInput(runs, thread, id, position)) : yield* respondAgain(id, position, message)
  })
})

/** The routes of AG-UI. */
export const agUiRoutes: ReadonlyArray<Route> = [run]
