import { createServer } from "node:http"
/** A server of two tenants on a port of this machine, and a client of its wire. */
import { NodeHttpServer } from "@effect/platform-node"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { AgentEvent } from "effect-deepagents"
import { Server } from "effect-deepagents/server"
import type { SessionStore } from "effect-deepagents/sessions"
import type { Storage } from "effect-deepagents/stores"
import { HttpRouter, HttpServer } from "effect/http"
import { NetAddress } from "effect/net"

const people: Readonly<Record<string, Server.Principal>> = {
  "token-of-ada": { tenant: "acme", id: "ada", roles: ["operator"] },
  "token-of-eve": { tenant: "acm", id: "ada", roles: [] }
}

const auth = Server.bearer({
  verify: (token) => {
    const known = people[Redacted.value(token)]
    return known === undefined ? Effect.fail(new Server.Unauthorized()) : Effect.succeed(known)
  }
})

/** Serves on any free port until the scope closes, and gives the address. */
export const serve = (
  runs: Layer.Layer<Server.Runs, Server.RunsError, SessionStore.SessionStore | Storage.Storage>,
  options?: Server.HttpOptions,
  more: Layer.Layer<
    never,
    unknown,
    HttpRouter.HttpRouter | Server.Runs | SessionStore.SessionStore | Storage.Storage
  > = Layer.empty
): Effect.Effect<string, unknown, Scope.Scope | SessionStore.SessionStore | Storage.Storage> =>
  Effect.gen(function* () {
    const app = Layer.merge(Server.http(options), more).pipe(Layer.provide([Layer.fresh(runs), auth]))
    const context = yield* Layer.build(
      HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(
        Layer.provideMerge(
          Layer.fresh(
            NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: "50 millis" })
          )
        )
      )
    )
    const { address } = Context.get(context, HttpServer.HttpServer)
    return `http://127.0.0.1:${NetAddress.isInetAddress(address) ? address.port : 0}`
  })

/** JSON of the wire, as tests look into it: `at("pending", 0, "id")`. */
const look =
  (value: unknown) =>
  (...path: ReadonlyArray<string | number>): unknown =>
    path.reduce<unknown>(
      (at, key) =>
        typeof at === "object" && at !== null ? Object.getOwnPropertyDescriptor(at, key)?.value : undefined,
      value
    )

/** Answers of the wire. */
export interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
  readonly json: unknown
  readonly at: ReturnType<typeof look>
  readonly header: (name: string) => string | null
}

export const ask = (
  url: string,
  options: {
    readonly token?: string
    readonly body?: unknown
    readonly method?: string
    readonly headers?: object
  } = {}
): Effect.Effect<Answer> =>
  Effect.promise(async () => {
    const { body, method = body === undefined ? "GET" : "POST", token = "token-of-ada" } = options
    const response = await fetch(url, {
      method,
      headers: {
        ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...options.headers
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
    })
    const text = await response.text()
    const type = response.headers.get("content-type") ?? ""
    const json: unknown = type.includes("json") ? JSON.parse(text) : undefined
    const header = (name: string) => response.headers.get(name)
    return { status: response.status, type, text, json, at: look(json), header }
  })

const parse = (block: string): { frame: Server.Frame | undefined; isBeat: boolean } => {
  const fields = new Map(
    block.split("\n").map((line) => {
      const at = line.indexOf(": ")
      return [line.slice(0, at), line.slice(at + 2)] as const
    })
  )
  const position = Server.Position.make(fields.get("id") ?? "")
  const data = JSON.parse(fields.get("data") ?? "null")
  if (fields.get("event") === "reset") return { frame: { _tag: "Reset", position, to: data.to }, isBeat: false }
  if (fields.get("event") === "event") {
    return { frame: { _tag: "Event", position, event: Effect.runSync(AgentEvent.decode(data)) }, isBeat: false }
  }
  return { frame: undefined, isBeat: true }
}

/** The frames of a whole response. */
export const framesIn = (text: string): ReadonlyArray<Server.Frame> =>
  text.split("\n\n").flatMap((block) => parse(block).frame ?? [])

/** Reads frames until the server ends the response, or `isEnough` after some frame; both leave. */
export const readFrames = (
  url: string,
  options: {
    readonly token?: string
    readonly after?: string | undefined
    readonly isEnough?: (frames: ReadonlyArray<Server.Frame>) => boolean
  } = {}
): Effect.Effect<{ readonly frames: ReadonlyArray<Server.Frame>; readonly isCut: boolean }> =>
  Effect.promise(async (signal) => {
    const frames: Array<Server.Frame> = []
    const { after, isEnough, token = "token-of-ada" } = options
    const abort = new AbortController()
    signal.addEventListener("abort", () => abort.abort())
    const response = await fetch(url, {
      signal: abort.signal,
      headers: { authorization: `Bearer ${token}`, ...(after === undefined ? {} : { "last-event-id": after }) }
    })
    if (response.status !== 200 || response.body === null)
      throw new Error(`${response.status} ${await response.text()}`)
    let rest = ""
    const decoder = new TextDecoder()
    try {
      for await (const chunk of response.body) {
        const blocks = `${rest}${decoder.decode(chunk, { stream: true })}`.split("\n\n")
        rest = blocks.pop() ?? ""
        for (const block of blocks) {
          const { frame } = parse(block)
          if (frame === undefined) continue
          frames.push(frame)
          if (isEnough?.(frames) === true) {
            abort.abort()
            return { frames, isCut: true }
          }
        }
      }
      return { frames, isCut: false }
    } catch {
      return { frames, isCut: true }
    }
  })
