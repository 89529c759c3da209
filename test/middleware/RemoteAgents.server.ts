/**
 * A server that speaks the LangGraph server API, or the Agent Protocol, and breaks in the ways in which servers break.
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Schema } from "effect"

/** A request as it came. `closed` says whether its connection was closed before it was answered. */
export interface Recorded {
  readonly method: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: unknown
  closed: boolean
}

type Answer = (request: Recorded, response: http.ServerResponse) => void

const json =
  (status: number, body: unknown): Answer =>
  (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" })
    response.end(body === undefined ? undefined : JSON.stringify(body))
  }

interface Run {
  readonly id: string
  readonly thread: string
  status: string
  error?: string
}

const CreateRun = Schema.Struct({
  assistant_id: Schema.Literal("analyst"),
  input: Schema.Struct({
    messages: Schema.Tuple([Schema.Struct({ role: Schema.Literal("user"), content: Schema.String })])
  }),
  multitask_strategy: Schema.optionalKey(Schema.Literal("interrupt"))
})

const CreateProtocolRun = Schema.Struct({
  thread_id: Schema.String,
  agent_id: Schema.Literal("analyst"),
  messages: Schema.Tuple([Schema.Struct({ role: Schema.Literal("user"), content: Schema.String })]),
  on_completion: Schema.Literal("keep")
})

const now = "2026-11-22T00:00:00.000000+00:00"

/** Starts one on a free port of this machine; it is closed with the scope. */
export const server = Effect.gen(function* () {
  const requests: Array<Recorded> = []
  const runs: Array<Run> = []
  const threads = new Map<string, { messages: Array<unknown>; interrupts: Record<string, unknown>; status: string }>()
  let override: ((request: Recorded) => Answer | undefined) | undefined
  let count = 0
  let delay = 0

  const begin = (thread: string, content: string, strategy: string | undefined): Answer => {
    const known = threads.get(thread)
    if (known === undefined) return json(404, { detail: "Thread not found" })
    const busy = runs.find((run) => run.thread === thread && run.status === "running")
    if (busy !== undefined && strategy !== "interrupt") return json(409, { detail: "Thread is busy" })
    if (busy !== undefined) busy.status = "interrupted"
    known.messages.push({ type: "human", content, id: `h-${count}` })
    const run: Run = { id: `run-${++count}`, thread, status: "running" }
    runs.push(run)
    return json(200, {
      run_id: run.id,
      thread_id: thread,
      status: "pending",
      created_at: now,
      updated_at: now,
      metadata: {}
    })
  }

  const show = (run: Run | undefined): Answer =>
    run === undefined
      ? json(404, { detail: "Run not found" })
      : json(200, {
          run_id: run.id,
          thread_id: run.thread,
          status: run.status,
          created_at: now,
          metadata: {},
          ...(run.error === undefined ? {} : { error: run.error })
        })

  const cancel = (run: Run | undefined, status: number): Answer => {
    if (run === undefined) return json(404, { detail: "Run not found" })
    if (run.status !== "running") return json(409, { detail: "Run is over" })
    run.status = "interrupted"
    return json(status, undefined)
  }

  const route = (request: Recorded): Answer => {
    const { body, method } = request
    const [path = "", query = ""] = request.path.split("?")
    const parts = path.split("/").slice(1)
    const key = `${method} ${parts.map((part, index) => (index % 2 === 1 && part !== "wait" ? "*" : part)).join("/")}`
    const run = (id: string | undefined) => runs.find((one) => one.id === id)
    switch (key) {
      case "POST threads": {
        const id = `thread-${++count}`
        threads.set(id, { messages: [], interrupts: {}, status: "idle" })
        return json(200, {
          thread_id: id,
          created_at: now,
          updated_at: now,
          metadata: {},
          status: "idle",
          values: null
        })
      }
      case "POST threads/*/runs": {
        const asked = Schema.decodeUnknownSync(CreateRun)(body)
        return begin(parts[1] ?? "", asked.input.messages[0].content, asked.multitask_strategy)
      }
      case "POST runs": {
        const asked = Schema.decodeUnknownSync(CreateProtocolRun)(body)
        return begin(asked.thread_id, asked.messages[0].content, undefined)
      }
      case "GET threads/*/runs/*":
        return show(run(parts[3]))
      case "GET runs/*":
        return show(run(parts[1]))
      case "POST threads/*/runs/*/cancel":
        return query === "wait=0&action=interrupt" ? cancel(run(parts[3]), 202) : json(422, {})
      case "POST runs/*/cancel":
        return query === "wait=false&action=interrupt" ? cancel(run(parts[1]), 204) : json(422, {})
      case "GET threads/*": {
        const thread = threads.get(parts[1] ?? "")
        if (thread === undefined) return json(404, { detail: "Thread not found" })
        const { interrupts, messages, status } = thread
        return json(200, {
          thread_id: parts[1],
          created_at: now,
          metadata: {},
          status,
          values: { messages },
          interrupts
        })
      }
      default:
        return json(404, { detail: key })
    }
  }

  const listener = http.createServer((incoming, response) => {
    const chunks: Array<Buffer> = []
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
    incoming.on("end", () => {
      const raw = Buffer.concat(chunks).toString()
      const request: Recorded = {
        method: incoming.method ?? "",
        path: incoming.url ?? "",
        headers: incoming.headers,
        body: raw === "" ? undefined : JSON.parse(raw),
        closed: false
      }
      response.on("close", () => {
        request.closed = !response.writableFinished
      })
      requests.push(request)
      const answer = override?.(request) ?? route(request)
      if (delay > 0 && request.method === "POST") setTimeout(() => answer(request, response), delay)
      else answer(request, response)
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      listener.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        listener.closeAllConnections()
        listener.close(() => resume(Effect.void))
      })
  )
  // A server that listens on a port has an address with one.
  const { port } = listener.address() as AddressInfo

  /** Ends the running run with its agent's message. */
  const finish = (message: unknown, status = "success", error?: string) => {
    const run = runs.findLast((one) => one.status === "running")
    if (run === undefined) throw new Error("no run goes on")
    if (message !== undefined) threads.get(run.thread)?.messages.push(message)
    run.status = status
    if (error !== undefined) run.error = error
  }

  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    runs,
    threads,
    finish,
    /** Acts on a request at once, and answers later. */
    delayAnswers: (millis: number) => {
      delay = millis
    },
    /** Answers requests by this function, if it returns an answer. */
    answerBy: (f: typeof override) => {
      override = f
    },
    json
  }
})
