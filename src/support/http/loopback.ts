/** A listener on this machine for one redirect of an OAuth server: on 127.0.0.1 only. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import * as Effect from "effect/Effect"
import { valueAt } from "../json/valueAt.ts"
import type { Redirect } from "./redirect.ts"

const lasts = "300 seconds"

const close = (server: Server, answering: () => ServerResponse | undefined): Effect.Effect<void> =>
  Effect.sync(() => {
    server.close()
    const response = answering()
    if (response === undefined || response.closed) server.closeAllConnections()
    else response.once("close", () => server.closeAllConnections())
  })

const escapes: { readonly [character: string]: string } = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }

const page = (text: string): string =>
  `<!doctype html><meta charset="utf-8"><title>Sign-in</title><p>${text.replaceAll(/[&<>"]/g, (c) => valueAt(escapes, c) ?? c)}</p>`

const answer = (response: ServerResponse, status: number, text: string): void => {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'",
    "referrer-policy": "no-referrer",
    connection: "close"
  })
  response.end(page(text))
}

const listen = (server: Server, port: number): Effect.Effect<number, string> =>
  Effect.callback((resume) => {
    server.once("error", (error) => resume(Effect.fail(`no port of 127.0.0.1 could be opened: ${error.message}`)))
    server.listen(port, "127.0.0.1", () => {
      const address = server.address()
      resume(
        typeof address === "object" && address !== null ? Effect.succeed(address.port) : Effect.fail("there is no port")
      )
    })
  })

/** Takes one request at a path, and closes after 300 seconds or with its scope. */
export const loopbackAt = (path: string): Redirect => ({
  open: Effect.fnUntraced(function* (receive, port = 0) {
    const context = yield* Effect.context()
    let host = ""
    let answering: ServerResponse | undefined
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      const { url = "/" } = request
      const isAsked = request.method === "GET" && request.headers.host === host && url.split("?")[0] === path
      if (!isAsked) return answer(response, 404, "There is nothing here.")
      if (answering !== undefined) return answer(response, 410, "This was used already.")
      answering = response
      Effect.runForkWith(context)(
        Effect.map(receive(`http://${host}${url}`), (text) => {
          answer(response, 200, text)
        })
      )
    }
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, handle)),
      (opened) => close(opened, () => answering)
    )
    host = `127.0.0.1:${yield* listen(server, port)}`
    yield* Effect.forkScoped(
      Effect.andThen(
        Effect.sleep(lasts),
        close(server, () => answering)
      )
    )
    return `http://${host}${path}`
  })
})

/** Takes one request at `/callback`. */
export const loopback: Redirect = loopbackAt("/callback")
