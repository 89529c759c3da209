/**
 * A server of OpenAI's Responses API over WebSockets, with HTTP beside it: a script of replies for each. It takes text
 * frames alone, as the protocol has no others.
 */
import { createHash } from "node:crypto"
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** The answer to a message: events, and then the end of the connection if there is to be one. */
export interface Reply {
  readonly events: ReadonlyArray<object | string>
  readonly end?: "cut" | "close"
}

/** A request, over a connection or by HTTP (`connection` is -1). */
export interface Seen {
  readonly connection: number
  // A test looks into it as it likes.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

export interface SocketServer {
  readonly url: string
  readonly seen: ReadonlyArray<Seen>
  /** The path and headers of each upgrade. */
  readonly upgrades: ReadonlyArray<{ readonly path: string; readonly headers: IncomingHttpHeaders }>
  readonly reply: (...replies: ReadonlyArray<Reply>) => void
  /** Sends an event on all connections, which nobody asked for. */
  readonly tell: (event: object) => void
  readonly open: () => number
  isUpgraded: boolean
}

const frame = (text: string, opcode = 1): Buffer => {
  const data = Buffer.from(text)
  const head =
    data.length < 126
      ? Buffer.from([0x80 | opcode, data.length])
      : data.length < 65_536
        ? Buffer.from([0x80 | opcode, 126, data.length >> 8, data.length & 255])
        : Buffer.concat([Buffer.from([0x80 | opcode, 127, 0, 0, 0, 0]), Buffer.alloc(4)])
  if (data.length >= 65_536) head.writeUInt32BE(data.length, 6)
  return Buffer.concat([head, data])
}

/** Reads the frames of a client, which are masked. */
const readFrames = (socket: Socket, take: (opcode: number, text: string) => void): void => {
  let bytes = Buffer.alloc(0)
  let message = ""
  socket.on("data", (part: Buffer) => {
    bytes = Buffer.concat([bytes, part])
    while (bytes.length >= 6) {
      const short = bytes[1]! & 127
      const [size, at] =
        short < 126
          ? [short, 2]
          : short === 126
            ? [bytes.readUInt16BE(2), 4]
            : [bytes.length < 10 ? Infinity : Number(bytes.readBigUInt64BE(2)), 10]
      if (bytes.length < at + 4 + size) return
      const mask = bytes.subarray(at, at + 4)
      const data = Buffer.from(bytes.subarray(at + 4, at + 4 + size).map((byte, index) => byte ^ mask[index % 4]!))
      const [isLast, opcode] = [(bytes[0]! & 128) !== 0, bytes[0]! & 15]
      bytes = bytes.subarray(at + 4 + size)
      message += data.toString("utf8")
      if (!isLast) continue
      take(opcode, message)
      message = ""
    }
  })
}

const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

export const make: Effect.Effect<SocketServer, never, Scope.Scope> = Effect.acquireRelease(
  Effect.callback<SocketServer & { readonly stop: Effect.Effect<void> }>((resume) => {
    const seen: Array<Seen> = []
    const upgrades: Array<SocketServer["upgrades"][number]> = []
    const script: Array<Reply> = []
    const sockets = new Set<Socket>()
    const server = createServer((request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        seen.push({ connection: -1, body: JSON.parse(Buffer.concat(parts).toString("utf8")) })
        response.writeHead(200, { "content-type": "text/event-stream" })
        for (const event of script.shift()?.events ?? []) response.write(`data: ${JSON.stringify(event)}\n\n`)
        response.end()
      })
    })
    server.on("upgrade", (request, socket: Socket) => {
      const connection = upgrades.length
      upgrades.push({ path: request.url ?? "", headers: request.headers })
      if (!state.isUpgraded) return void socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
      const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${guid}`).digest("base64")
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`
      )
      sockets.add(socket)
      socket.on("error", () => undefined)
      socket.on("close", () => sockets.delete(socket))
      readFrames(socket, (opcode, text) => {
        if (opcode === 8) return void socket.end(frame("", 8))
        if (opcode !== 1) return
        seen.push({ connection, body: JSON.parse(text) })
        const { end, events } = script.shift() ?? { events: [], end: "close" as const }
        for (const event of events) socket.write(frame(typeof event === "string" ? event : JSON.stringify(event)))
        // Behind the events, in a packet of its own.
        if (end === "cut") setTimeout(() => socket.resetAndDestroy(), 30)
        if (end === "close") setTimeout(() => socket.end(frame("\u0003\u00f0", 8)), 30)
      })
    })
    const state: SocketServer & { readonly stop: Effect.Effect<void> } = {
      url: "",
      seen,
      upgrades,
      reply: (...replies) => void script.push(...replies),
      tell: (event) => sockets.forEach((socket) => void socket.write(frame(JSON.stringify(event)))),
      open: () => sockets.size,
      isUpgraded: true,
      stop: Effect.callback<void>((done) => {
        for (const socket of sockets) socket.destroy()
        server.closeAllConnections()
        server.close(() => done(Effect.void))
      })
    }
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      resume(Effect.succeed(Object.assign(state, { url: `http://127.0.0.1:${port}` })))
    })
  }),
  ({ stop }) => stop
)
