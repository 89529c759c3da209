/** Events that are not waited for for ever. */
import * as Duration from "effect/Duration"
import { isObject } from "../../../core/Json.ts"
import { ModelError } from "../../../core/ModelError.ts"
import { observed } from "../../../support/effect/observed.ts"
import type { Origin } from "./errors.ts"

/** Timers know no longer time. */
const longest = 2 ** 31 - 1

const ended = { done: true, value: undefined } as const

/** An event by which a server says that it is still there, and nothing else. */
const isBreath = (event: unknown): boolean =>
  isObject(event) && (event["type"] === "ping" || event["type"] === "keepalive")

/** One event, or several that came together. */
const isOnlyBreath = (value: unknown): boolean => (Array.isArray(value) ? value.every(isBreath) : isBreath(value))

/** The failure of a server that says nothing for so long. */
export const silent = ({ model, provider }: Origin, idle: number): ModelError =>
  new ModelError({
    provider,
    model,
    reason: { _tag: "Timeout" },
    detail: `it said nothing for ${Duration.format(Duration.millis(idle))}`
  })

/**
 * Ends a source, and aborts its signal, after it was waited for so many milliseconds and said nothing. Time in which
 * nobody waits does not count. Its items are events, or arrays of events. A timer is set once for many waits: it goes on
 * for the rest when it fires too early.
 */
export const patiently =
  <A>(make: (signal: AbortSignal) => AsyncIterable<A>, origin: Origin, idle: number) =>
  (abandonSignal: AbortSignal): AsyncIterable<A> => ({
    [Symbol.asyncIterator]: () => {
      const request = new AbortController()
      const stop = (): void => {
        clearTimeout(timer)
        timer = undefined
      }
      abandonSignal.addEventListener(
        "abort",
        () => {
          stop()
          request.abort(abandonSignal.reason)
        },
        { once: true }
      )
      const events = make(request.signal)[Symbol.asyncIterator]()
      let timer: ReturnType<typeof setTimeout> | undefined
      let waited = 0
      /** The time since when somebody waits; `undefined` while nobody does. */
      let since: number | undefined
      let giveUp: ((error: ModelError) => void) | undefined

      const check = (): void => {
        timer = undefined
        if (since === undefined) return
        const timeLeft = idle - waited - (Date.now() - since)
        if (timeLeft > 0) return watch(timeLeft)
        const error = silent(origin, idle)
        giveUp?.(error)
        request.abort(error)
      }
      const watch = (rest: number): void => {
        if (idle <= longest) timer = setTimeout(check, Math.max(0, rest))
      }

      return {
        next: () =>
          observed(
            new Promise<IteratorResult<A>>((resolve, reject) => {
              const begun = Date.now()
              since = begun
              giveUp = reject
              if (timer === undefined) watch(idle - waited)
              events.next().then(
                (event) => {
                  since = undefined
                  waited = event.done !== true && isOnlyBreath(event.value) ? waited + Date.now() - begun : 0
                  if (event.done === true) stop()
                  resolve(event)
                },
                (cause: unknown) => {
                  since = undefined
                  stop()
                  reject(cause instanceof Error ? cause : new Error(String(cause)))
                }
              )
            })
          ),
        return: () => {
          stop()
          return events.return?.() ?? Promise.resolve(ended)
        }
      }
    }
  })
