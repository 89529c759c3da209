/**
 * Stores the text of a turn while it streams, in journals that take parts. A crash loses its last tenth of a second.
 *
 * The stream never waits for the store. One part at a time is written, and the next part holds all text since, so a
 * slow store gets fewer and larger parts. Only the text of the turn is queued.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { boundaryBefore } from "../../../support/text/text.ts"
import type { Part } from "../../thread/parts.ts"
import type { Live } from "../live.ts"
import { report } from "../report.ts"

/** The time that is said until a part is stored; it leaves a store the rest of 100 ms. */
const every = Duration.millis(75)

/** The length of a part, at most, in UTF-16 units. */
const most = 1 << 20

export interface Draft {
  /** Something was said. */
  readonly saying: (kind: "Reasoning" | "Text", delta: string) => void
  /** A call is being written. */
  readonly calling: (id: string, name: string, delta: string) => void
  /** The text so far is void: the turn begins anew. */
  readonly restart: () => void
  /** Starts the writer, unless it runs. */
  readonly due: Effect.Effect<void>
  /** Nothing is under way to the store any more when this is over. */
  readonly around: <A, E, R>(turn: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

type Piece = Part["pieces"][number]

/**
 * A growing text: `from` units are stored, `open` holds the rest. It keeps nothing more: a part is a view of its text,
 * so each part would keep a copy of all text before. `isNew` marks a call that is stored before it has arguments.
 */
interface Source {
  readonly piece: (from: number, text: string) => Piece
  from: number
  open: string
  isNew: boolean
}

const source = (piece: Source["piece"], open: string, isNew: boolean): Source => ({ piece, from: 0, open, isNew })

/** The end of the storable part of a text: half of a character waits for the other half. */
const endOf = (text: string, end: number): number => {
  const last = text.charCodeAt(end - 1)
  return end === text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : boundaryBefore(text, end)
}

/** The draft of a turn of the outermost run, if its journal takes parts. */
export const draftOf = (live: Live): Draft | undefined => {
  const { parent, records } = live
  const recorder = records.journal?.recorder
  const part = parent === undefined ? recorder?.thread.part : undefined
  if (part === undefined || recorder === undefined) return undefined
  const model = live.run.model?.modelId ?? ""
  const calls = new Map<string, Source>()
  const words = () => ({
    Reasoning: source((from, text) => ({ _tag: "Reasoning", from, text }), "", false),
    Text: source((from, text) => ({ _tag: "Text", from, text }), "", false)
  })
  let turn = live.makeId()
  let texts = words()
  let writer: Fiber.Fiber<void> | undefined
  let isStoring = false
  let isOver = false

  const restart = (): void => {
    turn = live.makeId()
    calls.clear()
    texts = words()
  }

  /** Makes the next part, and the action for when it is stored; `undefined` without new text. */
  const next = (): { readonly part: Part; readonly stored: () => void } | undefined => {
    const pieces: Array<Piece> = []
    const commits: Array<() => void> = []
    let room = most
    for (const one of [texts.Reasoning, texts.Text, ...calls.values()]) {
      const { from, isNew, open } = one
      const end = endOf(open, Math.min(open.length, room))
      if (end === 0 && !isNew) continue
      room -= end
      pieces.push(one.piece(from, open.slice(0, end)))
      commits.push(() => {
        one.open = one.open.slice(end)
        one.from = from + end
        one.isNew = false
      })
    }
    return pieces.length === 0
      ? undefined
      : { part: { _tag: "Part", turn, model, pieces }, stored: () => commits.forEach((commit) => commit()) }
  }

  const write = Effect.gen(function* () {
    let isWarned = false
    for (;;) {
      yield* Effect.sleep(every)
      let due = next()
      if (due === undefined) {
        writer = undefined
        return
      }
      for (; due !== undefined && !isOver; due = next()) {
        isStoring = true
        const exit = yield* Effect.result(recorder.lock.withPermits(1)(part(due.part)))
        isStoring = false
        if (exit._tag === "Success") {
          due.stored()
          continue
        }
        if (!isWarned) {
          const message = `Parts of the answer are not stored: ${exit.failure.message}`
          report(live, { _tag: "Warning", code: "parts-not-stored", message })
          isWarned = true
        }
        // Another writer of the thread has ended this run; the end of the turn will say so.
        if (exit.failure.reason._tag !== "Unavailable") return
        break
      }
      if (isOver) return
    }
  })

  return {
    saying: (kind, delta) => {
      texts[kind].open += delta
    },
    calling: (id, name, delta) => {
      const call = calls.get(id)
      if (call !== undefined) call.open += delta
      else
        calls.set(
          id,
          source((from, text) => ({ _tag: "Call", id, name, from, text }), delta, true)
        )
    },
    restart,
    due: Effect.suspend(() =>
      writer === undefined
        ? Effect.map(Effect.forkChild(write), (fiber) => {
            writer = fiber
          })
        : Effect.void
    ),
    around: (turn) =>
      Effect.onExit(
        Effect.tap(turn, () => {
          isOver = true
          return isStoring && writer !== undefined ? Effect.asVoid(Fiber.await(writer)) : Effect.void
        }),
        () => {
          isOver = true
          return writer === undefined ? Effect.void : Fiber.interrupt(writer)
        }
      )
  }
}
