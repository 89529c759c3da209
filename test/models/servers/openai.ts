/**
 * An HTTP server that speaks the wire formats of OpenAI: a script of replies, cut into chunks wherever a test likes, with
 * every fault that a server or a network has.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Deferred, Effect, type Scope } from "effect"

/** The end of a streamed answer: in good order, with the connection torn down, or not at all. */
export type Ending = "end" | "reset" | "hang"

/** One reply of the script. */
export type Reply =
  | {
      readonly _tag: "Stream"
      readonly text: string
      readonly ending: Ending
      readonly headers: Readonly<Record<string, string>>
      readonly cuts: ReadonlyArray<number>
      readonly pause: number
    }
  | {
      readonly _tag: "Plain"
      readonly status: number
      readonly body: string
      readonly headers: Readonly<Record<string, string>>
    }
  | { readonly _tag: "Hang" }
  | { readonly _tag: "Reset" }

/** A client's request. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // A test looks into it as it likes.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
  /** Done when the client closed the connection before the answer was over, with the time (ms since the epoch). */
  readonly closed: Deferred.Deferred<number>
}

/** A server that runs. */
export interface Server {
  readonly url: string
  readonly seen: ReadonlyArray<Seen>
  readonly reply: (...replies: ReadonlyArray<Reply>) => void
}

interface Streaming {
  readonly ending?: Ending
  readonly headers?: Readonly<Record<string, string>>
  /** Byte positions at which the text is cut into chunks. */
  readonly cuts?: ReadonlyArray<number>
  /** Milliseconds between chunks. */
  readonly pause?: number
}

/** A streamed answer of exactly this text. */
export const raw = (text: string, options: Streaming = {}): Reply => ({
  _tag: "Stream",
  text,
  ending: options.ending ?? "end",
  headers: options.headers ?? {},
  cuts: options.cuts ?? [],
  pause: options.pause ?? 0
})

/** Named events, as the Responses API sends them, with comments between them as proxies send them. */
export const events = (list: ReadonlyArray<{ readonly type: string }>, options?: Streaming): Reply =>
  raw(list.map((event) => `: keep-alive\n\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""), options)

/** Chunks of a chat completion and the end marker. */
export const chunks = (list: ReadonlyArray<unknown>, options?: Streaming & { readonly done?: boolean }): Reply =>
  raw(
    list.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") +
      (options?.done === false ? "" : "data: [DONE]\n\n"),
    options
  )

/** An answer that is not a stream. */
export const plain = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Reply => ({
  _tag: "Plain",
  status,
  body: typeof body === "string" ? body : JSON.stringify(body),
  headers: { "content-type": typeof body === "string" ? "text/html" : "application/json", ...headers }
})

/** Takes the request and never answers. */
export const hang: Reply = { _tag: "Hang" }

/** Takes the request and tears the connection down. */
export const reset: Reply = { _tag: "Reset" }

const pieces = (bytes: Buffer, cuts: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const at = [...new Set([0, ...cuts.map((cut) => cut % Math.max(1, bytes.length)), bytes.length])]
  const sorted = at.sort((left, right) => left - right)
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end))
}

const answer = async (reply: Reply, response: ServerResponse): Promise<void> => {
  switch (reply._tag) {
    case "Hang":
      return
    case "Reset":
      response.socket?.resetAndDestroy()
      return
    case "Plain":
      response.writeHead(reply.status, reply.headers).end(reply.body)
      return
    case "Stream": {
      response.writeHead(200, { "content-type": "text/event-stream", ...reply.headers })
      for (const piece of pieces(Buffer.from(reply.text), reply.cuts)) {
        response.write(piece)
        // Each piece is a packet of its own: one tick's writes are sent together.
        await new Promise((sent) => setTimeout(sent, reply.pause))
      }
      if (reply.ending === "end") response.end()
      // With a reset at once the client would lose unread data.
      if (reply.ending === "reset") setTimeout(() => response.socket?.resetAndDestroy(), 20)
    }
  }
}

/** Starts a server on a free port; it is stopped with the scope. A request too many is answered with a 599. */
export const make: Effect.Effect<Server, never, Scope.Scope> = Effect.acquireRelease(
  Effect.callback<Server & { readonly stop: Effect.Effect<void> }>((resume) => {
    const seen: Array<Seen> = []
    const script: Array<Reply> = []
    const server = createServer((request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        const text = Buffer.concat(parts).toString("utf8")
        const closed = Deferred.makeUnsafe<number>()
        seen.push({
          method: request.method ?? "",
          path: request.url ?? "",
          headers: request.headers,
          text,
          body: text === "" ? undefined : JSON.parse(text),
          closed
        })
        response.on("close", () => {
          if (!response.writableFinished) Deferred.doneUnsafe(closed, Effect.succeed(Date.now()))
        })
        void answer(script.shift() ?? plain(599, { error: { message: "the script is over" } }), response)
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      const stop = Effect.callback<void>((done) => {
        server.closeAllConnections()
        server.close(() => done(Effect.void))
      })
      resume(
        Effect.succeed({
          url: `http://127.0.0.1:${port}/v1`,
          seen,
          reply: (...replies) => void script.push(...replies),
          stop
        })
      )
    })
  }),
  (server) => server.stop
)
