/** Runs the hooks of an event, and joins their answers. */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { JsonObject } from "../../../core/Json.ts"
import { type Hook, type HookEvent, HookFailed, type Verdict } from "./model.ts"

const defaultTimeout = Duration.seconds(60)

/** Tells whether a name fits a pattern with `*` or `.*` for any part. No engine runs a stranger's pattern. */
const fitsOne = (pattern: string, name: string): boolean => {
  const pieces = pattern.split(/\.?\*/)
  const [first = "", ...rest] = pieces
  if (rest.length === 0) return pattern === name
  const last = rest.pop() ?? ""
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false
  const end = name.length - last.length
  let at = first.length
  for (const piece of rest) {
    const place = name.indexOf(piece, at)
    if (place === -1 || place + piece.length > end) return false
    at = place + piece.length
  }
  return true
}

/** A matcher without the anchors and the parentheses around it, which regular expressions have. */
const bareOf = (matcher: string): string => matcher.replace(/^\^?\(?/, "").replace(/\)?\$?$/, "")

/** Tells whether a matcher has other signs of regular expressions, which would fit nothing. */
export const isBeyond = (matcher: string): boolean => /[[\](){}+?^$\\]/.test(bareOf(matcher))

/** Tells whether a matcher is for one of these names. */
export const fits = (matcher: string | undefined, names: ReadonlyArray<string>): boolean => {
  if (matcher === undefined || matcher === "" || matcher === "*" || names.length === 0) return true
  return bareOf(matcher)
    .split("|")
    .some((part) => names.some((name) => fitsOne(part.trim(), name)))
}

/** The joined answer, and the hooks that gave none. */
export interface HookOutcome {
  readonly verdict: Verdict
  readonly failures: ReadonlyArray<HookFailed>
}

const ranks = { deny: 3, ask: 2, allow: 1 } as const

/** Joins answers: the strictest decision counts, and the last arguments. */
const join = (verdicts: ReadonlyArray<Verdict>): Verdict => {
  const strictest = verdicts.reduce<Verdict>(
    (best, one) =>
      one.decision !== undefined && (best.decision === undefined || ranks[one.decision] > ranks[best.decision])
        ? one
        : best,
    {}
  )
  const context = verdicts.flatMap((one) => one.context ?? [])
  return {
    decision: strictest.decision,
    reason: strictest.reason ?? verdicts.find(({ reason }) => reason !== undefined)?.reason,
    input: verdicts.findLast(({ input }) => input !== undefined)?.input,
    context: context.length === 0 ? undefined : context,
    stop: verdicts.find(({ stop }) => stop !== undefined)?.stop
  }
}

const runOne = <R>({ handler, timeout }: Hook<R>, input: JsonObject): Effect.Effect<Verdict, HookFailed, R> => {
  const duration = Duration.fromInputUnsafe(timeout ?? defaultTimeout)
  return Effect.suspend(() => handler.run(input)).pipe(
    Effect.timeoutOrElse({
      duration,
      orElse: () => new HookFailed({ hook: handler.name, problem: `no answer within ${Duration.format(duration)}` })
    }),
    // A hook of a program may throw.
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.failCause(cause)
        : Effect.fail(toFailure(handler.name, Cause.squash(cause)))
    )
  )
}

const toFailure = (hook: string, error: unknown): HookFailed =>
  error instanceof HookFailed
    ? error
    : new HookFailed({ hook, problem: error instanceof Error ? error.message : String(error) })

/** Runs the hooks of an event that are for one of these names, at once. */
export const fireHooks = <R>(
  hooks: ReadonlyArray<Hook<R>>,
  event: HookEvent,
  names: ReadonlyArray<string>,
  input: JsonObject
): Effect.Effect<HookOutcome, never, R> => {
  const due = hooks.filter((hook) => hook.event === event && fits(hook.matcher, names))
  if (due.length === 0) return Effect.succeed({ verdict: {}, failures: [] })
  const body = { hook_event_name: event, ...input }
  return Effect.map(
    Effect.forEach(
      due,
      (hook) =>
        Effect.match(runOne(hook, body), {
          onFailure: (failure) => ({
            verdict: hook.blocking === true ? ({ decision: "deny", reason: failure.message } as const) : {},
            failures: [failure]
          }),
          onSuccess: (verdict) => ({ verdict, failures: [] })
        }),
      { concurrency: 8 }
    ),
    (all) => ({ verdict: join(all.map(({ verdict }) => verdict)), failures: all.flatMap(({ failures }) => failures) })
  )
}
