/**
 * A client of a server of this library: its threads, their events, inputs and decisions. When its connection is cut, or the
 * server starts again, it goes on behind the last event.
 *
 * The server's answers are untrusted: they are decoded, and bounded in size and time. No redirect is followed, so the token
 * goes to the server alone. Fold the frames by `Transcript.makeReader` of `effect-deepagents/view`.
 *
 * ```ts
 * import { Effect, Redacted, Stream } from "effect"
 * import { ServerClient } from "effect-deepagents/server"
 * import { FetchHttpClient } from "effect/http"
 *
 * const program = Effect.gen(function* () {
 *   const client = yield* ServerClient.make({ url: "http://127.0.0.1:8137", token: Redacted.make("…") })
 *   const { position } = yield* client.start("report-7", { agent: "helper", input: "Write it", id: "mail-7" })
 *   return yield* Stream.runCollect(client.observe("report-7", { after: position }))
 * }).pipe(Effect.provide(FetchHttpClient.layer))
 * ```
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as Exit from "effect/Exit"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { decode as decodeEvent } from "../core/AgentEvent.ts"
import { Decision, Request } from "../core/Approval.ts"
import type { Block } from "../core/Content.ts"
import * as Message from "../core/Message.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { readBeginning } from "../support/http/body.ts"
import { describe } from "../support/http/describe.ts"
import { withoutRedirects } from "../support/http/hops.ts"
import { isLoopback } from "../support/http/redirect.ts"
import { untraced } from "../support/http/untraced.ts"
import { defined } from "../support/json/defined.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { cleanLine } from "../support/text/clean.ts"
import { nameProblem } from "../support/text/names.ts"
import { cut } from "../support/text/text.ts"
import { type Frame, Position } from "./internal/position.ts"
import * as shapes from "./internal/shapes.ts"

/**
 * A request to a server failed.
 *
 * - `Address`: the address is wrong, or plain HTTP to another machine
 * - `Unreachable`: nobody answers there now, or the connection broke; the same request may succeed later
 * - `Certificate`: the server's certificate is not trusted
 * - `Unauthorized`: the server does not accept the token
 * - `Refused`: the server refuses the request, with this `status`
 * - `Malformed`: the answer is not one of this protocol, too large, or a redirect
 */
export class ServerClientError extends TaggedError<ServerClientError>()("ServerClientError", {
  reason: Schema.Literals(["Address", "Unreachable", "Certificate", "Unauthorized", "Refused", "Malformed"]),
  problem: Schema.String,
  status: Schema.optionalKey(Schema.Finite)
}) {
  override get message(): string {
    return this.problem
  }
}

/** The address of a server, and the token for it. */
export interface Options {
  /** The address of the server: `https:`, or `http:` on this machine. */
  readonly url: string
  /** The token that each request sends. Default: none. */
  readonly token?: Redacted.Redacted | undefined
}

/** The connection to the events of a thread: lost ones are tried again at `until`, in milliseconds since the epoch. */
export type Link =
  | { readonly _tag: "Live" }
  | { readonly _tag: "Lost"; readonly until: number; readonly error: ServerClientError | undefined }

const State = Schema.Literals(["idle", "working", "waiting"])

const Thread = Schema.Struct({
  id: Schema.String,
  title: Schema.optionalKey(Schema.NullOr(Schema.String)),
  state: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  mode: Schema.optionalKey(Schema.String),
  thinking: Schema.optionalKey(Schema.String)
})

const Threads = Schema.Struct({
  threads: Schema.Array(Thread),
  next: Schema.optionalKey(Schema.NullOr(Schema.String))
})

const Offers = Schema.Struct({
  agents: Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.optionalKey(Schema.String) })),
  models: Schema.optionalKey(Schema.Array(Schema.String)),
  modes: Schema.optionalKey(Schema.Array(Schema.String)),
  thinking: Schema.optionalKey(Schema.Array(Schema.String)),
  files: Schema.optionalKey(Schema.Boolean)
})

const Status = Schema.Struct({ state: State, pending: Schema.Array(Request), position: Position })

const History = Schema.Struct({
  messages: Schema.Array(Schema.Struct({ entry: Schema.String, message: Schema.Unknown })),
  next: Schema.optionalKey(Schema.NullOr(Schema.String))
})

/** Stored messages, the oldest first, with their entries. A message of a later version of the server is `undefined`. */
export interface History {
  readonly messages: ReadonlyArray<{ readonly entry: string; readonly message: Message.Message | undefined }>
  /** The `before` of the page before this one; `undefined` for the first page of the thread. */
  readonly next: string | undefined
}

const Acceptance = Schema.Struct({ runId: Schema.String, position: Position, isNew: Schema.Boolean })

/** A text, or parts such as images. */
export type Input = string | { readonly content: ReadonlyArray<Block> }

/** An input, as `Runs.start` takes it. */
export interface Start {
  readonly agent: string
  readonly input: Input
  /** Counts the input once. Default: a new id for each call. */
  readonly id?: string | undefined
  /** Waits for the run at work (`queue`), or fails. Default: `queue`. */
  readonly busy?: "queue" | "refuse" | undefined
  /** The new model of the thread; `null` is the one of the server. Default: the thread keeps its model. */
  readonly model?: string | null | undefined
  /** The new mode of the thread. Default: the thread keeps its mode. */
  readonly mode?: string | null | undefined
  /** The new level of thinking of the thread; `null` is the model's own. Default: the thread keeps its level. */
  readonly thinking?: string | null | undefined
}

type Reply<A> = Effect.Effect<A, ServerClientError>

/** The operations of a server, by the names of `Server.Runs`. */
export interface ServerClient {
  /** The agents of the server, the models, modes and levels of thinking to choose from, and whether it shows files. */
  readonly offers: Reply<typeof Offers.Type>
  /** Lists the threads of the tenant, the last changed first. */
  readonly threads: (options?: {
    /** Lists threads whose messages have all of these words. Default: all threads. */
    readonly search?: string | undefined
    /** The most threads of a page, up to 200. Default: 50. */
    readonly limit?: number | undefined
    /** The `next` of the page before. Default: the first page. */
    readonly cursor?: string | undefined
  }) => Reply<typeof Threads.Type>
  readonly status: (thread: string) => Reply<typeof Status.Type>
  /** Gives the last stored messages, or those up to the `next` of a later page. */
  readonly history: (
    thread: string,
    options?: {
      /** The most messages, up to 1,000. Default: 100. */
      readonly limit?: number | undefined
      /** The `next` of the page behind. Default: the last page. */
      readonly before?: string | undefined
    }
  ) => Reply<History>
  /** Makes a new thread from the entries up to `entry`, the end of a turn, or from all. Returns its id. */
  readonly fork: (thread: string, entry?: string) => Reply<string>
  /** Goes back to the end of a turn; `null` is the beginning. Later entries stay as a branch. Fails while a run is at work. */
  readonly rewind: (thread: string, entry: string | null) => Reply<void>
  /** Gives the bytes of a file of the thread; `undefined` if it is missing, or the server shows no files. */
  readonly file: (thread: string, path: string) => Reply<Uint8Array | undefined>
  readonly start: (thread: string, input: Start) => Reply<typeof Acceptance.Type>
  readonly decide: (thread: string, decisions: ReadonlyArray<Decision>) => Reply<typeof Acceptance.Type>
  readonly steer: (thread: string, input: Input) => Reply<void>
  /** Ends the run at work. Returns whether a run was at work. */
  readonly cancel: (thread: string) => Reply<boolean>
  /**
   * Streams the frames behind a position, to the end of the work, or for ever with `follow`. A lost connection goes on
   * behind its last frame; `onLink` learns of it. It fails when the server refuses the reader.
   */
  readonly observe: (
    thread: string,
    options?: {
      /** The position of the last frame that the reader has. Default: the beginning. */
      readonly after?: Position | undefined
      /** Goes on when the thread is idle. Default: `false`. */
      readonly follow?: boolean | undefined
      /** Called when the connection is there, and when it is lost. Default: nothing. */
      readonly onLink?: ((link: Link) => Effect.Effect<void>) | undefined
    }
  ) => Stream.Stream<Frame, ServerClientError>
}

/** The time that an answer may take, and the silence after which a connection is lost: a server writes more often. */
const patience = { answer: "30 seconds", silence: "60 seconds" } as const

/** The most bytes of an answer, and characters of an event, a position and the words of a refusal. */
const most = { answer: 8 << 20, event: 16 << 20, position: 200, problem: 500 } as const

/** The milliseconds before each next try. */
const delays = [250, 1_000, 2_000, 4_000, 8_000]

const makeError = (reason: ServerClientError["reason"], problem: string, status?: number): ServerClientError =>
  new ServerClientError({ reason, problem, ...defined({ status }) })

const certificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/

const misread = makeError(
  "Malformed",
  "The server's answer is not of this protocol: check the address and the version of the server."
)

/** Describes a connection that failed. */
const toError = (host: string) => (error: HttpClientError) => {
  const words = describe(error)
  return certificate.test(words)
    ? makeError(
        "Certificate",
        `The certificate of ${host} is not trusted here (${/\w{0,60}(?:CERT|SIGNED|VERIFY|ISSUER)\w{0,60}/.exec(words)?.[0]}). If its authority is your own, name its file in NODE_EXTRA_CA_CERTS; never turn the check off.`
      )
    : makeError("Unreachable", `The server at ${host} can't be reached. Is it running, and is the address right?`)
}

const Problem = Schema.fromJsonString(
  Schema.Struct({ detail: Schema.optionalKey(Schema.String), status: Schema.optionalKey(Schema.Finite) })
)

/** Describes a refusal. The words of the server are made harmless. */
const refusalOf = (text: string, answered: number): ServerClientError => {
  const decoded = Schema.decodeUnknownResult(Problem)(text)
  const { detail, status = answered } = Result.isSuccess(decoded) ? decoded.success : {}
  const words = cut(cleanLine(detail ?? `The server answered with status ${status}.`), most.problem)
  if (status >= 300 && status < 400) {
    return makeError("Malformed", "The server redirects, which is not followed: give the address that it leads to.")
  }
  return makeError(status === 401 ? "Unauthorized" : "Refused", words, status)
}

/** Reports whether the same request may succeed later. */
const isPassing = ({ reason, status = 0 }: ServerClientError): boolean =>
  reason === "Unreachable" || (reason === "Refused" && (status === 408 || status === 429 || status >= 500))

/** Reads the bytes of an answer. */
const readBytes = (host: string, response: HttpClientResponse) =>
  readBeginning(response, most.answer).pipe(
    Effect.mapError(toError(host)),
    Effect.flatMap(({ bytes, isWhole }) => (isWhole ? Effect.succeed(bytes) : misread))
  )

/** Reads the text of an answer. */
const readText = (host: string, response: HttpClientResponse) =>
  Effect.map(readBytes(host, response), (bytes) => new TextDecoder().decode(bytes))

/** Reads stored messages. */
const readHistory = ({ messages, next }: typeof History.Type): Effect.Effect<History> =>
  Effect.map(
    Effect.forEach(messages, ({ entry, message }) =>
      Effect.map(Effect.exit(Message.decode(message)), (decoded) => ({
        entry,
        message: Exit.isSuccess(decoded) ? decoded.value : undefined
      }))
    ),
    (decoded) => ({ messages: decoded, next: next ?? undefined })
  )

const Reset = Schema.fromJsonString(Schema.Struct({ to: Schema.Literals(["beginning", "checkpoint"]) }))
const decodeJson = Schema.decodeUnknownExit(Schema.fromJsonString(Schema.Unknown))

/** Reads the frame of a packet. Events of later versions give none. */
const frameOf = Effect.fnUntraced(function* ({ data, event, id }: Sse.Event) {
  const position = Position.make(id ?? "")
  if (position.length > most.position) return yield* misread
  if (event === "error") return yield* refusalOf(data, 500)
  if (event === "reset") {
    const { to } = yield* Effect.mapError(Schema.decodeUnknownEffect(Reset)(data), () => misread)
    return [{ _tag: "Reset", position, to }] satisfies ReadonlyArray<Frame>
  }
  const json = decodeJson(data)
  if (event !== "event" || Exit.isFailure(json)) return []
  const decoded = yield* Effect.exit(decodeEvent(json.value))
  return Exit.isSuccess(decoded) ? ([{ _tag: "Event", position, event: decoded.value }] satisfies [Frame]) : []
})

/** Reads the frames in bytes. */
const framesIn = (bytes: Stream.Stream<Uint8Array, ServerClientError>): Stream.Stream<Frame, ServerClientError> =>
  Stream.suspend(() => {
    const packets: Array<Sse.Event> = []
    const parser = Sse.makeParser((packet) => packet._tag === "Event" && packets.push(packet), {
      maxEventSize: most.event
    })
    const readPiece = Effect.fnUntraced(function* (text: string) {
      if (parser.feed(text) !== undefined) return yield* misread
      return (yield* Effect.forEach(packets.splice(0), frameOf)).flat()
    })
    return Stream.decodeText(bytes).pipe(Stream.mapEffect(readPiece), Stream.flattenIterable)
  })

/** Reads the address of a server: without a slash at its end. */
const readAddress = Effect.fnUntraced(function* (text: string) {
  const url = URL.parse(text)
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:"
  if (url === null || !isWeb || url.username !== "" || url.password !== "") {
    return yield* makeError(
      "Address",
      "This is no address of a server. Expected an address such as https://agents.example.com or http://127.0.0.1:4000, without a name or a password."
    )
  }
  if (url.protocol === "http:" && !isLoopback(url)) {
    const problem = `Plain HTTP to ${url.host} shows the token and the thread to everybody between. Use https://, or forward its port to this machine: ssh -L.`
    return yield* makeError("Address", problem)
  }
  return { host: url.host, base: `${url.origin}${url.pathname.replace(/\/+$/, "")}` }
})

/** The path of a thread. `.` and `..` would lead to another path, and half of a surrogate pair has no form in an address. */
const pathOf = (thread: string, what: string): Effect.Effect<string, ServerClientError> => {
  const problem = thread === "." || thread === ".." ? "it is a step of a path" : nameProblem(thread, 255)
  return problem === undefined
    ? Effect.succeed(`/threads/${encodeURIComponent(thread)}/${what}`)
    : Effect.fail(makeError("Refused", `This is no id of a thread: ${problem}.`))
}

const encodeDecisions = Schema.encodeSync(Schema.Array(Decision))

const refuseMake = makeEffectCheck<ServerClientError>("ServerClient.make", shapes.serverClientMake)

/** Makes the client of a server. It fails with `Address`, and connects with the first request. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<ServerClient, ServerClientError, HttpClient.HttpClient> {
  yield* refuseMake(options) ?? Effect.void
  const { base, host } = yield* readAddress(options.url)
  const { token } = options
  const http = HttpClient.withScope(untraced(yield* HttpClient.HttpClient))

  /** Sends a request, and gives the response to it. The connection is closed with the scope. */
  const send = Effect.fnUntraced(
    function* (request: HttpClientRequest.HttpClientRequest) {
      const authorization = token === undefined ? {} : { authorization: `Bearer ${Redacted.value(token)}` }
      const response = yield* Effect.mapError(
        http.execute(HttpClientRequest.setHeaders(request, authorization)),
        toError(host)
      )
      if (response.status >= 200 && response.status < 300) return response
      return yield* refusalOf(yield* readText(host, response), response.status)
    },
    Effect.timeoutOrElse({
      duration: patience.answer,
      orElse: () => Effect.fail(makeError("Unreachable", `The server at ${host} did not answer in time.`))
    }),
    withoutRedirects
  )

  /** Sends a request, and reads the whole answer. */
  const receive = <A>(
    request: HttpClientRequest.HttpClientRequest,
    read: (host: string, response: HttpClientResponse) => Effect.Effect<A, ServerClientError>
  ) =>
    Effect.flatMap(send(request), (response) => read(host, response)).pipe(
      Effect.timeoutOrElse({
        duration: patience.answer,
        orElse: () => Effect.fail(makeError("Unreachable", `The server at ${host} did not answer in time.`))
      }),
      Effect.scoped
    )

  const ask = Effect.fnUntraced(function* <A>(
    schema: Schema.ConstraintDecoder<A>,
    request: HttpClientRequest.HttpClientRequest
  ) {
    const text = yield* receive(request, readText)
    const json = decodeJson(text === "" ? "null" : text)
    const value = Exit.isSuccess(json) ? Schema.decodeUnknownResult(schema)(json.value) : undefined
    return value !== undefined && Result.isSuccess(value) ? value.success : yield* misread
  })

  /** Asks about a thread. */
  const askThread = <A>(schema: Schema.ConstraintDecoder<A>, thread: string, what: string, body?: object) =>
    Effect.flatMap(pathOf(thread, what), (path) => ask(schema, body === undefined ? get(path) : post(path, body)))

  const get = (path: string) => HttpClientRequest.get(`${base}${path}`, { headers: { accept: "application/json" } })
  const post = (path: string, body: object) =>
    HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(`${base}${path}`), body)

  /** Streams the frames of one connection. */
  const connect = (path: string, onOpen: Effect.Effect<void>) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const request = HttpClientRequest.get(`${base}${path}`, { headers: { accept: "text/event-stream" } })
        const { stream } = yield* send(request)
        yield* onOpen
        const silence = makeError("Unreachable", `The server at ${host} is silent.`)
        const bytes = Stream.mapError(stream, toError(host))
        return framesIn(Stream.timeoutOrElse(bytes, { duration: patience.silence, orElse: () => Stream.fail(silence) }))
      })
    )

  const observe: ServerClient["observe"] = (thread, { after, follow = false, onLink = () => Effect.void } = {}) =>
    Stream.suspend(() => {
      let position = after
      let tries = 0
      let isOver = false
      const opened = Effect.suspend(() => onLink({ _tag: "Live" }))
      /** Waits for the next try. */
      const wait = Effect.fnUntraced(function* (error: ServerClientError | undefined) {
        if (error !== undefined && !isPassing(error)) return yield* error
        const delay = delays[Math.min(tries++, delays.length - 1)] ?? 0
        yield* onLink({ _tag: "Lost", until: (yield* Clock.currentTimeMillis) + delay, error })
        yield* Effect.sleep(delay)
      })
      const keep = (frame: Frame) =>
        Effect.sync(() => {
          tries = 0
          position = frame.position
        })
      const end = Effect.suspend(() => {
        isOver = !follow
        return follow ? wait(undefined) : Effect.void
      })
      const attempt = Stream.suspend(() => {
        const query = new URLSearchParams(defined({ follow: follow ? "true" : undefined, after: position }))
        const frames = Stream.unwrap(Effect.map(pathOf(thread, `events?${query}`), (path) => connect(path, opened)))
        return Stream.concat(frames, Stream.fromEffectDrain(end)).pipe(
          Stream.tap(keep),
          Stream.catch((error) => Stream.fromEffectDrain(wait(error)))
        )
      })
      return Stream.unfold(0, (n) => Effect.sync(() => (isOver ? undefined : ([n, n + 1] as const)))).pipe(
        Stream.flatMap(() => attempt)
      )
    })

  return {
    offers: ask(Offers, get("/agents")),
    threads: ({ cursor, limit = 50, search } = {}) => {
      const query = new URLSearchParams(defined({ limit: String(limit), search, cursor }))
      return ask(Threads, get(`/threads?${query}`))
    },
    status: (thread) => askThread(Status, thread, "state"),
    history: (thread, { before, limit = 100 } = {}) => {
      const query = new URLSearchParams(defined({ limit: String(limit), before }))
      return Effect.flatMap(askThread(History, thread, `history?${query}`), readHistory)
    },
    fork: (thread, entry) =>
      Effect.map(askThread(Schema.Struct({ id: Schema.String }), thread, "fork", defined({ entry })), ({ id }) => id),
    rewind: (thread, entry) => Effect.asVoid(askThread(Schema.Unknown, thread, "rewind", { entry })),
    file: (thread, path) =>
      pathOf(thread, `files/content?${new URLSearchParams({ path })}`).pipe(
        Effect.flatMap((address) => receive(get(address), readBytes)),
        Effect.catchIf(
          ({ status }) => status === 404,
          () => Effect.undefined
        )
      ),
    start: (thread, { id = Message.makeId(), ...input }) =>
      askThread(Acceptance, thread, "runs", { ...defined(input), id }),
    decide: (thread, decisions) =>
      askThread(Acceptance, thread, "decisions", { decisions: encodeDecisions(decisions) }),
    steer: (thread, input) => Effect.asVoid(askThread(Schema.Null, thread, "steer", { input })),
    cancel: (thread) =>
      Effect.map(
        askThread(Schema.Struct({ isCancelled: Schema.Boolean }), thread, "cancel", {}),
        ({ isCancelled }) => isCancelled
      ),
    observe
  }
})
