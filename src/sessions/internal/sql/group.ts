/** Groups the writes of one turn of the event loop into one commit. */
import * as Effect from "effect/Effect"

/** A pending write and its callback. */
export interface Due<in out A, in out B, in out E> {
  readonly item: A
  readonly resume: (outcome: Effect.Effect<B, E>) => void
}

/**
 * Makes a queue of writes. `write` answers each write of a group; at most `lanes` groups run at once, each of at most
 * `most` writes. A single source never waits. Several sources wait for each other until the next turn of the event loop.
 * Interrupting a pending write discards it.
 */
export const group = <A, B, E>(options: {
  readonly lanes: number
  readonly most: number
  readonly sourceOf: (item: A) => string
  readonly write: (due: ReadonlyArray<Due<A, B, E>>) => Effect.Effect<void>
  /** Makes a single write immediately, or gives `undefined`. */
  readonly writeNow?: (item: A) => Effect.Effect<B, E> | undefined
}): ((item: A) => Effect.Effect<B, E>) => {
  const { lanes, most, sourceOf, write, writeNow } = options
  const waiting = new Set<Due<A, B, E>>()
  let running = 0
  let isDue = false
  let isCrowded = false
  let latest: string | undefined

  const lane: Effect.Effect<void> = Effect.suspend(() => {
    isDue = false
    const due = [...waiting].slice(0, most)
    isCrowded = due.length > 1
    for (const one of due) waiting.delete(one)
    // Another lane may write the rest.
    schedule()
    const writing = Effect.catchCause(write(due), (cause) =>
      Effect.sync(() => {
        for (const { resume } of due) resume(Effect.failCause(cause))
      })
    )
    return Effect.andThen(writing, next)
  })
  const begin = Effect.suspend(() => (isCrowded ? Effect.andThen(Effect.yieldNow, lane) : lane))

  /** Continues in the same fiber, so that a writer that is answered and writes again adds no stack. */
  const next = Effect.suspend(() => {
    if (isDue || waiting.size === 0) {
      running--
      return Effect.void
    }
    isDue = true
    return begin
  })

  const schedule = (): void => {
    if (isDue || running >= lanes || waiting.size === 0) return
    isDue = true
    running++
    Effect.runFork(begin)
  }

  const wait = (item: A): Effect.Effect<B, E> =>
    Effect.callback((resume) => {
      const one = { item, resume }
      waiting.add(one)
      schedule()
      return Effect.sync(() => {
        waiting.delete(one)
      })
    })

  return (item) =>
    Effect.suspend(() => {
      const source = sourceOf(item)
      isCrowded ||= latest !== undefined && latest !== source
      latest = source
      const isAlone = !isCrowded && running === 0 && waiting.size === 0
      return (isAlone ? writeNow?.(item) : undefined) ?? wait(item)
    })
}
