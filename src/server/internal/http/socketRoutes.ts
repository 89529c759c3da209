/** The route of WebSockets: the events of a thread, and packets that act on it, over one connection. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { encode } from "../../../core/AgentEvent.ts"
import { Decision } from "../../../core/Approval.ts"
import type { Frame } from "../position.ts"
import * as Guard from "./guard.ts"
import { catchProblems, type Failure, Problem, toBody, toProblem } from "./problem.ts"
import { type Route, route, type TenantCall } from "./route.ts"
import { Input, positionOf, Start, startRun, toMessage } from "./runRoutes.ts"
import { converse, type Send, type ServerPacket } from "./socket.ts"

/** The name that a client gives to a packet. */
const Ref = Schema.String.check(Schema.isMaxLength(512))

/** What a client sends. The answer has its `ref`. */
const Packet = Schema.Union([
  Schema.Struct({ type: Schema.Literal("input"), ref: Ref, ...Start.fields }),
  Schema.Struct({ type: Schema.Literal("steer"), ref: Ref, input: Input }),
  Schema.Struct({ type: Schema.Literal("decide"), ref: Ref, decisions: Schema.Array(Decision) }),
  Schema.Struct({ type: Schema.Literal("cancel"), ref: Ref })
])

const act = Effect.fnUntraced(function* (
  call: TenantCall,
  packet: typeof Packet.Type
): Effect.fn.Return<ServerPacket, Failure> {
  const { runs } = call.door
  const thread = yield* call.thread
  switch (packet.type) {
    case "input":
      return yield* startRun(call, packet)
    case "steer":
      yield* runs.steer(thread, toMessage(packet.input))
      return {}
    case "decide": {
      const { id, isNew, position } = yield* runs.decide(thread, packet.decisions)
      return { runId: id, position, isNew }
    }
    case "cancel":
      return { isCancelled: yield* runs.cancel(thread) }
  }
})

const Named = Schema.Struct({ ref: Ref })

/** The `ref` of a packet that can't be read otherwise. */
const refOf = (text: string): string | undefined => {
  const decoded = Schema.decodeUnknownOption(Schema.fromJsonString(Named))(text)
  return decoded._tag === "Some" ? decoded.value.ref : undefined
}

const refusal = (ref: string | undefined, problem: Problem): ServerPacket => ({
  type: "refused",
  ...(ref === undefined ? {} : { ref }),
  problem: toBody(problem)
})

/** The texts of frames, which all readers of a log share. */
const textCache = new WeakMap<Frame, string>()

const write = (frame: Frame): string => {
  const cachedText = textCache.get(frame)
  if (cachedText !== undefined) return cachedText
  const text = JSON.stringify(
    frame._tag === "Reset"
      ? { type: "reset", position: frame.position, to: frame.to }
      : { type: "event", position: frame.position, event: encode(frame.event) }
  )
  textCache.set(frame, text)
  return text
}

const talk = route({
  method: "GET",
  path: "/threads/:id/socket",
  summary: "Opens a WebSocket: events behind `after` come, and packets of input, steer, decide and cancel go.",
  query: { after: "The position of the last event that the client has" },
  status: 101,
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const thread = yield* call.thread
    const after = yield* positionOf(call.query("after"), thread.id)
    const refused = new Problem({
      status: 426,
      code: "Upgrade",
      detail: "Open a WebSocket here; events without one are at /events.",
      headers: { connection: "upgrade", upgrade: "websocket" }
    })
    if (call.request.headers["upgrade"]?.toLowerCase() !== "websocket") return yield* refused
    // The first input of a thread may come over the connection.
    const begun = yield* Deferred.make<void>()
    const status = yield* Effect.result(call.door.runs.status(thread))
    if (Result.isSuccess(status)) Deferred.doneUnsafe(begun, Exit.void)
    else if (toProblem(status.failure).status !== 404) return yield* status.failure
    yield* call.enter
    const socket = yield* Effect.mapError(call.request.upgrade, () => refused)
    const frames = call.door.runs.observe(thread, { after, follow: true }).pipe(
      Stream.map(write),
      Stream.catch((failure) =>
        Stream.fromEffect(catchProblems(Effect.fail(failure), (problem) => JSON.stringify(refusal(undefined, problem))))
      )
    )
    const tell = (send: Send) =>
      Effect.andThen(
        Deferred.await(begun),
        Stream.runForEachArray(frames, (texts) => Effect.forEach(texts, send, { discard: true }))
      )
    const hear = (text: string) =>
      catchProblems(
        Effect.gen(function* () {
          yield* call.door.count(call.principal)
          const packet = yield* Guard.decodeText(call.door.guard, text, Packet)
          const result = yield* act(call, packet)
          if (packet.type === "input") yield* Deferred.succeed(begun, undefined)
          return { type: "ack", ref: packet.ref, ...result }
        }),
        (problem): ServerPacket => refusal(problem.code === "TooLarge" ? undefined : refOf(text), problem)
      )
    yield* converse(socket, tell, hear)
    return HttpServerResponse.empty()
  })
})

/** The routes of WebSockets. */
export const socketRoutes: ReadonlyArray<Route> = [talk]
