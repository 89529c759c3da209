/** An `HttpClient` over a Unix socket, and the socket of the container engine. */
import * as NodeFs from "node:fs"
import * as NodeHttp from "node:http"
import type { Socket } from "node:net"
import * as NodeStream from "node:stream"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import { HttpClientError, TransportError } from "effect/http/HttpClientError"
import type { HttpClientRequest } from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import type * as Scope from "effect/Scope"
import { untraced } from "../../../support/http/untraced.ts"

/** Finds the socket: `DOCKER_HOST`, else Docker's, else Podman's of this user or of the machine. */
export const findSocket = (environment: { readonly [name: string]: string | undefined }): string => {
  const named = environment["DOCKER_HOST"]
  if (named?.startsWith("unix://") === true) return named.slice("unix://".length)
  const usual = "/var/run/docker.sock"
  const podman = [`${environment["XDG_RUNTIME_DIR"] ?? "/run"}/podman/podman.sock`, "/run/podman/podman.sock"]
  return [usual, ...podman].find((path) => NodeFs.existsSync(path)) ?? usual
}

/** Statuses whose response has no body. */
const withoutBody = new Set([204, 205, 304])

const headersOf = (headers: NodeHttp.IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")])
  )

const toResponse = (request: HttpClientRequest, incoming: NodeHttp.IncomingMessage) => {
  const status = incoming.statusCode ?? 500
  const isEmpty = withoutBody.has(status)
  if (isEmpty) incoming.resume()
  // Node has types of its own for web streams.
  const body = isEmpty ? null : (NodeStream.Readable.toWeb(incoming) as ReadableStream<Uint8Array>)
  return HttpClientResponse.fromWeb(request, new Response(body, { status, headers: headersOf(incoming.headers) }))
}

/** Makes a client whose requests go to a Unix socket, for any host. */
export const makeClient = (socketPath: string): HttpClient.HttpClient =>
  untraced(
    HttpClient.make((request, url, signal) =>
      Effect.callback((resume) => {
        const { body } = request
        const fail = (cause: unknown) =>
          resume(Effect.fail(new HttpClientError({ reason: new TransportError({ request, cause }) })))
        const clientRequest = NodeHttp.request(
          {
            socketPath,
            signal,
            method: request.method,
            path: `${url.pathname}${url.search}`,
            headers: {
              ...request.headers,
              ...(body._tag === "Uint8Array"
                ? { "content-type": body.contentType, "content-length": body.contentLength }
                : {}),
              host: "docker"
            }
          },
          (incoming) => resume(Effect.succeed(toResponse(request, incoming)))
        )
        clientRequest.on("error", fail)
        clientRequest.end(body._tag === "Uint8Array" ? body.body : undefined)
        return Effect.sync(() => void clientRequest.destroy())
      })
    )
  )

/**
 * Opens a connection that is the input of a container, until the end of the scope. The kernel closes it with this
 * process, however that ends.
 */
export const holdOpen = (socketPath: string, path: string): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.callback<Socket, unknown>((resume) => {
        const clientRequest = NodeHttp.request({
          socketPath,
          method: "POST",
          path,
          headers: { host: "docker", connection: "Upgrade", upgrade: "tcp" }
        })
        clientRequest.on("upgrade", (_, socket) => {
          // Its end is seen by the next command.
          socket.on("error", () => undefined)
          socket.resume()
          socket.unref()
          resume(Effect.succeed(socket))
        })
        clientRequest.on("response", (incoming) => {
          incoming.resume()
          resume(Effect.fail(new Error(`status ${incoming.statusCode ?? 0}`)))
        })
        clientRequest.on("error", (cause) => resume(Effect.fail(cause)))
        clientRequest.end()
        return Effect.sync(() => void clientRequest.destroy())
      }),
      (socket) => Effect.sync(() => void socket.destroy())
    )
  )
