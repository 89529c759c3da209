/** Events that are not waited for for ever. */
import * as Duration from "effect/Duration"
import { isObject } from "../../../core/Json.ts"
import { ModelError } from "../../../core/ModelError.ts"
import { observed } from "../../../support/effect/observed.ts"
import type { Origin } from "./errors.ts"

/** Timers know no longer time. */
const longest = 2 ** 31 - 1

const ended = { done: true, value: undefined } as const

/** Events by which a server says that it is still there, and nothing else. */
const isBreath = (event: unknown): boolean =>
  isObject(event) && (event["type"] === "ping" || event["type"] === "keepalive")

/** The failure of a server that says nothing for so long. */
export const silent = ({ model, provider }: Origin, idle: number): ModelError =>
  new ModelError({
    provider,
    model,
    reason: { _tag: "Timeout" },
    detail: `it said nothing for ${Duration.format(Duration.millis(idle))}`
  })

/**
 * The events of a source that is given up, and its signal aborted, when it was waited for so many milliseconds and said
 * nothing. Time in which nobody waits does not count.
 */
export const patiently =
  <A>(make: (signal: AbortSignal) => AsyncIterable<A>, origin: Origin, idle: number) =>
  (left: AbortSignal): AsyncIterable<A> => ({
    [Symbol.asyncIterator]: () => {
      const request = new AbortController()
      left.addEventListener("abort", () => request.abort(left.reason), { once: true })
      const events = make(request.signal)[Symbol.asyncIterator]()
      let waited = 0
      return {
        next: () =>
          observed(
            new Promise<IteratorResult<A>>((resolve, reject) => {
              const since = Date.now()
              const giveUp = (): void => {
                const error = silent(origin, idle)
                reject(error)
                request.abort(error)
              }
              const timer = idle > longest ? undefined : setTimeout(giveUp, Math.max(0, idle - waited))
              events.next().then(
                (event) => {
                  clearTimeout(timer)
                  waited = event.done !== true && isBreath(event.value) ? waited + Date.now() - since : 0
                  resolve(event)
                },
                (cause: unknown) => {
                  clearTimeout(timer)
                  reject(cause instanceof Error ? cause : new Error(String(cause)))
                }
              )
            })
          ),
        ...(events.return === undefined ? {} : { return: () => events.return?.() ?? Promise.resolve(ended) })
      }
    }
  })
