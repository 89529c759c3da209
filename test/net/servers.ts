/** Servers on a loopback port of the moment, for tests. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface Local {
  readonly url: string
  readonly port: number
  /** The requests that came, in order. */
  readonly seen: ReadonlyArray<{
    readonly method: string
    readonly url: string
    readonly headers: IncomingMessage["headers"]
    readonly body: string
  }>
}

/** Starts a server; it ends with the scope, and cuts all open connections. */
export const serve = (
  answer: (request: IncomingMessage, response: ServerResponse, body: string) => void
): Effect.Effect<Local, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ readonly local: Local; readonly close: () => Promise<void> }>((resolve) => {
          const seen: Array<Local["seen"][number]> = []
          const server = createServer((request, response) => {
            const chunks: Array<Buffer> = []
            request.on("data", (chunk: Buffer) => chunks.push(chunk))
            request.on("end", () => {
              const body = Buffer.concat(chunks).toString()
              seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body })
              answer(request, response, body)
            })
          })
          server.listen(0, "127.0.0.1", () => {
            const { port } = server.address() as AddressInfo
            resolve({
              local: { url: `http://127.0.0.1:${port}`, port, seen },
              close: () =>
                new Promise((done) => {
                  server.close(() => done())
                  server.closeAllConnections()
                })
            })
          })
        })
    ),
    ({ close }) => Effect.promise(close)
  ).pipe(Effect.map(({ local }) => local))
