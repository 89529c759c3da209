/** A forward proxy on loopback that applies the rules, for programs with network code of their own. */
import { randomBytes } from "node:crypto"
import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import { type Duplex, pipeline } from "node:stream"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { guardedLookup, type Resolve } from "./connect.ts"
import { type Judge, makeRefused, type Refused } from "./rules.ts"

export interface Proxy {
  readonly port: number
  /** The password, for any user name. */
  readonly token: string
}

/** A listening server of `node:net`, in a module whose declarations need no types of Node. */
export interface Listener {
  readonly address: () => unknown
  readonly close: () => unknown
}

interface Options {
  readonly judge: Judge
  readonly resolve?: Resolve | undefined
  /** Answers requests to the proxy itself. */
  readonly own?: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  /** A listener that was made elsewhere, in place of a port of loopback. The end of the scope closes it. */
  readonly listener?: Listener | undefined
}

/** Headers that belong to one connection. */
const hopByHop = new Set(
  "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split(
    " "
  )
)

/**
 * Removes the headers of the connection, and those named in `Connection` (RFC 9110, 7.6.1). The length stays: without it
 * the body would be read as the next request.
 */
export const endToEnd = (headers: IncomingMessage["headers"]): Record<string, string | Array<string>> => {
  const named = new Set((headers.connection ?? "").toLowerCase().split(/[\s,]+/u))
  const result: Record<string, string | Array<string>> = {}
  for (const [name, value] of Object.entries(headers)) {
    const stays = hopByHop.has(name) || (named.has(name) && name !== "content-length")
    if (value !== undefined && !stays) result[name] = value
  }
  return result
}

/** Frames a body without a length. Node omits the frame for some methods, and the body would be the next request. */
const frameOf = ({ headers }: IncomingMessage): Record<string, string> =>
  headers["transfer-encoding"] === undefined ? {} : { "transfer-encoding": "chunked" }

const isAllowed = (request: IncomingMessage, token: string): boolean => {
  const credentials = /^Basic (.+)$/i.exec(request.headers["proxy-authorization"] ?? "")?.[1] ?? ""
  return Buffer.from(credentials, "base64").toString("utf8").split(":").slice(1).join(":") === token
}

const challenge = 'Proxy-Authenticate: Basic realm="rules"'

const parse = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined)

const portOf = (url: URL): number => (url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port))

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "")

const unreachable = (error: Error): Refused | undefined => ("rule" in error ? (error as Refused) : undefined)

/** Starts a proxy. The end of the scope closes it and its connections. */
export const start = ({ judge, listener, own, resolve }: Options): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly proxy: Proxy; readonly close: () => void }>((resume) => {
      const token = randomBytes(24).toString("base64url")
      const sockets = new Set<Duplex>()
      const track = (socket: Duplex) => {
        sockets.add(socket)
        socket.on("close", () => sockets.delete(socket)).on("error", () => socket.destroy())
      }

      const forward = (request: IncomingMessage, response: ServerResponse, url: URL) => {
        const refuse = (status: number, message: string) => {
          if (response.headersSent) response.destroy()
          else response.writeHead(status, { "content-type": "text/plain" }).end(message)
        }
        const why = url.protocol === "http:" ? judge.url(url) : makeRefused("scheme", "only http is forwarded as it is")
        if (why !== undefined) return refuse(403, why.message)
        const onward = httpRequest(
          {
            host: hostOf(url),
            port: portOf(url),
            path: url.pathname + url.search,
            method: request.method,
            // The judged host replaces the `Host` of the request (RFC 9112, 3.2.2).
            headers: { ...endToEnd(request.headers), ...frameOf(request), host: url.host },
            lookup: guardedLookup(judge, portOf(url), resolve),
            agent: false
          },
          (answer) => {
            response.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers))
            pipeline(answer, response, () => undefined)
          }
        )
        onward.on("error", (error) => {
          const rule = unreachable(error)
          refuse(rule === undefined ? 502 : 403, rule?.message ?? "the host can't be reached")
        })
        response.on("close", () => onward.destroy())
        pipeline(request, onward, () => undefined)
      }

      const server = createServer((request, response) => {
        const url = parse(request.url ?? "")
        if (url === undefined && own !== undefined) own(request, response)
        else if (!isAllowed(request, token)) {
          response.writeHead(407, { "proxy-authenticate": 'Basic realm="rules"' }).end()
        } else if (url === undefined) response.writeHead(400).end("this is a proxy")
        else forward(request, response, url)
      })

      server.on("connect", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        const answer = (status: string, ...lines: ReadonlyArray<string>) =>
          socket.end([`HTTP/1.1 ${status}`, ...lines, "Content-Length: 0", "", ""].join("\r\n"))
        if (!isAllowed(request, token)) {
          answer("407 Proxy Authentication Required", challenge)
          return
        }
        const url = parse(`https://${request.url ?? ""}`)
        // A tunnel may carry http too: its content is invisible here.
        const why = url === undefined ? undefined : judge.url(url)
        if (url === undefined || why !== undefined) {
          answer("403 Forbidden")
          return
        }
        const port = portOf(url)
        const onward: Socket = connect({ host: hostOf(url), port, lookup: guardedLookup(judge, port, resolve) })
        track(onward)
        let isOpen = false
        onward.on("connect", () => {
          isOpen = true
          socket.write("HTTP/1.1 200 Connection Established\r\n\r\n")
          onward.write(head)
          pipeline(onward, socket, () => undefined)
          pipeline(socket, onward, () => undefined)
        })
        onward.on("error", (error) => {
          if (isOpen) socket.destroy()
          else answer(unreachable(error) === undefined ? "502 Bad Gateway" : "403 Forbidden")
        })
        socket.on("close", () => onward.destroy())
        onward.on("close", () => socket.destroy())
      })
      server.on("connection", track)
      const listen = (callback: () => void) =>
        listener === undefined ? server.listen(0, "127.0.0.1", callback) : server.listen(listener, callback)
      listen(() => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const close = () => {
          server.close()
          for (const socket of sockets) socket.destroy()
        }
        resume(Effect.succeed({ proxy: { port, token }, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ proxy }) => proxy))
