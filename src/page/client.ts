/** The requests of the page to its server. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { decode as decodeEvent } from "../core/AgentEvent.ts"
import { type Decision, Request } from "../core/Approval.ts"
import type { Block } from "../core/Content.ts"
import { JsonObject } from "../core/Json.ts"
import { decode as decodeMessage, type Message } from "../core/Message.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import type { Frame } from "../view/Transcript.ts"
import { makeParser, type Packet } from "./sse.ts"

/** A request that failed. `status` is 0 for a server that can't be reached. */
export class Refused extends TaggedError<Refused>()("Refused", {
  status: Schema.Finite,
  problem: Schema.String
}) {
  override get message(): string {
    return this.problem
  }
}

const Time = Schema.Union([Schema.String, Schema.Finite])

const Thread = Schema.Struct({
  id: Schema.String,
  title: Schema.optionalKey(Schema.NullOr(Schema.String)),
  createdAt: Schema.optionalKey(Time),
  updatedAt: Schema.optionalKey(Time),
  state: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  mode: Schema.optionalKey(Schema.String),
  thinking: Schema.optionalKey(Schema.String),
  forkOf: Schema.optionalKey(Schema.String)
})
export type Thread = typeof Thread.Type

const Threads = Schema.Struct({
  threads: Schema.Array(Thread),
  next: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type Threads = typeof Threads.Type

const Offers = Schema.Struct({
  agents: Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.optionalKey(Schema.String) })),
  models: Schema.optionalKey(Schema.Array(Schema.String)),
  modes: Schema.optionalKey(Schema.Array(Schema.String)),
  thinking: Schema.optionalKey(Schema.Array(Schema.String)),
  files: Schema.optionalKey(Schema.Boolean),
  apps: Schema.optionalKey(Schema.Boolean)
})
export type Agents = (typeof Offers.Type)["agents"]

const Problem = Schema.Struct({ detail: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Schema.String) })

const unreachable = "The server can't be reached. Is it still running?"

const decodeProblem = Schema.decodeUnknownExit(Problem)

/** The sentence of a response that is a failure. */
const problemIn = (body: unknown, status: number): string => {
  const decoded = decodeProblem(body)
  const { detail, title } = Exit.isSuccess(decoded) ? decoded.value : {}
  return detail ?? title ?? `The server answered with status ${status}.`
}

const jsonOf = (response: Response) =>
  Effect.orElseSucceed(
    Effect.tryPromise((): Promise<unknown> => response.json()),
    () => undefined
  )

const send = Effect.fnUntraced(function* (method: string, path: string, body?: unknown, headers = {}) {
  const response = yield* Effect.tryPromise({
    try: (signal) =>
      fetch(path, {
        method,
        signal,
        credentials: "same-origin",
        redirect: "error",
        headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      }),
    catch: () => new Refused({ status: 0, problem: unreachable })
  })
  if (response.ok) return response
  return yield* new Refused({ status: response.status, problem: problemIn(yield* jsonOf(response), response.status) })
})

const misread = () => new Refused({ status: 0, problem: "The server answered in another form. Load this page again." })

const ask = <A>(schema: Schema.Codec<A, unknown>, method: string, path: string, body?: unknown) =>
  send(method, path, body).pipe(
    Effect.flatMap(jsonOf),
    Effect.flatMap((json) => Effect.mapError(Schema.decodeUnknownEffect(schema)(json), misread))
  )

const tell = (method: string, path: string, body?: unknown) => Effect.asVoid(send(method, path, body))

const of = (thread: string, what: string) => `threads/${encodeURIComponent(thread)}${what === "" ? "" : `/${what}`}`

/** Gives a token for a session, which a cookie keeps. */
export const openSession = (token: string) => tell("POST", "session", { token })

/** The agents of the server, the models, modes and levels of thinking to choose from, and whether it shows files. */
export const offers = ask(Offers, "GET", "agents")

export const threads = (search: string, cursor?: string) => {
  const query = new URLSearchParams({ limit: "50" })
  if (search !== "") query.set("search", search)
  if (cursor !== undefined) query.set("cursor", cursor)
  return ask(Threads, "GET", `threads?${query}`)
}

const State = Schema.Struct({ state: Schema.String })

/** `idle`, `working` or `waiting`. */
export const state = (thread: string) => Effect.map(ask(State, "GET", of(thread, "state")), ({ state }) => state)

/** The words of a person: a text, or parts with images. */
export type Words = string | { readonly content: ReadonlyArray<Block> }

export interface Input {
  readonly agent: string
  readonly input: Words
  readonly id: string
  /** The new model of the thread; `null` is the one of the server. */
  readonly model?: string | null
  /** The new mode of the thread. */
  readonly mode?: string
  /** The new level of thinking of the thread; `null` is the model's own. */
  readonly thinking?: string | null
}

export const start = (thread: string, input: Input) => tell("POST", of(thread, "runs"), input)
export const steer = (thread: string, input: Words) => tell("POST", of(thread, "steer"), { input })
export const cancel = (thread: string) => tell("POST", of(thread, "cancel"), {})
export const decide = (thread: string, decisions: ReadonlyArray<Decision>) =>
  tell("POST", of(thread, "decisions"), { decisions })
export const archive = (thread: string) => tell("POST", of(thread, "archive"), {})
export const remove = (thread: string) => tell("DELETE", of(thread, ""))

const History = Schema.Struct({
  messages: Schema.Array(Schema.Struct({ entry: Schema.String, message: Schema.Struct({ id: Schema.String }) })),
  next: Schema.optionalKey(Schema.NullOr(Schema.String))
})

/** Finds the stored entry before a message: `null` for the first one, `undefined` for an unknown message. */
export const entryBefore = Effect.fnUntraced(function* (thread: string, messageId: string) {
  let before: string | undefined
  for (;;) {
    const query = before === undefined ? "" : `&before=${encodeURIComponent(before)}`
    const page: typeof History.Type = yield* ask(History, "GET", of(thread, `history?limit=500${query}`))
    const at = page.messages.findIndex(({ message }) => message.id === messageId)
    if (at > 0) return page.messages[at - 1]?.entry
    // `next` names the entry before this page.
    if (at === 0) return page.next ?? null
    if (page.next === undefined || page.next === null) return undefined
    before = page.next
  }
})

export const rewind = (thread: string, entry: string | null) => tell("POST", of(thread, "rewind"), { entry })

const Forked = Schema.Struct({ id: Schema.String })

export const fork = (thread: string, entry: string | undefined) =>
  Effect.map(ask(Forked, "POST", of(thread, "fork"), entry === undefined ? {} : { entry }), ({ id }) => id)

const Side = Schema.Struct({
  threadId: Schema.String,
  rounds: Schema.Finite,
  calls: Schema.Finite,
  tokens: Schema.Finite,
  cost: Schema.optionalKey(Schema.Finite),
  messages: Schema.Array(Schema.Unknown),
  isCut: Schema.optionalKey(Schema.Boolean)
})
const Comparison = Schema.Struct({ shared: Schema.Finite, left: Side, right: Side })

/** One of two threads, with the messages of its own. */
export interface Side extends Omit<typeof Side.Type, "messages"> {
  readonly messages: ReadonlyArray<Message>
}
export interface Comparison {
  readonly shared: number
  readonly left: Side
  readonly right: Side
}

const readSide = (side: typeof Side.Type): Effect.Effect<Side, Refused> =>
  Effect.map(Effect.mapError(Effect.forEach(side.messages, decodeMessage), misread), (messages) => ({
    ...side,
    messages
  }))

/** Compares two threads. */
export const compare = Effect.fnUntraced(function* (thread: string, other: string) {
  const { left, right, shared } = yield* ask(Comparison, "GET", of(thread, `compare?with=${encodeURIComponent(other)}`))
  return { shared, left: yield* readSide(left), right: yield* readSide(right) } satisfies Comparison
})

const Inbox = Schema.Struct({
  items: Schema.Array(Schema.Struct({ threadId: Schema.String, request: Request })),
  next: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type InboxItem = (typeof Inbox.Type)["items"][number]

/** The requests of all threads. */
export const inbox = Effect.map(ask(Inbox, "GET", "inbox?limit=100"), ({ items }) => items)

const Entry = Schema.Struct({ path: Schema.String, kind: Schema.String, size: Schema.optionalKey(Schema.Finite) })
export type Entry = typeof Entry.Type

const Folder = Schema.Struct({
  path: Schema.String,
  entries: Schema.Array(Entry),
  isCut: Schema.optionalKey(Schema.Boolean)
})
export type Folder = typeof Folder.Type

const FileText = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("text"),
    text: Schema.String,
    endLine: Schema.Finite,
    totalLines: Schema.Finite,
    size: Schema.Finite,
    nextColumn: Schema.optionalKey(Schema.Finite)
  }),
  Schema.Struct({ kind: Schema.Literal("binary"), mimeType: Schema.String, size: Schema.Finite })
])
export type FileText = typeof FileText.Type

const at = (path: string | undefined) => (path === undefined ? "" : `?path=${encodeURIComponent(path)}`)

/** Lists a folder of the thread's files; by default the working folder. */
export const folder = (thread: string, path?: string) => ask(Folder, "GET", of(thread, `files${at(path)}`))

export const fileText = (thread: string, path: string, line = 1, column = 0) =>
  ask(FileText, "GET", of(thread, `files/text${at(path)}&line=${line}&column=${column}`))

/** The address of a file's bytes, which the server gives as a download only. */
export const addressOf = (thread: string, path: string) => of(thread, `files/content${at(path)}`)

const AppTools = Schema.Struct({ tools: Schema.Array(Schema.String) })

/** The tools whose results have an app, by name. */
export const appTools = (thread: string) => Effect.map(ask(AppTools, "GET", of(thread, "apps")), ({ tools }) => tools)

const App = Schema.Struct({
  server: Schema.String,
  tool: Schema.String,
  arguments: JsonObject,
  result: Schema.optionalKey(Schema.Struct({ text: Schema.String, isError: Schema.Boolean })),
  origins: Schema.Array(Schema.String)
})
export type App = typeof App.Type

/** Describes the app of a call. */
export const app = (thread: string, call: string) => ask(App, "GET", of(thread, `app?call=${encodeURIComponent(call)}`))

/** The address of an app's frame. It reaches the allowed origins only. */
export const appFrameOf = (thread: string, call: string, allowed: ReadonlyArray<string>) =>
  of(thread, `app/frame?${new URLSearchParams([["call", call], ...allowed.map((one) => ["allow", one])])}`)

/** Posts a call of an app. */
export const callApp = (thread: string, body: object) => tell("POST", of(thread, "app"), body)

/** Makes a frame of a packet; `undefined` for packets that this page does not know, such as events of later versions. */
const frameOf = Effect.fnUntraced(function* ({ data, event, id }: Packet) {
  const json = yield* Effect.orElseSucceed(
    Effect.try((): unknown => JSON.parse(data)),
    () => undefined
  )
  if (event === "reset") {
    const to = json !== null && typeof json === "object" && "to" in json ? json.to : undefined
    return { _tag: "Reset", position: id, to: to === "beginning" ? to : "checkpoint" } satisfies Frame
  }
  if (event !== "event") return undefined
  const decoded = yield* Effect.exit(decodeEvent(json))
  return Exit.isSuccess(decoded) ? ({ _tag: "Event", position: id, event: decoded.value } satisfies Frame) : undefined
})

/** Silence after which a connection counts as lost: the server sends a comment more often. */
const silence = "60 seconds"

/** Reads the frames behind a position until the connection ends. `take` gets all frames of one piece. */
export const readFrames = Effect.fnUntraced(function* (
  thread: string,
  after: string | undefined,
  on: { readonly open: () => void; readonly take: (frames: ReadonlyArray<Frame>) => void }
) {
  const query = after === undefined ? "" : `&after=${encodeURIComponent(after)}`
  const response = yield* send("GET", of(thread, `events?follow=true${query}`), undefined, {
    accept: "text/event-stream"
  })
  const body = response.body
  if (body === null) return
  on.open()
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const parse = makeParser()
  const makeRefused = () => new Refused({ status: 0, problem: unreachable })
  yield* Effect.gen(function* () {
    for (;;) {
      const { done, value } = yield* Effect.tryPromise({ try: () => reader.read(), catch: makeRefused }).pipe(
        Effect.timeoutOrElse({ duration: silence, orElse: () => Effect.fail(makeRefused()) })
      )
      if (done) return
      const frames: Array<Frame> = []
      for (const packet of parse(decoder.decode(value, { stream: true }))) {
        const frame = yield* frameOf(packet)
        if (frame !== undefined) frames.push(frame)
      }
      if (frames.length > 0) on.take(frames)
    }
  }).pipe(Effect.ensuring(Effect.ignore(Effect.tryPromise(() => reader.cancel()))))
})
