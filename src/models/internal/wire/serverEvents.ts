/**
 * Reads the body of a model's answer: server-sent events, or one JSON value in their place. The SDKs read one event at a
 * time, at several promises each; this reader returns all events of a piece of the network at once.
 */
import * as Result from "effect/Result"
import { isObject } from "../../../core/Json.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import { deepest, isTooDeep, tooDeep } from "../schema/nesting.ts"
import { badResponse, type Origin } from "./errors.ts"
import { largestBody, largestEvent, tooLarge } from "./guardedFetch.ts"
import { parse, stringOf } from "./read.ts"

/** The differences of the APIs. */
export interface Reading {
  readonly origin: Origin
  /** Converts a whole answer in the place of a stream to events. `undefined` for anything else. */
  readonly eventsOf: (answer: unknown) => ReadonlyArray<unknown> | undefined
  /** Reports the last event of an answer. `[DONE]` always ends it. */
  readonly isLast?: ((event: unknown) => boolean) | undefined
}

const isField = /^(?:event|id|retry)?:/
const isOtherBody = /^\s*[[{<]/

/** Reports whether a body says in words what is wrong. */
const hasWords = (body: unknown): boolean =>
  isObject(body) && ["message", "detail", "error_message"].some((key) => body[key] !== undefined)

/** Puts the failure that an event tells under `error`, and gives the event the type of a failure. */
const withError = (value: unknown, isNamed: boolean): unknown => {
  if (!isObject(value)) return isNamed ? { type: "error", error: { message: String(value) } } : value
  const { error, type } = value
  if (!isNamed && !error) return value
  if (isObject(error)) return type === "error" ? value : { ...value, type: "error" }
  const message = stringOf(value["message"]) ?? stringOf(error)
  return { ...value, type: "error", error: message === undefined ? value : { ...value, message } }
}

/** Reads the events of a text that comes in pieces. */
interface Parser {
  readonly take: (chunk: Uint8Array) => void
  readonly end: () => void
  /** Takes the events that were read. */
  readonly events: () => ReadonlyArray<unknown>
  readonly isOver: () => boolean
  readonly failure: () => ModelError | undefined
}

/** Makes a parser. It searches only new text, so an event in many pieces stays cheap. */
const makeParser = ({ eventsOf, isLast, origin }: Reading): Parser => {
  const decoder = new TextDecoder()
  let events: Array<unknown> = []
  let failure: ModelError | undefined
  let isOver = false
  /** The beginning of a line that is cut. */
  let begun = ""
  let data: string | undefined
  let name = ""
  let hasReturned = false
  /** The lines of a body that is no stream. */
  let lines: Array<string> | undefined
  let total = 0
  let pending = 0

  const add = (value: unknown, length: number, isNamed: boolean): void => {
    // A level takes two characters at least.
    if (length > 2 * deepest && isTooDeep(value)) {
      failure = badResponse(origin, tooDeep)
      return
    }
    const event = withError(value, isNamed)
    events.push(event)
    if (isLast?.(event) === true) isOver = true
  }

  const dispatch = (): void => {
    const [text, isNamed] = [data, name === "error"]
    data = undefined
    name = ""
    pending = 0
    if (text === undefined || text.trim() === "") return
    if (text.startsWith("[DONE]")) {
      isOver = true
      return
    }
    const parsed = parse(text)
    if (Result.isSuccess(parsed)) add(parsed.success, text.length, isNamed)
    else if (isNamed) add({ error: { message: text } }, 0, true)
    else failure = badResponse(origin, "an event of the stream is not JSON")
  }

  const takeLine = (line: string): void => {
    if (lines !== undefined) return void lines.push(line)
    if (line === "") return dispatch()
    if (line.startsWith("data:")) {
      const value = line.slice(line.charCodeAt(5) === 32 ? 6 : 5)
      data = data === undefined ? value : `${data}\n${value}`
    } else if (line.startsWith("event:")) name = line.slice(6).trim()
    else if (data === undefined && isOtherBody.test(line)) lines = [line]
    // A text that a server did not cut into lines of data.
    else if (data !== undefined && !isField.test(line)) data += `\n${line}`
  }

  const takeText = (text: string): void => {
    let from = 0
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      const line = text.slice(from, at)
      from = at + 1
      if (begun === "") takeLine(line)
      else {
        const whole = begun + line
        begun = ""
        takeLine(whole)
      }
      if (failure !== undefined || isOver) return
    }
    begun = from === 0 ? begun + text : begun + text.slice(from)
  }

  /** Replaces the other ends of lines. The two halves of an end may come in two pieces. */
  const withNewlines = (text: string): string => {
    const rest = hasReturned && text.startsWith("\n") ? text.slice(1) : text
    if (text !== "") hasReturned = text.endsWith("\r")
    return rest.includes("\r") ? rest.replace(/\r\n?/g, "\n") : rest
  }

  /** Reads a body that is no stream: a failure, or a whole answer. */
  const settle = (text: string): void => {
    if (text.startsWith("<")) {
      failure = badResponse(origin, "the server answered with a web page; is the base URL right?")
      return
    }
    const parsed = parse(text)
    if (Result.isFailure(parsed)) {
      failure = badResponse(origin, "the answer is neither a stream of events nor JSON")
      return
    }
    const value = parsed.success
    if (isTooDeep(value)) {
      failure = badResponse(origin, tooDeep)
      return
    }
    const one: unknown = Array.isArray(value) ? value[0] : value
    const isFailed = isObject(one) && Boolean(one["error"])
    const answer = isFailed ? undefined : eventsOf(value)
    if (answer !== undefined) for (const event of answer) events.push(withError(event, false))
    else if (isFailed || hasWords(one)) events.push(withError(isFailed ? one : { error: one }, true))
    else failure = badResponse(origin, "the server answered with JSON that is no answer of this API")
    isOver = true
  }

  return {
    take: (chunk) => {
      total += chunk.length
      pending += chunk.length
      takeText(withNewlines(decoder.decode(chunk, { stream: true })))
      if (total > largestBody) failure ??= badResponse(origin, tooLarge("the answer", largestBody))
      // The rest of a chunk behind an event is of the next one.
      else if (pending > largestEvent) failure ??= badResponse(origin, tooLarge("an event of the stream", largestEvent))
    },
    end: () => {
      takeText(withNewlines(decoder.decode()))
      if (failure !== undefined || isOver) return
      if (begun !== "") takeLine(begun)
      begun = ""
      if (lines === undefined) dispatch()
      else settle(lines.join("\n").trim())
    },
    events: () => {
      const batch = events
      events = []
      return batch
    },
    isOver: () => isOver,
    failure: () => failure
  }
}

type Reader = ReadableStreamDefaultReader<Uint8Array>

/** Time that is given to the end of the body behind the last event, so that the connection can be used again. */
const lingering = 200

const leave = (reader: Reader): Promise<void> => reader.cancel().then(undefined, () => undefined)

/** Reads the rest of a body for a short time, and ignores it. */
const drain = (reader: Reader): void => {
  const timer = setTimeout(() => void leave(reader), lingering)
  const over = (): void => clearTimeout(timer)
  const readNext = (): void => {
    reader.read().then(({ done }) => (done ? over() : readNext()), over)
  }
  readNext()
}

const ended = { done: true, value: undefined } as const

/**
 * Reads the events of a response, which is requested when somebody reads. `abandonSignal` ends the request, unless its
 * last event was read: the connection can then be used again. The signal belongs to this request alone: it keeps the
 * reader.
 */
export const readServerEvents = (
  open: (signal: AbortSignal) => Promise<Response>,
  reading: Reading,
  abandonSignal?: AbortSignal
): AsyncIterable<ReadonlyArray<unknown>> => ({
  [Symbol.asyncIterator]: () => {
    const parser = makeParser(reading)
    const request = new AbortController()
    abandonSignal?.addEventListener("abort", () => {
      if (!isDone) request.abort(abandonSignal.reason)
    })
    let reader: Reader | undefined
    let isOpen = false
    let isDone = false

    const readOn = async (): Promise<IteratorResult<ReadonlyArray<unknown>>> => {
      if (!isOpen) {
        isOpen = true
        const { body, headers } = await open(request.signal)
        if (reading.origin.answered !== undefined) reading.origin.answered.headers = headers
        reader = body?.getReader()
      }
      for (;;) {
        const failure = parser.failure()
        if (failure !== undefined) {
          if (reader !== undefined) void leave(reader)
          isDone = true
          return Promise.reject(failure)
        }
        if (isDone) return ended
        const part = await reader?.read()
        if (part === undefined || part.done) {
          parser.end()
          isDone = true
        } else parser.take(part.value)
        if (parser.isOver() && !isDone) {
          isDone = true
          if (reader !== undefined) drain(reader)
        }
        const events = parser.events()
        if (events.length > 0) return { done: false, value: events }
      }
    }

    return {
      next: readOn,
      return: () => {
        if (!isDone && reader !== undefined) void leave(reader)
        isDone = true
        return Promise.resolve(ended)
      }
    }
  }
})
