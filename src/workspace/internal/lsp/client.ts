/**
 * Speaks with a language server by its own protocol: frames with a length before them, requests by number, and the
 * diagnostics of a file, asked for where the server can be asked, waited for where it can't.
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
import { joinBytes } from "../../../support/http/body.ts"

/** A diagnostic as the protocol has it. */
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

/** The largest message that is read. */
const maxMessage = 32 * 1024 * 1024

const encoder = new TextEncoder()

/** A message as a frame. */
const frame = (message: unknown): Uint8Array => {
  const body = encoder.encode(JSON.stringify(message))
  const head = encoder.encode(`Content-Length: ${body.length}\r\n\r\n`)
  const whole = new Uint8Array(head.length + body.length)
  whole.set(head)
  whole.set(body, head.length)
  return whole
}

/** The longest head of a message. */
const maxHead = 8_192

/** The end of a head, behind which its body begins; -1 if it has not come. */
const headEnd = (bytes: Uint8Array): number => {
  for (let at = 3; at < Math.min(bytes.length, maxHead); at++) {
    if (bytes[at] === 10 && bytes[at - 1] === 13 && bytes[at - 2] === 10 && bytes[at - 3] === 13) return at + 1
  }
  return -1
}

/** Takes frames apart that come in any pieces. What is too long, or no frame, is left out. */
export const makeReader = (): ((chunk: Uint8Array) => ReadonlyArray<string>) => {
  let pieces: Array<Uint8Array> = []
  let length = 0
  /** The bytes that must be there before anything can be done. */
  let wanted = 0
  let skip = 0
  const decoder = new TextDecoder()
  return (chunk) => {
    const rest = chunk.subarray(skip)
    skip -= chunk.length - rest.length
    pieces.push(rest)
    length += rest.length
    if (length < wanted) return []
    let left = pieces.length === 1 ? rest : joinBytes(pieces)
    wanted = 0
    const bodies: Array<string> = []
    for (;;) {
      const start = headEnd(left)
      if (start === -1) {
        if (left.length < maxHead) break
        // Its last bytes may be those of the end of a head.
        left = left.subarray(maxHead - 3)
        continue
      }
      const size = Number(/content-length: *(\d+)/i.exec(decoder.decode(left.subarray(0, start)))?.[1] ?? 0)
      if (size > maxMessage) {
        skip = Math.max(0, start + size - left.length)
        left = left.subarray(start + size)
        continue
      }
      wanted = start + size
      if (left.length < wanted) break
      bodies.push(decoder.decode(left.subarray(start, wanted)))
      left = left.subarray(wanted)
      wanted = 0
    }
    pieces = left.length === 0 ? [] : [left.slice()]
    length = left.length
    return bodies
  }
}

/** The two directions of a server. */
export interface Wire {
  readonly incoming: Stream.Stream<Uint8Array, unknown>
  readonly send: (bytes: Uint8Array) => Effect.Effect<void>
}

/** A server that was greeted. */
export interface Client {
  /** The diagnostics of a file whose text is this now; `undefined` if the server says none in time. */
  readonly diagnose: (
    uri: string,
    language: string,
    text: string
  ) => Effect.Effect<ReadonlyArray<Diagnostic> | undefined>
}

/** Time to wait for an answer; and, of a server that can't be asked, time of silence. */
export const patience = "3 seconds"
const quiet = "400 millis"

/** Time that a server may take to begin: a large project is read first. */
const beginning = "2 minutes"

/** Greets a server; `undefined` for one that does not answer. Nothing may be asked of it before (3.17, `initialize`). */
export const make = (wire: Wire, rootUri: string): Effect.Effect<Client | undefined, never, Scope.Scope> =>
  Effect.gen(function* () {
    const waiting = new Map<number, Deferred.Deferred<unknown>>()
    const published = new Map<string, ReadonlyArray<Diagnostic>>()
    const versions = new Map<string, number>()
    let said = 0
    let next = 0
    const read = makeReader()
    const send = (message: object) => wire.send(frame({ jsonrpc: "2.0", ...message }))
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
          said++
        }
      }
      // A server waits for the answer to whatever it asks.
      if (id !== undefined) {
        const items = Option.getOrUndefined(decodeItems(params))?.items
        yield* send({ id, result: method === "workspace/configuration" ? (items ?? []).map(() => null) : null })
      }
    })
    const listening = yield* Stream.runForEach(wire.incoming, (chunk) =>
      Effect.forEach(read(chunk), receive, { discard: true })
    ).pipe(Effect.ignore, Effect.forkScoped)
    // One that is gone says nothing any more.
    const gone = Effect.as(Fiber.await(listening), undefined)
    const request = (method: string, params: unknown, duration: Duration.Input = patience): Effect.Effect<unknown> =>
      Effect.gen(function* () {
        const id = ++next
        const deferred = yield* Deferred.make<unknown>()
        waiting.set(id, deferred)
        yield* send({ id, method, params })
        return yield* Effect.raceFirst(Deferred.await(deferred), gone).pipe(
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
      beginning
    )
    if (greeting === undefined) return undefined
    yield* send({ method: "initialized", params: {} })
    const pulls = Option.getOrUndefined(decodeInitialized(greeting))?.capabilities.diagnosticProvider !== undefined
    const pull = (uri: string) =>
      Effect.map(
        request("textDocument/diagnostic", { textDocument: { uri } }),
        (answer) => Option.getOrUndefined(decodeReport(answer))?.items
      )
    /** Diagnostics that the server published, once it was silent for a while. */
    const wait = (uri: string) =>
      Effect.gen(function* () {
        let before = -1
        while (before !== said || !published.has(uri)) {
          before = said
          yield* Effect.sleep(quiet)
        }
        return published.get(uri)
      }).pipe(Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.sync(() => published.get(uri)) }))
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
            return yield* pulls ? pull(uri) : Effect.raceFirst(wait(uri), gone)
          })
        )
    }
  })
