/** The calls of a turn on their way out: numbered, streamed, and closed in one of two ways. */
import * as Result from "effect/Result"
import { isObject } from "../../../../core/Json.ts"
import type { Delta } from "./Codec.ts"

/** A call that is being read. */
export interface OpenCall {
  /** Emits the start of a call, once. */
  readonly name: (name: string) => void
  /** Takes JSON text of the arguments; it is streamed as soon as the name is known. */
  readonly write: (json: string) => void
  /** The call is whole. */
  readonly close: (raw: () => string) => void
  /** The call is not one. */
  readonly fail: (raw: string, problem: string) => void
}

/** Opens the next call. */
export type OpenCalls = () => OpenCall

/** Numbers calls from 0 and emits their parts. */
export const makeCalls = (emit: (delta: Delta) => void): OpenCalls => {
  let count = 0
  return () => {
    const call = count++
    let name: string | undefined
    let json = ""
    const fail = (raw: string, problem: string) => emit({ _tag: "Malformed", call, name, raw, problem })
    return {
      name: (fullName) => {
        name = fullName
        emit({ _tag: "CallStart", call, name })
        if (json !== "") emit({ _tag: "CallDelta", call, text: json })
      },
      write: (part) => {
        json += part
        if (name !== undefined) emit({ _tag: "CallDelta", call, text: part })
      },
      close: (raw) => {
        const parsed = Result.try((): unknown => JSON.parse(json))
        if (name === undefined || name === "") fail(raw(), "it does not say which tool is called")
        else if (Result.isSuccess(parsed) && isObject(parsed.success)) {
          emit({ _tag: "Call", call, name, arguments: parsed.success })
        } else fail(raw(), "the arguments are not an object")
      },
      fail
    }
  }
}

/** Joins neighbours of one kind, so that a text that was read by characters comes out as one delta. */
export const coalesce = (emit: (delta: Delta) => void) => {
  let pending: Delta | undefined
  const flush = (): void => {
    if (pending === undefined) return
    const delta = pending
    pending = undefined
    emit(delta)
  }
  const take = (delta: Delta): void => {
    if (pending !== undefined && "text" in pending && pending._tag === delta._tag) {
      if (delta._tag !== "CallDelta" || (pending._tag === "CallDelta" && pending.call === delta.call)) {
        pending = { ...pending, text: pending.text + delta.text }
        return
      }
    }
    flush()
    pending = delta
  }
  return { take, flush }
}
