/**
 * Lets code that knows only promises ask for effects.
 *
 * just-bash takes timers and more away from what runs inside of it, and so from all effects that would be started there.
 * A request is handed to a fiber outside, and only its outcome comes back.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"

/** Runs an effect outside, and gives its success; a failure rejects with what `toError` makes of it. */
export type Ask = <A, E>(effect: Effect.Effect<A, E>, toError: (error: E) => Error) => Promise<A>

interface Request {
  readonly run: Effect.Effect<void>
  readonly refuse: () => void
}

/** Serves requests until the scope closes; what is asked for later is refused. */
export const make: Effect.Effect<Ask, never, Scope.Scope> = Effect.gen(function* () {
  const open = new Set<Request>()
  let waiting: Array<Request> = []
  let closed = false
  let wake: (() => void) | undefined

  const next = (): Promise<ReadonlyArray<Request>> =>
    new Promise((resolve) => {
      const give = () => {
        const requests = waiting
        waiting = []
        wake = undefined
        resolve(requests)
      }
      if (waiting.length > 0) give()
      else wake = give
    })

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      closed = true
      for (const request of open) request.refuse()
      open.clear()
    })
  )
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.flatMap(
        Effect.promise(next),
        Effect.forEach((request) => Effect.forkChild(request.run))
      )
    )
  )

  return <A, E>(effect: Effect.Effect<A, E>, toError: (error: E) => Error): Promise<A> =>
    new Promise<readonly [A]>((resolve, reject) => {
      const refuse = () => reject(new Error("EINTR: the command was ended"))
      if (closed) return refuse()
      const request: Request = {
        refuse,
        run: Effect.map(Effect.exit(effect), (exit) => {
          open.delete(request)
          if (Exit.isSuccess(exit)) return resolve([exit.value])
          const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")
          reject(failure === undefined ? new Error("EIO: input/output error") : toError(failure.error))
        })
      }
      open.add(request)
      waiting.push(request)
      wake?.()
    }).then(([value]) => value)
})
