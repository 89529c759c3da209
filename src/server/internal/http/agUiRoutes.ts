/** The route of AG-UI: `HttpAgent` posts its runs to `/ag-ui`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { text } from "../../../core/Message.ts"
import { cut, joinLines } from "../../../support/text/text.ts"
import { decode, encode } from "../../AgUi.ts"
import { observeDecision, observeInput } from "../packets/response.ts"
import { chooseAgent } from "./agents.ts"
import { decideOn } from "./deciding.ts"
import type { Failure } from "./problem.ts"
import { type Route, route } from "./route.ts"
import { nameThread } from "./runRoutes.ts"
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
    const respond = (events: Stream.Stream<AgentEvent, Failure>, told?: ReadonlyArray<AgentEvent>) =>
      respondEvents(beats, encodePackets(encode({ threadId, runId, told })(events)))
    if (asked._tag === "Decisions") {
      const { position, told } = yield* decideOn(call, thread, asked.decide)
      return respond(observeDecision(runs, thread, position), told)
    }
    const agent = yield* chooseAgent(call)
    const { id, message } = asked
    yield* nameThread(call, threadId, cut(joinLines(text(message)), 60))
    const { position } = yield* runs.start(thread, { agent, input: message, id, busy: "refuse" })
    return respond(observeInput(runs, thread, id, position))
  })
})

/** The routes of AG-UI. */
export const agUiRoutes: ReadonlyArray<Route> = [run]
