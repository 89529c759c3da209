/**
 * Takes a stream of bytes apart into messages, in time that grows with their length only. A message over the limit is
 * not kept: its request fails, and the connection lives.
 */
import type { JSONRPCMessage } from "@modelcontextprotocol/client"
import * as Result from "effect/Result"
import { joinBytes } from "../../../support/store/joinBytes.ts"

/** The code of the error that a request is answered with whose answer is over the limit. */
export const tooLongCode = -32099

const id = String.raw`"id"\s*:\s*(\d{1,15}|"[^"\\]{0,200}")`
const version = String.raw`"jsonrpc"\s*:\s*"2\.0"`

/** A message has its id at one of its ends. Deeper text may imitate an id. */
const atHead = new RegExp(String.raw`^\s*\{\s*(?:${version}\s*,\s*)?${id}`)
const atTail = new RegExp(String.raw`${id}\s*(?:,\s*${version}\s*)?\}\s*$`)

const edge = 512

/** The answer to the request whose answer is too long, if it can be told which it is. */
const tooLong = (head: string, tail: string, size: number, limit: number): JSONRPCMessage | undefined => {
  // An event has lines before it.
  const id = (atHead.exec(head.slice(head.indexOf("{"))) ?? atTail.exec(tail))?.[1]
  if (id === undefined) return undefined
  const message = `the answer of ${size} bytes is over the limit of ${limit}`
  return {
    jsonrpc: "2.0",
    id: id.startsWith('"') ? id.slice(1, -1) : Number(id),
    error: { code: tooLongCode, message }
  }
}

/** A piece of a complete stream: its text, or the known facts of a text that was too long. */
export type Frame =
  | { readonly _tag: "Whole"; readonly bytes: Uint8Array }
  | { readonly _tag: "TooLong"; readonly size: number; readonly answer: JSONRPCMessage | undefined }

const latin = (bytes: Uint8Array): string => String.fromCharCode(...bytes)

/** Collects the bytes of one piece after the other. `add` takes a part of the piece that is open; `end` closes it. */
export const collector = (limit: number) => {
  let parts: Array<Uint8Array> = []
  let size = 0
  let head: Uint8Array | undefined
  let tail = new Uint8Array(0)
  return {
    add: (bytes: Uint8Array): void => {
      size += bytes.length
      if (head === undefined) {
        parts.push(bytes)
        if (size <= limit) return
        const whole = joinBytes(parts)
        head = whole.slice(0, edge)
        tail = whole.slice(-edge)
        parts = []
      } else if (bytes.length > 0) {
        tail = joinBytes([tail, bytes.subarray(-edge)]).slice(-edge)
      }
    },
    end: (): Frame => {
      const [first] = parts
      const frame: Frame =
        head === undefined
          ? { _tag: "Whole", bytes: parts.length === 1 && first !== undefined ? first : joinBytes(parts) }
          : { _tag: "TooLong", size, answer: tooLong(latin(head), latin(tail), size, limit) }
      parts = []
      size = 0
      head = undefined
      return frame
    },
    isEmpty: (): boolean => size === 0
  }
}

const newline = 10

/** Takes bytes apart at the ends of lines; what stands behind the last one waits for more. */
export const lines = (limit: number): ((chunk: Uint8Array) => ReadonlyArray<Frame>) => {
  const line = collector(limit)
  return (chunk) => {
    const frames: Array<Frame> = []
    let from = 0
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
      line.add(chunk.subarray(from, at))
      frames.push(line.end())
      from = at + 1
    }
    if (from < chunk.length) line.add(chunk.slice(from))
    return frames
  }
}

/** Reads JSON. */
export const parse = (text: string): Result.Result<unknown, unknown> =>
  Result.try({ try: (): unknown => JSON.parse(text), catch: (error) => error })
