/**
 * The context's sequences, each a memory of one prompt, lent to one turn at a time.
 *
 * A session releases its sequence between turns. Otherwise a run that waits for its sub-agent would block the
 * sub-agent's sequence. The session gets back the sequence with the longest part of its prompt.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { LlamaContext, LlamaContextSequence, Token } from "node-llama-cpp"

/** A sequence on loan. */
export interface Seat {
  readonly sequence: LlamaContextSequence
  /** Computes something on the sequence: nobody else gets it before that is settled. Rejects if the pool was closed. */
  readonly work: <A>(signal: AbortSignal, compute: (signal: AbortSignal) => Promise<A>) => Promise<A>
}

/** A sequence, and the owner of the prompt in it. `work` is the computation in progress. */
interface Place {
  readonly sequence: LlamaContextSequence
  owner: object | undefined
  usedAt: number
  work: Promise<void> | undefined
}

export interface Pool {
  /** Lends a sequence for as long as the scope is open; waits until one is free. */
  readonly lease: (owner: object, tokens: ReadonlyArray<Token>) => Effect.Effect<Seat, never, Scope.Scope>
  /** The owner is gone: nobody misses what its sequence remembers. */
  readonly forget: (owner: object) => void
  /** Aborts all computations, and settles when they have ended. */
  readonly close: () => Promise<unknown>
}

const released = new Error("the model was released while it generated this turn")

/** Makes a pool of all sequences of a context. */
export const make = (context: LlamaContext): Pool => {
  const places = Array.from({ length: context.totalSequences }, (): Place => ({
    sequence: context.getSequence(),
    owner: undefined,
    usedAt: 0,
    work: undefined
  }))
  const free = new Set(places)
  const semaphore = Semaphore.makeUnsafe(places.length)
  const closing = new AbortController()
  let time = 0

  /** Counts the tokens that a sequence saves its new owner, less the old owner's loss. */
  const worth = (place: Place, owner: object, tokens: Array<Token>): number => {
    const commonLength = place.sequence.compareContextTokens(tokens).firstDifferentIndex
    const isForeign = place.owner !== undefined && place.owner !== owner
    return isForeign ? 2 * commonLength - place.sequence.nextTokenIndex : commonLength
  }

  const take = (owner: object, tokens: ReadonlyArray<Token>): Place | undefined => {
    const wanted = tokens.slice()
    const ranked = Array.from(free, (place) => ({ place, worth: worth(place, owner, wanted) })).sort(
      (left, right) => right.worth - left.worth || left.place.usedAt - right.place.usedAt
    )
    const place = ranked[0]?.place
    if (place === undefined) return undefined
    free.delete(place)
    place.owner = owner
    place.usedAt = ++time
    return place
  }

  const giveBack = (place: Place): Effect.Effect<void> =>
    Effect.suspend(() => {
      free.add(place)
      return Semaphore.release(semaphore, 1)
    })

  /** A turn that is left does not wait for the last token to be computed; the next one does. */
  const leave = (place: Place): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { work } = place
      return work === undefined
        ? giveBack(place)
        : Effect.asVoid(
            Effect.forkDetach(
              Effect.andThen(
                Effect.promise(() => work),
                giveBack(place)
              )
            )
          )
    })

  const seatAt = (place: Place): Seat => ({
    sequence: place.sequence,
    work: (signal, compute) => {
      const settle = (): void => {
        place.work = undefined
      }
      const computation = compute(AbortSignal.any([signal, closing.signal]))
      place.work = computation.then(settle, settle)
      return computation.then((result) => (closing.signal.aborted ? Promise.reject(released) : result))
    }
  })

  return {
    lease: (owner, tokens) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(Semaphore.take(semaphore, 1)), () => {
          const place = take(owner, tokens)
          // There are as many permits as places.
          if (place === undefined) return Effect.die(new Error("the pool gave a permit without a sequence"))
          return Effect.as(
            Effect.addFinalizer(() => leave(place)),
            seatAt(place)
          )
        })
      ),
    forget: (owner) => {
      for (const place of places) if (place.owner === owner) place.owner = undefined
    },
    close: () => {
      closing.abort(released)
      return Promise.all(places.map((place) => place.work ?? Promise.resolve()))
    }
  }
}
