/** Groups writes that come in one turn of the event loop, so that they cost one commit. */
import * as Effect from "effect/Effect"

/** A write that waits, and the way to answer it. */
export interface Due<in out A, in out B, in out E> {
  readonly item: A
  readonly resume: (outcome: Effect.Effect<B, E>) => void
}

/**
 * `write` answers each of the writes that it is given; at most `lanes` groups are written at a time, each of at most
 * `most`. A source that writes alone is not made to wait; several are, for each other, until the event loop comes
 * round. A write that is interrupted before its group is begun is not made.
 */
export const group = <A, B, E>(options: {
  readonly lanes: number
  readonly most: number
  readonly sourceOf: (item: A) => string
  readonly write: (due: ReadonlyArray<Due<A, B, E>>) => Effect.Effect<void>
  /** Writes what comes alone, if that can be done at once. */
  readonly alone?: (item: A) => Effect.Effect<B, E> | undefined
}): ((item: A) => Effect.Effect<B, E>) => {
  const { alone, lanes, most, sourceOf, write } = options
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
    // What did not fit may be written beside it.
    schedule()
    const written = Effect.catchCause(write(due), (cause) =>
      Effect.sync(() => {
        for (const { resume } of due) resume(Effect.failCause(cause))
      })
    )
    return Effect.andThen(written, next)
  })
  const begin = Effect.suspend(() => (isCrowded ? Effect.andThen(Effect.yieldNow, lane) : lane))

  /** Goes on in the same fiber: who is answered in it, and writes at once again, would go deeper each time otherwise. */
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
      return (isAlone ? alone?.(item) : undefined) ?? wait(item)
    })
}
