/**
 * A client of the Language Server Protocol. It requests the diagnostics of a file if the server supports that, else it
 * waits until the server publishes them.
 */
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { isObject, type JsonObject } from "../../../core/Json.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { joinBytes } from "../../../support/store/joinBytes.ts"

/** A diagnostic of the protocol. */
export const Diagnostic = Schema.Struct({
  range: Schema.Struct({ start: Schema.Struct({ line: Schema.Finite, character: Schema.Finite }) }),
  severity: Schema.optionalKey(Schema.Finite),
  code: Schema.optionalKey(Schema.Union([Schema.String, Schema.Finite])),
  source: Schema.optionalKey(Schema.String),
  message: Schema.String
})
export type Diagnostic = typeof Diagnostic.Type

const Diagnostics = Schema.Array(Diagnostic)

const Message = Schema.Struct({
  id: Schema.optionalKey(Schema.Union([Schema.Finite, Schema.String])),
  method: Schema.optionalKey(Schema.String),
  params: Schema.optionalKey(Schema.Unknown),
  result: Schema.optionalKey(Schema.Unknown)
})

const decodeMessage = Schema.decodeUnknownOption(Schema.fromJsonString(Message))
const decodeInitialized = Schema.decodeUnknownOption(
  Schema.Struct({ capabilities: Schema.Struct({ diagnosticProvider: Schema.optionalKey(Schema.Unknown) }) })
)
const decodeReport = Schema.decodeUnknownOption(Schema.Struct({ items: Diagnostics }))
const decodePublished = Schema.decodeUnknownOption(Schema.Struct({ uri: Schema.String, diagnostics: Diagnostics }))
const decodeItems = Schema.decodeUnknownOption(Schema.Struct({ items: Schema.Array(Schema.Unknown) }))

/** Maximum bytes of a message. */
const maxMessage = 32 * 1024 * 1024

const encoder = new TextEncoder()

/** Encodes a message with its header. */
const encodeMessage = (message: unknown): Uint8Array => {
  const body = encoder.encode(JSON.stringify(message))
  const head = encoder.encode(`Content-Length: ${body.length}\r\n\r\n`)
  const whole = new Uint8Array(head.length + body.length)
  whole.set(head)
  whole.set(body, head.length)
  return whole
}

/** Maximum bytes of a header. */
const maxHead = 8_192

/** Finds the end of a header, or -1. */
const findHeaderEnd = (bytes: Uint8Array): number => {
  for (let at = 3; at < Math.min(bytes.length, maxHead); at++) {
    if (bytes[at] === 10 && bytes[at - 1] === 13 && bytes[at - 2] === 10 && bytes[at - 3] === 13) return at + 1
  }
  return -1
}

/** Makes a function that splits chunks into messages. It skips invalid data and messages that are too long. */
export const makeReader = (): ((chunk: Uint8Array) => ReadonlyArray<string>) => {
  let pieces: Array<Uint8Array> = []
  let length = 0
  /** Bytes that the next message needs. */
  let needed = 0
  let skip = 0
  const decoder = new TextDecoder()
  return (chunk) => {
    const rest = chunk.subarray(skip)
    skip -= chunk.length - rest.length
    pieces.push(rest)
    length += rest.length
    if (length < needed) return []
    let remaining = pieces.length === 1 ? rest : joinBytes(pieces)
    needed = 0
    const bodies: Array<string> = []
    for (;;) {
      const start = findHeaderEnd(remaining)
      if (start === -1) {
        if (remaining.length < maxHead) break
        // The last bytes may begin the end of a header.
        remaining = remaining.subarray(maxHead - 3)
        continue
      }
      const size = Number(/content-length: *(\d+)/i.exec(decoder.decode(remaining.subarray(0, start)))?.[1] ?? 0)
      if (size > maxMessage) {
        skip = Math.max(0, start + size - remaining.length)
        remaining = remaining.subarray(start + size)
        continue
      }
      needed = start + size
      if (remaining.length < needed) break
      bodies.push(decoder.decode(remaining.subarray(start, needed)))
      remaining = remaining.subarray(needed)
      needed = 0
    }
    pieces = remaining.length === 0 ? [] : [remaining.slice()]
    length = remaining.length
    return bodies
  }
}

/** The streams of a server. */
export interface Wire {
  readonly incoming: Stream.Stream<Uint8Array, unknown>
  readonly send: (bytes: Uint8Array) => Effect.Effect<void>
}

/** An initialised server. */
export interface Client {
  /** Returns the diagnostics of a text. `undefined` if the server does not respond in time. */
  readonly diagnose: (
    uri: string,
    language: string,
    text: string
  ) => Effect.Effect<ReadonlyArray<Diagnostic> | undefined>
}

/** Time limit of a request. */
export const requestTimeout = "3 seconds"

/** Diagnostics are complete when the server publishes nothing for this time. */
const quietTime = "400 millis"

/** Time limit of the start. A server may read a large project first. */
const startTimeout = "2 minutes"

/** Initialises a server (3.17, `initialize`). `undefined` if it does not respond. */
export const make = (
  wire: Wire,
  rootUri: string,
  settings: { readonly [section: string]: JsonObject } = {}
): Effect.Effect<Client | undefined, never, Scope.Scope> =>
  Effect.gen(function* () {
    const waiting = new Map<number, Deferred.Deferred<unknown>>()
    const published = new Map<string, ReadonlyArray<Diagnostic>>()
    const versions = new Map<string, number>()
    let reports = 0
    let next = 0
    const splitMessages = makeReader()
    const send = (message: object) => wire.send(encodeMessage({ jsonrpc: "2.0", ...message }))
    const receive = Effect.fnUntraced(function* (body: string) {
      const message = Option.getOrUndefined(decodeMessage(body))
      if (message === undefined) return
      const { id, method, params, result } = message
      if (method === undefined) {
        const deferred = typeof id === "number" ? waiting.get(id) : undefined
        if (deferred !== undefined) yield* Deferred.succeed(deferred, result)
        return
      }
      if (method === "textDocument/publishDiagnostics") {
        const report = Option.getOrUndefined(decodePublished(params))
        if (report !== undefined) {
          published.set(report.uri, report.diagnostics)
          reports++
        }
      }
      // The server waits for a response to each of its requests.
      if (id !== undefined) {
        const items = Option.getOrUndefined(decodeItems(params))?.items
        const answers = (items ?? []).map((item) =>
          isObject(item) && typeof item["section"] === "string" ? (valueAt(settings, item["section"]) ?? null) : null
        )
        yield* send({ id, result: method === "workspace/configuration" ? answers : null })
      }
    })
    const listening = yield* Stream.runForEach(wire.incoming, (chunk) =>
      Effect.forEach(splitMessages(chunk), receive, { discard: true })
    ).pipe(Effect.ignore, Effect.forkScoped)
    // Ends a request when the server has ended.
    const ended = Effect.as(Fiber.await(listening), undefined)
    const request = (
      method: string,
      params: unknown,
      duration: Duration.Input = requestTimeout
    ): Effect.Effect<unknown> =>
      Effect.gen(function* () {
        const id = ++next
        const deferred = yield* Deferred.make<unknown>()
        waiting.set(id, deferred)
        yield* send({ id, method, params })
        return yield* Effect.raceFirst(Deferred.await(deferred), ended).pipe(
          Effect.timeoutOrElse({ duration, orElse: () => Effect.succeed(undefined) }),
          Effect.ensuring(Effect.sync(() => waiting.delete(id)))
        )
      })
    const greeting = yield* request(
      "initialize",
      {
        processId: null,
        rootUri,
        workspaceFolders: [{ uri: rootUri, name: "root" }],
        capabilities: {
          textDocument: { diagnostic: {}, publishDiagnostics: {}, synchronization: {} },
          workspace: { configuration: true, workspaceFolders: true }
        }
      },
      startTimeout
    )
    if (greeting === undefined) return undefined
    yield* send({ method: "initialized", params: {} })
    const pulls = Option.getOrUndefined(decodeInitialized(greeting))?.capabilities.diagnosticProvider !== undefined
    const pull = (uri: string) =>
      Effect.map(
        request("textDocument/diagnostic", { textDocument: { uri } }),
        (answer) => Option.getOrUndefined(decodeReport(answer))?.items
      )
    /** Waits until the server has published diagnostics, and nothing more for a while. */
    const wait = (uri: string) =>
      Effect.gen(function* () {
        let before = -1
        while (before !== reports || !published.has(uri)) {
          before = reports
          yield* Effect.sleep(quietTime)
        }
        return published.get(uri)
      }).pipe(Effect.timeoutOrElse({ duration: requestTimeout, orElse: () => Effect.sync(() => published.get(uri)) }))
    const lock = yield* Semaphore.make(1)
    return {
      diagnose: (uri, language, text) =>
        lock.withPermit(
          Effect.gen(function* () {
            const version = (versions.get(uri) ?? 0) + 1
            versions.set(uri, version)
            published.delete(uri)
            yield* version === 1
              ? send({
                  method: "textDocument/didOpen",
                  params: { textDocument: { uri, languageId: language, version, text } }
                })
              : send({
                  method: "textDocument/didChange",
                  params: { textDocument: { uri, version }, contentChanges: [{ text }] }
                })
            return yield* pulls ? pull(uri) : Effect.raceFirst(wait(uri), ended)
          })
        )
    }
  })
