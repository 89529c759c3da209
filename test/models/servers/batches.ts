/** Servers of OpenAI's and Anthropic's batches, with the forms of their APIs. A batch is over after some looks. */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"
import { message, response } from "../openai/wire.ts"

// A test looks into it as it likes.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

/** One request of a batch. */
export interface Line {
  readonly id: string
  readonly body: Any
}

/** The end of one request. */
export type Fate = "answered" | "refused" | "expired" | "lost"

export interface Batches {
  readonly url: string
  /** The method and path of each request. */
  readonly seen: ReadonlyArray<string>
  readonly headers: ReadonlyArray<IncomingMessage["headers"]>
  /** The requests of each batch. */
  readonly batches: Array<{ readonly lines: ReadonlyArray<Line>; readonly input?: string; looks: number; at?: number }>
  /** The statuses of the next looks that fail. */
  readonly failures: Array<number>
  /** True lets batches end. */
  isDone: boolean
  /** Has batches end as this. */
  end: "ended" | "failed" | "cancelled"
}

const textOf = (body: Any): string => JSON.stringify(body.input ?? body.messages)

const fateOf = (body: Any): Fate => {
  const text = textOf(body)
  return text.includes("REFUSE")
    ? "refused"
    : text.includes("EXPIRE")
      ? "expired"
      : text.includes("LOSE")
        ? "lost"
        : "answered"
}

/** The person's words, in capitals. */
const answerTo = (body: Any): string => /say (\w+)/.exec(textOf(body))?.[1]?.toUpperCase() ?? "?"

const usage = { input_tokens: 1_000_000, output_tokens: 1_000_000 }

const openAiResult = ({ body, id }: Line): object | undefined => {
  const result = { id: `res_${id}`, custom_id: id }
  switch (fateOf(body)) {
    case "answered": {
      const details = {
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens_details: { reasoning_tokens: 0 }
      }
      const whole = response({
        output: [message(answerTo(body))],
        usage: { ...usage, ...details, total_tokens: 2_000_000 }
      })
      return { ...result, response: { status_code: 200, request_id: "r", body: whole }, error: null }
    }
    case "refused": {
      const error = { message: "no such parameter: sing", type: "invalid_request_error", code: null }
      return { ...result, response: { status_code: 400, request_id: "r", body: { error } }, error: null }
    }
    case "expired":
      return {
        ...result,
        response: null,
        error: { code: "batch_expired", message: "This request could not be executed." }
      }
    case "lost":
      return undefined
  }
}

const claudeResult = ({ body, id }: Line): object | undefined => {
  switch (fateOf(body)) {
    case "answered": {
      const whole = {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude-opus-5-5",
        content: [{ type: "text", text: answerTo(body) }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { ...usage, service_tier: "batch" }
      }
      return { custom_id: id, result: { type: "succeeded", message: whole } }
    }
    case "refused": {
      const error = { type: "invalid_request_error", message: "no such parameter: sing" }
      return { custom_id: id, result: { type: "errored", error: { type: "error", error, request_id: "r" } } }
    }
    case "expired":
      return { custom_id: id, result: { type: "expired" } }
    case "lost":
      return undefined
  }
}

const linesOf = (results: ReadonlyArray<object | undefined>): string =>
  results
    .filter((one) => one !== undefined)
    .map((one) => `${JSON.stringify(one)}\n`)
    .join("")

type Answer = readonly [status: number, body: unknown]

/** Two batches of a list with the newest first, behind the batch whose number follows `after` in the query. */
const pageOf = (
  state: Batches,
  path: string
): ReadonlyArray<readonly [at: number, batch: Batches["batches"][number]]> => {
  const [, after] = /after[^=]*=\w*_(\d+)/.exec(path) ?? []
  const newest = [...state.batches.entries()].toReversed()
  return newest.filter(([at]) => after === undefined || at < Number(after)).slice(0, 2)
}

/** The answer to a request of OpenAI's API. */
const openAi =
  (state: Batches, uploads: Array<ReadonlyArray<Line>>) =>
  (method: string, path: string, text: string): Answer => {
    const [, at = "0"] = /_(\d+)/.exec(path) ?? []
    const batch = state.batches[Number(at)]
    if (method === "POST" && path === "/v1/files") {
      const lines = text.split("\n").filter((line) => line.startsWith('{"custom_id"'))
      const isRight =
        text.includes('name="purpose"\r\n\r\nbatch') && lines.every((line) => line.includes('"/v1/responses"'))
      if (!isRight) return [400, { error: { message: "the file is wrong" } }]
      uploads.push(lines.map((line) => JSON.parse(line)).map(({ body, custom_id: id }) => ({ id, body })))
      return [200, { id: `file-in_${uploads.length - 1}`, object: "file" }]
    }
    if (method === "POST" && path === "/v1/batches") {
      const { completion_window, endpoint, input_file_id } = JSON.parse(text)
      const lines = uploads[Number(/_(\d+)/.exec(input_file_id)?.[1])]
      if (endpoint !== "/v1/responses" || completion_window !== "24h" || lines === undefined)
        return [400, { error: { message: "no" } }]
      state.batches.push({ lines, input: input_file_id, looks: 0 })
      return [200, { id: `batch_${state.batches.length - 1}`, object: "batch", status: "validating" }]
    }
    if (method === "GET" && path.startsWith("/v1/batches?")) {
      const data = pageOf(state, path).map(([number, { at = Date.now(), input }]) => {
        return { id: `batch_${number}`, input_file_id: input, created_at: at / 1_000 }
      })
      return [200, { object: "list", data, has_more: true }]
    }
    if (batch === undefined) return [404, { error: { message: "not found" } }]
    if (path.startsWith("/v1/batches/")) {
      batch.looks++
      const errors = { data: [{ code: "token_limit_exceeded", message: "Enqueued token limit reached for gpt-5" }] }
      const status = !state.isDone ? "in_progress" : state.end === "ended" ? "completed" : state.end
      const files = status === "completed" ? { output_file_id: `file-out_${at}`, error_file_id: `file-err_${at}` } : {}
      return [200, { id: `batch_${at}`, status, ...files, ...(status === "failed" ? { errors } : {}) }]
    }
    const isError = path.includes("file-err")
    const lines = batch.lines.filter(({ body }) => (fateOf(body) === "answered") !== isError)
    // Results come in any order.
    return [200, linesOf(lines.toReversed().map(openAiResult))]
  }

/** The answer to a request of Azure's v1 API. It processes a file for a while before it takes a batch of it. */
const azure = (state: Batches): ReturnType<typeof openAi> => {
  const answer = openAi(state, [])
  const looks = new Map<string, number>()
  return (method, path, text) => {
    const [, own = ""] = /^\/openai(\/v1\/.+)/.exec(path) ?? []
    const [, file] = /^\/v1\/files\/(file-in_\d+)$/.exec(own) ?? []
    if (file !== undefined) {
      looks.set(file, (looks.get(file) ?? 0) + 1)
      return [200, { id: file, object: "file", status: looks.get(file) === 1 ? "running" : "processed" }]
    }
    const input: string = own === "/v1/batches" && method === "POST" ? JSON.parse(text).input_file_id : ""
    if (input !== "" && (looks.get(input) ?? 0) < 2) return [400, { error: { message: "the file is not ready" } }]
    const [status, body] = answer(method, own, text)
    if (own === "/v1/files" && status === 200) return [200, { ...(body as object), status: "pending" }]
    return [status, input === "" || status !== 200 ? body : { ...(body as object), status: "Validating" }]
  }
}

/** The answer to a request of Anthropic's API. */
const claude =
  (state: Batches) =>
  (method: string, path: string, text: string): Answer => {
    const [, at = "0"] = /msgbatch_(\d+)/.exec(path) ?? []
    if (method === "POST" && path === "/v1/messages/batches") {
      const { requests } = JSON.parse(text)
      const isRight = requests.every(
        ({ custom_id, params }: Any) => /^[\w-]{1,64}$/.test(custom_id) && params.stream === undefined
      )
      if (!isRight)
        return [400, { type: "error", error: { type: "invalid_request_error", message: "the list is wrong" } }]
      state.batches.push({ lines: requests.map(({ custom_id: id, params: body }: Any) => ({ id, body })), looks: 0 })
      return [
        200,
        { id: `msgbatch_${state.batches.length - 1}`, type: "message_batch", processing_status: "in_progress" }
      ]
    }
    const batch = state.batches[Number(at)]
    if (path.startsWith("/v1/messages/batches?")) {
      const data = pageOf(state, path).map(([number, { at: created = Date.now(), lines }]) => ({
        id: `msgbatch_${number}`,
        created_at: new Date(created).toISOString(),
        request_counts: { processing: lines.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 }
      }))
      return [200, { data, has_more: true }]
    }
    if (batch === undefined) return [404, { type: "error", error: { type: "not_found_error", message: "not found" } }]
    if (path.endsWith("/results")) return [200, linesOf(batch.lines.toReversed().map(claudeResult))]
    batch.looks++
    // The address of the results is the server's word: it leads elsewhere.
    return [
      200,
      {
        id: `msgbatch_${at}`,
        processing_status: state.isDone ? "ended" : "in_progress",
        results_url: "http://127.0.0.1:1/steal"
      }
    ]
  }

/** Starts a server. */
const serve = (
  make: (state: Batches) => (method: string, path: string, text: string) => Answer
): Effect.Effect<Batches, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly state: Batches; readonly stop: () => void }>((resume) => {
        const seen: Array<string> = []
        const headers: Array<IncomingMessage["headers"]> = []
        const failures: Array<number> = []
        const server = createServer((request, answer) => {
          const parts: Array<Buffer> = []
          request.on("data", (part: Buffer) => parts.push(part))
          request.on("end", () => {
            const { method = "", url = "" } = request
            seen.push(`${method} ${url}`)
            headers.push(request.headers)
            const failure = method === "GET" ? failures.shift() : undefined
            const [status, body] =
              failure === undefined
                ? reply(method, url, Buffer.concat(parts).toString("utf8"))
                : [failure, { error: { message: "busy" } }]
            answer.writeHead(status, {
              "content-type": typeof body === "string" ? "application/x-jsonl" : "application/json"
            })
            answer.end(typeof body === "string" ? body : JSON.stringify(body))
          })
        })
        server.listen(0, "127.0.0.1", () => {
          const { port } = server.address() as AddressInfo
          state = { url: `http://127.0.0.1:${port}`, seen, headers, failures, batches: [], isDone: true, end: "ended" }
          reply = make(state)
          resume(
            Effect.succeed({
              state,
              stop: () => {
                server.closeAllConnections()
                server.close()
              }
            })
          )
        })
        let state: Batches
        let reply: ReturnType<typeof make> = () => [500, {}]
      }),
      ({ stop }) => Effect.sync(stop)
    ),
    ({ state }) => state
  )

export const serveOpenAi = serve((state) => openAi(state, []))
export const serveAzure = serve(azure)
export const serveClaude = serve(claude)
