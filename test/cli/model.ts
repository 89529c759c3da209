/** A model over HTTP, in Anthropic's form, that answers by the text of a request. */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"
import { answer, toSse } from "../models/servers/anthropic.ts"

export type Blocks = Parameters<typeof answer>[0]

/** `undefined` never answers, a text is the problem with the key. */
export const model = (reply: (body: string) => Blocks | string | undefined) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly server: http.Server; readonly bodies: Array<string> }>((resume) => {
      const bodies: Array<string> = []
      const server = http.createServer((request, response) => {
        let body = ""
        request.on("data", (chunk) => (body += chunk))
        request.on("end", () => {
          bodies.push(body)
          const blocks = reply(body)
          if (blocks === undefined) return
          if (typeof blocks === "string") {
            response.writeHead(403, { "content-type": "application/json" })
            response.end(JSON.stringify({ type: "error", error: { type: "permission_error", message: blocks } }))
            return
          }
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.end(toSse(answer(blocks)))
        })
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed({ server, bodies })))
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  ).pipe(
    Effect.map(({ bodies, server }) => ({
      bodies,
      env: {
        ANTHROPIC_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        ANTHROPIC_API_KEY: "sk-ant-test",
        OLLAMA_BASE_URL: "http://127.0.0.1:1"
      }
    }))
  )
