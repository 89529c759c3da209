/** Does the steps of a patch, and undoes them if one fails. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { encode, load, type LoadedFile, type Step, textOf } from "./plan.ts"

/** A finished step; `version` is the resulting version of the file, if known. */
export interface FinishedStep {
  readonly step: Step
  readonly version: string | undefined
}

/** An unfinished patch: the reason, and the paths that could not be restored, each with its problem. */
export interface BrokenPatch {
  readonly cause: BackendError.BackendError
  readonly left: ReadonlyArray<string>
}

const undoLimit = "30 seconds"

const perform = Effect.fnUntraced(function* (backend: Backend.Service, step: Step) {
  switch (step._tag) {
    case "Create":
      return (yield* backend.write(step.path, step.after, { create: true })).version
    case "Rewrite":
      return (yield* backend.write(step.path, step.after, { version: step.before.version })).version
    case "Move":
      yield* backend.move(step.from, step.to)
      // It may have another one at another path. Not to know it is no failure.
      return yield* backend.read(step.to, { limit: 0 }).pipe(
        Effect.map((file) => file.version),
        Effect.orElseSucceed(() => undefined)
      )
    case "Remove": {
      // A deletion takes no version, so it is asked for right before.
      const { version } = yield* backend.read(step.path, { limit: 0 })
      if (version !== step.before.version) return yield* BackendError.make("delete", step.path, { _tag: "Conflict" })
      yield* backend.delete(step.path)
      return undefined
    }
  }
})

const same = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, index) => byte === right[index])

const conflict = (path: string) => BackendError.make("undo", path, { _tag: "Conflict" })

const restore = Effect.fnUntraced(function* (
  backend: Backend.Service,
  path: string,
  before: LoadedFile,
  version?: string
) {
  const text = textOf(path, before)
  if (text !== undefined) {
    yield* backend.write(path, text, version === undefined ? { create: true } : { version })
    return
  }
  const [transfer] = yield* backend.upload([{ path, content: before.bytes }])
  if (transfer?.ok === false) return yield* Effect.fail(transfer.error)
})

/** Undoes a step, whether it was done or not. A change of somebody else stays, and is a conflict. */
const undo = Effect.fnUntraced(function* (backend: Backend.Service, step: Step) {
  if (step._tag === "Move") {
    const [from, to] = [yield* load(backend, step.from), yield* load(backend, step.to)]
    if (from === undefined && to !== undefined) return yield* backend.move(step.to, step.from)
    if (from === undefined) return yield* conflict(step.from)
    return
  }
  const current = yield* load(backend, step.path)
  const before = step._tag === "Create" ? undefined : step.before
  if (current === undefined) {
    return before === undefined
      ? undefined
      : step._tag === "Remove"
        ? yield* restore(backend, step.path, before)
        : yield* conflict(step.path)
  }
  if (before !== undefined && same(current.bytes, before.bytes)) return
  if (step._tag === "Remove" || !same(current.bytes, encode(step.after))) return yield* conflict(step.path)
  if (before === undefined) return yield* backend.delete(step.path)
  yield* restore(backend, step.path, before, current.version)
})

const pathOf = (step: Step): string => (step._tag === "Move" ? step.to : step.path)

const undone = (backend: Backend.Service, step: Step): Effect.Effect<ReadonlyArray<string>> =>
  Effect.interruptible(undo(backend, step)).pipe(
    Effect.timeout(undoLimit),
    Effect.exit,
    Effect.map((exit) => (Exit.isSuccess(exit) ? [] : [`${pathOf(step)} (${problemOf(exit.cause)})`]))
  )

const problemOf = (cause: Cause.Cause<{ readonly message: string }>): string => {
  const failure = Cause.findError(cause)
  return Result.isSuccess(failure) ? failure.success.message : "the backend broke down"
}

/** Tells whether a step that failed may have been done. */
const isUncertain = ({ reason }: BackendError.BackendError): boolean =>
  reason._tag === "TimedOut" || reason._tag === "Unavailable"

/** Undoes steps in reverse order, and gives the failed ones. */
const rollback = (backend: Backend.Service, steps: ReadonlyArray<Step>) =>
  Effect.map(
    Effect.forEach(steps.toReversed(), (step) => undone(backend, step)),
    (left) => left.flat()
  )

/** Runs all steps. After a failure or an interruption, it undoes the steps before. */
export const commit = (
  backend: Backend.Service,
  steps: ReadonlyArray<Step>
): Effect.Effect<ReadonlyArray<FinishedStep>, BrokenPatch> =>
  Effect.uninterruptibleMask((restoreInterruption) => {
    const outcomes: Array<FinishedStep> = []
    let open: Step | undefined
    const all = Effect.forEach(
      steps,
      (step) => {
        open = step
        return Effect.map(perform(backend, step), (version) => {
          outcomes.push({ step, version })
          open = undefined
        })
      },
      { discard: true }
    )
    return Effect.matchCauseEffect(restoreInterruption(all), {
      onSuccess: () => Effect.succeed(outcomes),
      onFailure: Effect.fnUntraced(function* (cause) {
        const failure = Cause.findError(cause)
        // A failed step changed nothing. An interrupted or broken step, or a lost answer, needs a check.
        const begun = outcomes.map(({ step }) => step)
        if (open !== undefined && (Result.isFailure(failure) || isUncertain(failure.success))) begun.push(open)
        const remains = yield* rollback(backend, begun)
        if (Result.isSuccess(failure)) return yield* Effect.fail({ cause: failure.success, left: remains })
        if (remains.length > 0)
          yield* Effect.logError(`A patch was stopped, and could not be undone: ${remains.join("; ")}`)
        return yield* Effect.failCause(Cause.map(cause, (error) => ({ cause: error, left: remains })))
      })
    })
  })
