/** An HTTP server that treats the first request as a test wants, and answers all others properly. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"

/** The treatment of a request. `text` is its body. */
export type Respond = (response: ServerResponse, request: IncomingMessage, text: string) => void | Promise<void>

export interface Server {
  readonly url: string
  /** The requests that came, in order. */
  readonly seen: ReadonlyArray<IncomingMessage>
}

export const wait = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Writes the same bytes again and again, as fast as they are read, until nobody reads. */
export const flood = async (response: ServerResponse, bytes: Uint8Array, pause?: number): Promise<void> => {
  while (!response.destroyed) {
    const isRead = response.write(bytes)
    if (pause !== undefined) await wait(pause)
    else if (!isRead) {
      await new Promise<void>((resolve) => {
        const goOn = (): void => {
          response.off("drain", goOn).off("close", goOn)
          resolve()
        }
        response.on("drain", goOn).on("close", goOn)
      })
    }
  }
}

/** Starts a server on a free port; it is stopped with the scope. `respond` is asked with the number of the request. */
export const serve = (respond: (count: number) => Respond): Effect.Effect<Server, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Server & { readonly stop: Effect.Effect<void> }>((resume) => {
      const seen: Array<IncomingMessage> = []
      const server = createServer((request, response) => {
        const parts: Array<Buffer> = []
        request.on("data", (part: Buffer) => parts.push(part))
        request.on("end", () => {
          const respondNow = respond(seen.length)
          seen.push(request)
          response.on("error", () => undefined)
          void Promise.resolve(respondNow(response, request, Buffer.concat(parts).toString("utf8"))).catch(
            () => undefined
          )
        })
        request.on("error", () => undefined)
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        resume(
          Effect.succeed({
            url: `http://127.0.0.1:${port}`,
            seen,
            stop: Effect.callback<void>((done) => {
              server.closeAllConnections()
              server.close(() => done(Effect.void))
            })
          })
        )
      })
    }),
    (server) => server.stop
  )
