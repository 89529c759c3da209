/** A door to a server that can be slammed: connections through it end as they do when a network fails. */
import { createServer, connect, type Socket } from "node:net"
import { Effect } from "effect"
import { freePort } from "../servers/port.ts"

/**
 * - `cut`: ends all connections, and refuses new ones until `mend`
 * - `delay`: has everything take so many milliseconds longer, each way
 * - `loseAnswer`: lets so many answers through (usually none), and ends the connection when the next one comes
 */
export interface Proxy {
  readonly port: number
  readonly cut: Effect.Effect<void>
  readonly mend: Effect.Effect<void>
  readonly delay: (millis: number) => Effect.Effect<void>
  readonly loseAnswer: (after?: number) => Effect.Effect<void>
  /** How many answers were lost. */
  readonly lost: () => number
}

export const makeProxy = Effect.fnUntraced(function* (to: number) {
  const port = yield* freePort
  const pairs = new Set<readonly [Socket, Socket]>()
  let isCut = false
  let left = Number.POSITIVE_INFINITY
  let lost = 0
  let late = 0
  /** Writes in order, each as late as it was when it came. */
  const writer = (to: Socket) => {
    const waiting: Array<{ readonly chunk: Buffer; readonly at: number }> = []
    const flush = () => {
      for (let [first] = waiting; first !== undefined && first.at <= Date.now(); [first] = waiting) {
        to.write(first.chunk)
        waiting.shift()
      }
      const [next] = waiting
      if (next !== undefined && !to.destroyed) setTimeout(flush, Math.max(0, next.at - Date.now()))
    }
    return (chunk: Buffer) => {
      if (waiting.length === 0 && late === 0) return void to.write(chunk)
      waiting.push({ chunk, at: Date.now() + late })
      if (waiting.length === 1) setTimeout(flush, Math.ceil(late))
    }
  }
  const end = (pair: readonly [Socket, Socket]) => {
    pairs.delete(pair)
    for (const socket of pair) socket.destroy()
  }
  const server = createServer((client) => {
    if (isCut) {
      client.destroy()
      return
    }
    const upstream = connect(to, "127.0.0.1")
    const pair = [client, upstream] as const
    pairs.add(pair)
    for (const socket of pair) socket.on("error", () => end(pair)).on("close", () => end(pair))
    client.on("data", writer(upstream))
    const answer = writer(client)
    upstream.on("data", (chunk) => {
      if (left-- > 0) return answer(chunk)
      left = Number.POSITIVE_INFINITY
      lost++
      return end(pair)
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.callback<void>((resume) => {
        for (const pair of pairs) end(pair)
        server.close(() => resume(Effect.void))
      })
  )
  const proxy: Proxy = {
    port,
    cut: Effect.sync(() => {
      isCut = true
      for (const pair of pairs) end(pair)
    }),
    mend: Effect.sync(() => {
      isCut = false
      left = Number.POSITIVE_INFINITY
    }),
    loseAnswer: (after = 0) =>
      Effect.sync(() => {
        left = after
      }),
    delay: (millis) =>
      Effect.sync(() => {
        late = millis
      }),
    lost: () => lost
  }
  return proxy
})
