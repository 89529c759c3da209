/** Conversations over WebSockets: packets in order, signs of life both ways, and an end for clients that do not read. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as Socket from "effect/socket/Socket"

/** The characters between two beats, and the most beats that wait for an answer. */
const size = 256 << 10
const most = 4

/** The time that a client has to answer a beat, and the time between beats while nothing happens. */
const patience = "30 seconds"
const pause = "15 seconds"

/** The most packets of a client that wait for their answers. */
const waiting = 64

/** The reasons for which the server ends a connection, with the codes of their close events. */
const codes = { flood: 4429, slow: 4408, unread: 1003, over: 1011 } as const

/** The end of a connection, by the server or by the client. */
export type SocketEnd = keyof typeof codes | Socket.SocketError

/** A packet for a client, as JSON. */
export type ServerPacket = Readonly<Record<string, unknown>>

/** Sends to a client. It waits while too much is on the way. */
export type Send = (text: string) => Effect.Effect<void, SocketEnd>

const Beat = Schema.fromJsonString(Schema.Struct({ type: Schema.Literal("beat"), n: Schema.Finite }))
const readBeat = Schema.decodeUnknownOption(Beat)

/** The longest text that may be a beat. */
const shortest = 100

/** Counts beats, and the answers to them. */
const makeFlow = (write: Send) => {
  let beatCount = 0
  let answered = 0
  let length = 0
  let changed: Deferred.Deferred<void> | undefined
  const beat = Effect.suspend(() => {
    length = 0
    return write(JSON.stringify({ type: "beat", n: ++beatCount }))
  })
  const awaitAnswer = Effect.suspend(() => Deferred.await((changed ??= Deferred.makeUnsafe()))).pipe(
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail("slow" as const) })
  )
  const send: Send = Effect.fnUntraced(function* (text) {
    while (beatCount - answered >= most) yield* awaitAnswer
    length += text.length
    yield* write(text)
    if (length > size) yield* beat
  })
  const answer = (n: number): void => {
    if (!(n > answered && n <= beatCount)) return
    answered = n
    if (changed !== undefined) Deferred.doneUnsafe(changed, Exit.void)
    changed = undefined
  }
  /** Asks for signs of life. */
  const keep = Effect.forever(
    Effect.andThen(
      Effect.sleep(pause),
      Effect.suspend(() => (beatCount === answered ? beat : awaitAnswer))
    )
  )
  return { send, answer, keep }
}

/**
 * Talks with a client until the connection ends. `tell` sends events, `hear` answers a packet; packets are answered
 * one after another.
 */
export const converse = Effect.fnUntraced(function* <R, R2>(
  socket: Socket.Socket,
  tell: (send: Send) => Effect.Effect<void, SocketEnd, R>,
  hear: (text: string) => Effect.Effect<ServerPacket, never, R2>
): Effect.fn.Return<void, never, R | R2> {
  yield* Effect.scoped(
    Effect.gen(function* () {
      const { pull } = yield* socket.reader
      const { write } = yield* socket.writer
      const flow = makeFlow(write)
      const textQueue = yield* Queue.dropping<string>(waiting)
      const listen = Effect.gen(function* () {
        for (;;) {
          for (const text of yield* pull) {
            if (typeof text !== "string") return yield* Effect.fail("unread" as const)
            const beat = text.length <= shortest ? readBeat(text) : undefined
            if (beat?._tag === "Some") flow.answer(beat.value.n)
            else if (!Queue.offerUnsafe(textQueue, text)) return yield* Effect.fail("flood" as const)
          }
        }
      })
      const work = Effect.forever(
        Effect.flatMap(Queue.take(textQueue), (text) =>
          Effect.flatMap(hear(text), (reply) => flow.send(JSON.stringify(reply)))
        )
      )
      const tellAll = Effect.andThen(tell(flow.send), Effect.fail("over" as const))
      yield* Effect.raceAllFirst([listen, work, tellAll, flow.keep]).pipe(
        Effect.catch((ended) =>
          typeof ended === "string" ? Effect.ignore(write(new Socket.CloseEvent(codes[ended], ended))) : Effect.void
        )
      )
    })
  ).pipe(Effect.catch(() => Effect.void))
})
