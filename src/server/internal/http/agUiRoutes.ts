/** The route of AG-UI: `HttpAgent` posts its runs to `/ag-ui`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { type HumanMessage, type Message, text } from "../../../core/Message.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { decode, encode } from "../../AgUi.ts"
import { observeDecision, observeInput } from "../packets/response.ts"
import type { Position } from "../position.ts"
import { nameThread } from "../posting.ts"
import { chooseAgent } from "./agents.ts"
import { decideOn, findDecided } from "./deciding.ts"
import { readBefore } from "./messages.ts"
import type { Failure } from "./problem.ts"
import { type Route, route } from "./route.ts"
import { encodePackets, respondEvents } from "./sse.ts"

const run = route({
  method: "POST",
  path: "/ag-ui",
  summary: "Runs an agent for AG-UI, or goes on with the answers to its interrupts. Only the last message counts.",
  query: { agent: "The name of the agent. Default: the first one" },
  body: Schema.Unknown,
  returns: "text/event-stream",
  handle: Effect.fnUntraced(function* (call) {
    const { beats, runs } = call.door
    const asked = yield* decode(call.body)
    const { runId, threadId } = asked
    const thread = yield* call.tenant.thread(threadId)
    const respond = (
      events: Stream.Stream<AgentEvent, Failure>,
      known: { readonly told?: ReadonlyArray<AgentEvent>; readonly before?: ReadonlyArray<Message> } = {}
    ) => respondEvents(beats, encodePackets(encode({ threadId, runId, ...known })(events)))
    /** Tells a response again, to a client that may have a part of it. */
    const respondAgain = Effect.fnUntraced(function* (id: string, position: Position, input?: HumanMessage) {
      const before = yield* readBefore(call.tenant.store, threadId, id, input)
      return respond(observeInput(runs, thread, id, position), { before })
    })
    if (asked._tag === "Decisions") {
      const again = yield* findDecided(call, thread, asked.interrupts)
      if (again !== undefined) return yield* respondAgain(again.id, again.position)
      const { position, told } = yield* decideOn(call, thread, asked.decide)
      return respond(observeDecision(runs, thread, position), { told })
    }
    const agent = yield* chooseAgent(call)
    const { id, message } = asked
    yield* nameThread(call, threadId, cut(joinLines(text(message)), 60))
    const { isNew, position } = yield* runs.start(thread, { agent, input: message, id, busy: "refuse" })
    return isNew ? respond(observeInput(runs, thread, id, position)) : yield* respondAgain(id, position, message)
  })
})

/** The routes of AG-UI. */
export const agUiRoutes: ReadonlyArray<Route> = [run]
