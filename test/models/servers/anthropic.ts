/**
 * A server that speaks Anthropic's Messages API as a script says, checks every request against the API's rules, and
 * breaks in the ways in which servers break.
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"
import { violations } from "./anthropicRules.ts"

/** A request as it came, and when its connection was closed (milliseconds after it came) if it was before the end. */
export interface Recorded {
  readonly method: string
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly raw: string
  // A test knows its own request.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
  readonly closed: Promise<number>
}

/** The answer to a request. `hold` leaves the response open, `reset` breaks the connection after the chunks. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: ReadonlyArray<Uint8Array>
  readonly pause?: number
  readonly end: "end" | "hold" | "reset"
  /** Whether the request is checked against the rules of the API before. */
  readonly checked: boolean
}

const encoder = new TextEncoder()

/** Cuts bytes at the given places. */
export const cutBytes = (bytes: Uint8Array, places: Iterable<number>): ReadonlyArray<Uint8Array> => {
  const sorted = [...new Set([...places].filter((at) => at > 0 && at < bytes.length))].sort((a, b) => a - b)
  const bounds = [0, ...sorted, bytes.length]
  return bounds.slice(1).map((to, at) => bytes.subarray(bounds[at], to))
}

export type Event = { readonly type: string } & Readonly<Record<string, unknown>>

/** Events as server-sent events. */
export const toSse = (events: ReadonlyArray<Event>): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")

/** An answer as a stream of events, in one piece unless `cuts` says otherwise. */
export const stream = (
  events: ReadonlyArray<Event> | string,
  options?: {
    readonly cuts?: (length: number) => Iterable<number>
    readonly pause?: number
    readonly end?: Reply["end"]
    readonly headers?: Readonly<Record<string, string>>
  }
): Reply => {
  const bytes = encoder.encode(typeof events === "string" ? events : toSse(events))
  return {
    status: 200,
    headers: { "content-type": "text/event-stream; charset=utf-8", "request-id": "req_stream", ...options?.headers },
    chunks: cutBytes(bytes, options?.cuts?.(bytes.length) ?? []),
    end: options?.end ?? "end",
    checked: true,
    ...(options?.pause === undefined ? {} : { pause: options.pause })
  }
}

/** A whole answer in JSON. */
export const json = (status: number, body: unknown, headers?: Readonly<Record<string, string>>): Reply => ({
  status,
  headers: { "content-type": "application/json", "request-id": "req_json", ...headers },
  chunks: [encoder.encode(typeof body === "string" ? body : JSON.stringify(body))],
  end: "end",
  checked: status < 400
})

/** An error in Anthropic's form. */
export const error = (
  status: number,
  type: string,
  message: string,
  options?: { readonly headers?: Readonly<Record<string, string>>; readonly code?: string }
): Reply =>
  json(
    status,
    {
      type: "error",
      error: { type, message, ...(options?.code === undefined ? {} : { details: { error_code: options.code } }) },
      request_id: "req_json"
    },
    options?.headers
  )

/** No answer at all. */
export const silence: Reply = { status: 0, headers: {}, chunks: [], end: "hold", checked: true }

/** A connection that breaks before an answer. */
export const hangup: Reply = { status: 0, headers: {}, chunks: [], end: "reset", checked: true }

type Block =
  | { readonly text: string | ReadonlyArray<string>; readonly citations?: ReadonlyArray<unknown> }
  | { readonly thinking: string | ReadonlyArray<string>; readonly signature?: string }
  | { readonly redacted: string }
  | { readonly call: string; readonly id: string; readonly input: unknown }
  | { readonly server: string; readonly id: string; readonly input: unknown }
  | { readonly block: Readonly<Record<string, unknown>> }

const pieces = (value: string | ReadonlyArray<string>): ReadonlyArray<string> =>
  typeof value === "string" ? (value === "" ? [] : [value]) : value

const halves = (text: string): ReadonlyArray<string> => {
  const middle = Math.floor(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)]
}

const blockEvents = (block: Block, index: number): ReadonlyArray<Event> => {
  const start = (content_block: unknown): Event => ({ type: "content_block_start", index, content_block })
  const delta = (value: unknown): Event => ({ type: "content_block_delta", index, delta: value })
  const end: Event = { type: "content_block_stop", index }
  if ("text" in block) {
    return [
      start({ type: "text", text: "", citations: null }),
      ...pieces(block.text).map((text) => delta({ type: "text_delta", text })),
      ...(block.citations ?? []).map((citation) => delta({ type: "citations_delta", citation })),
      end
    ]
  }
  if ("thinking" in block) {
    return [
      start({ type: "thinking", thinking: "", signature: "" }),
      ...pieces(block.thinking).map((thinking) => delta({ type: "thinking_delta", thinking })),
      ...(block.signature === undefined ? [] : [delta({ type: "signature_delta", signature: block.signature })]),
      end
    ]
  }
  if ("redacted" in block) return [start({ type: "redacted_thinking", data: block.redacted }), end]
  if ("block" in block) return [start(block.block), end]
  const name = "call" in block ? block.call : block.server
  const type = "call" in block ? "tool_use" : "server_tool_use"
  // A string is raw JSON, or the rest of it.
  const raw = typeof block.input === "string" ? block.input : JSON.stringify(block.input)
  return [
    start({ type, id: block.id, name, input: {}, caller: { type: "direct" } }),
    delta({ type: "input_json_delta", partial_json: "" }),
    ...halves(raw).map((partial_json) => delta({ type: "input_json_delta", partial_json })),
    end
  ]
}

/** The events of an answer, as the API sends them. */
export const answer = (
  blocks: ReadonlyArray<Block>,
  options?: {
    readonly stop?: string
    readonly stopSequence?: string
    readonly stopDetails?: unknown
    readonly usage?: Readonly<Record<string, unknown>>
    readonly finalUsage?: Readonly<Record<string, unknown>>
    readonly model?: string
  }
): ReadonlyArray<Event> => [
  {
    type: "message_start",
    message: {
      id: "msg_01",
      type: "message",
      role: "assistant",
      model: options?.model ?? "claude-opus-5-5",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 1, ...options?.usage }
    }
  },
  { type: "ping" },
  ...blocks.flatMap(blockEvents),
  {
    type: "message_delta",
    delta: {
      stop_reason: options?.stop ?? (blocks.some((block) => "call" in block) ? "tool_use" : "end_turn"),
      stop_sequence: options?.stopSequence ?? null,
      stop_details: options?.stopDetails ?? null
    },
    usage: { output_tokens: 7, ...options?.finalUsage }
  },
  { type: "message_stop" }
]

/** A text answer. */
export const say = (text: string): Reply => stream(answer([{ text }]))

export interface Server {
  readonly url: string
  readonly requests: Array<Recorded>
  /** How many connections were made. */
  readonly connections?: () => number
}

const wait = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const write = async (response: http.ServerResponse, reply: Reply): Promise<void> => {
  if (reply.status > 0) response.writeHead(reply.status, reply.headers)
  for (const chunk of reply.chunks) {
    if (response.destroyed) return
    response.write(chunk)
    // Its own packet: the client sees the cut.
    if (reply.chunks.length > 1) await wait(reply.pause ?? 0)
  }
  if (reply.end === "end") response.end()
  if (reply.end === "reset") setImmediate(() => response.destroy())
}

/** A server whose requests have to keep to these rules. */
export const serveBy =
  (rules: (request: Recorded) => ReadonlyArray<string>) =>
  (
    ...replies: ReadonlyArray<Reply | ((request: Recorded) => Reply)>
  ): Effect.Effect<Required<Server>, never, Scope.Scope> =>
    Effect.map(
      Effect.acquireRelease(
        Effect.callback<Required<Omit<Server, "url">> & { readonly server: http.Server }>((resume) => {
          const requests: Array<Recorded> = []
          let connections = 0
          const server = http.createServer((request, response) => {
            const parts: Array<Buffer> = []
            const began = Date.now()
            const closed = new Promise<number>((resolve) => {
              response.on("close", () => resolve(Date.now() - began))
            })
            request.on("data", (part: Buffer) => parts.push(part))
            request.on("end", () => {
              const raw = Buffer.concat(parts).toString("utf8")
              const recorded: Recorded = {
                method: request.method ?? "",
                url: request.url ?? "",
                headers: request.headers,
                raw,
                body: raw === "" ? undefined : JSON.parse(raw),
                closed
              }
              const next = replies[Math.min(requests.length, replies.length - 1)]!
              requests.push(recorded)
              const reply = typeof next === "function" ? next(recorded) : next
              const problems = reply.checked ? rules(recorded) : []
              void write(
                response,
                problems.length === 0
                  ? reply
                  : error(400, "invalid_request_error", `against the rules: ${problems.join("; ")}`)
              )
            })
          })
          server.on("connection", () => connections++)
          server.listen(0, "127.0.0.1", () =>
            resume(Effect.succeed({ server, requests, connections: () => connections }))
          )
        }),
        ({ server }) =>
          Effect.callback<void>((resume) => {
            server.closeAllConnections()
            server.close(() => resume(Effect.void))
          })
      ),
      ({ connections, requests, server }) => ({
        connections,
        // The server listens on a port.
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        requests
      })
    )

/** Starts a server that gives the replies in order, the last one again and again. */
export const serve = serveBy(violations)
