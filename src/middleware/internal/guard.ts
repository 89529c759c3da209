/** A turn of the model under a check: held until the check passes, or streamed beside it and voided when it trips. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../core/ChatModel.ts"
import type { Block } from "../../core/Content.ts"
import type { AiMessage } from "../../core/Message.ts"
import type { ModelError } from "../../core/ModelError.ts"

/** The verdict of a check: a pass, or a trip and its reason. */
export type Verdict = { readonly _tag: "Pass" } | { readonly _tag: "Trip"; readonly reason: string }

/** Nothing is wrong. */
export const pass: Verdict = { _tag: "Pass" }

type Turn = Stream.Stream<TurnPart, ModelError>

/** Makes the turn that replaces a tripped one. `voided` is its message, if it got that far. */
export type OnTrip<E> = (reason: string, voided: AiMessage | undefined) => Stream.Stream<TurnPart, E>

type Check<E, R> = (message: AiMessage) => Effect.Effect<Verdict, E, R>

const doneOf = (parts: ReadonlyArray<TurnPart>): AiMessage | undefined => {
  const last = parts.at(-1)
  return last?._tag === "TurnDone" ? last.message : undefined
}

const isEmpty = (message: AiMessage): boolean =>
  message.content.length + message.toolCalls.length + message.malformedToolCalls.length === 0

const cutId = Symbol("Cut")

/** The failure with which a trip leaves a stream; nobody outside of this file sees it. */
interface GuardCut {
  readonly [cutId]: string
}

const isCut = (error: unknown): error is GuardCut => Predicate.hasProperty(error, cutId)

type GuardedTurn<E, R> = Stream.Stream<TurnPart, ModelError | E | GuardCut, R>

const unlessTripped = <A>(verdict: Verdict, value: A): Effect.Effect<A, GuardCut> =>
  verdict._tag === "Pass" ? Effect.succeed(value) : Effect.fail({ [cutId]: verdict.reason })

type Parts = Arr.NonEmptyReadonlyArray<TurnPart>

/** Streams a turn, all but its end: that goes out when `end` passes. What went out before a cut is voided. */
const streamed = <E, R, E2>(
  turn: Turn,
  guard: (held: (end: Check<E, R>) => GuardedTurn<E, R>) => GuardedTurn<E, R>,
  onTrip: OnTrip<E2>
): Stream.Stream<TurnPart, ModelError | E | E2, R> =>
  Stream.suspend(() => {
    let out = false
    let voided: AiMessage | undefined
    let rest: ReadonlyArray<TurnPart> = []
    const holdBack = (end: Check<E, R>): GuardedTurn<E, R> => {
      const take = (parts: Parts): Effect.Effect<Parts, E | GuardCut, R> => {
        const [first] = parts
        if (first._tag === "TurnDone") {
          voided = first.message
          rest = parts.slice(1)
          return Effect.flatMap(end(first.message), (verdict) => unlessTripped(verdict, Arr.of(first)))
        }
        const [before, after] = Arr.span(parts, (part) => part._tag !== "TurnDone")
        rest = after
        out = true
        return Effect.succeed(Arr.isReadonlyArrayNonEmpty(before) ? before : parts)
      }
      return Stream.transformPull(turn, (pull) =>
        Effect.succeed(
          Effect.suspend(() => (Arr.isReadonlyArrayNonEmpty(rest) ? take(rest) : Effect.flatMap(pull, take)))
        )
      )
    }
    return Stream.catchIf(guard(holdBack), isCut, (cut) => {
      const instead = onTrip(cut[cutId], voided)
      return out
        ? Stream.concat(Stream.succeed<TurnPart>({ _tag: "TurnRestarted", reason: cut[cutId] }), instead)
        : instead
    })
  })

/** Asks the model when the check has passed. */
export const checkFirst = <E, R, E2>(turn: Turn, check: Effect.Effect<Verdict, E, R>, onTrip: OnTrip<E2>) =>
  Stream.unwrap(
    Effect.map(check, (verdict): Stream.Stream<TurnPart, ModelError | E2> =>
      verdict._tag === "Pass" ? turn : onTrip(verdict.reason, undefined)
    )
  )

/** Runs the check and the model at once: a trip cuts the turn at once, and a turn does not end before the verdict. */
export const checkBeside = <E, R, E2>(turn: Turn, check: Effect.Effect<Verdict, E, R>, onTrip: OnTrip<E2>) =>
  streamed<E, R, E2>(
    turn,
    (holdUntil) =>
      Stream.unwrap(
        Effect.map(Effect.forkScoped(check), (fiber) => {
          const verdict = Fiber.join(fiber)
          const tripped = Effect.flatMap(verdict, (it) => (it._tag === "Pass" ? Effect.never : unlessTripped(it, it)))
          return Stream.interruptWhen(
            holdUntil(() => verdict),
            tripped
          )
        })
      ),
    onTrip
  )

/** Streams a turn, and checks it when it is complete. */
export const after = <E, R, E2>(turn: Turn, check: Check<E, R>, onTrip: OnTrip<E2>) =>
  streamed<E, R, E2>(
    turn,
    (holdUntil) => holdUntil((message) => (isEmpty(message) ? Effect.succeed(pass) : check(message))),
    onTrip
  )

/** Shows nothing of a turn until the whole of it is checked. */
export const hold = <E, R, E2>(turn: Turn, check: Check<E, R>, onTrip: OnTrip<E2>) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const parts = yield* Stream.runCollect(turn)
      const message = doneOf(parts)
      // A turn without an end can't be checked, so nothing of it is shown; the loop says that it is broken.
      if (message === undefined) return Stream.empty
      const verdict = isEmpty(message) ? pass : yield* check(message)
      return verdict._tag === "Pass" ? Stream.fromArray(parts) : onTrip(verdict.reason, message)
    })
  )

/** Texts that stand next to each other: a model reads them as one. */
const runs = (content: ReadonlyArray<Block>): ReadonlyArray<ReadonlyArray<Block>> => {
  const groups: Array<Array<Block>> = []
  for (const block of content) {
    const last = groups.at(-1)
    if (block.type === "text" && last?.at(-1)?.type === "text") last.push(block)
    else groups.push([block])
  }
  return groups
}

/** Replaces each match of a pattern in the texts of the content; `undefined` without a match. */
export const redacted = (
  content: ReadonlyArray<Block>,
  pattern: RegExp,
  mask: string
): ReadonlyArray<Block> | undefined => {
  const every = pattern.global ? pattern : new RegExp(pattern, `${pattern.flags}g`)
  let hasMatch = false
  const clean = (text: string): string => {
    const cleaned = text.replaceAll(every, () => mask)
    if (cleaned !== text) hasMatch = true
    return cleaned
  }
  const blocks = runs(content).flatMap((group): ReadonlyArray<Block> => {
    const each = group.map((block) => (block.type === "text" ? { ...block, text: clean(block.text) } : block))
    const [first] = each
    if (first?.type !== "text" || each.length === 1) return each
    const whole = each.map((block) => (block.type === "text" ? block.text : "")).join("")
    const cleaned = clean(whole)
    return cleaned === whole ? each : [{ ...first, text: cleaned }]
  })
  return hasMatch ? blocks : undefined
}
