/**
 * Stores what a turn has said so far while it is streamed, for a journal that takes parts: a crash loses the last tenth
 * of a second of it.
 *
 * The stream never waits for the store. One part at a time is under way, and what is said meanwhile is in the next one,
 * so that a slow store gets fewer and larger parts. Nothing is queued but the turn's own text.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { boundaryBefore } from "../../support/text.ts"
import type { Part } from "../Journal.ts"
import { type Live, offer } from "./live.ts"

/** The time that is said until a part is stored; it leaves a store the rest of 100 ms. */
const every = Duration.millis(75)

/** The length of a part, at most, in UTF-16 units. */
const most = 1 << 20

/** A turn on its way into the journal. */
export interface Draft {
  /** A call is being written. */
  readonly calling: (id: string, name: string, delta: string) => void
  /** What was said is void: the turn begins anew. */
  readonly restart: () => void
  /** Has what was said stored in time. */
  readonly due: Effect.Effect<void>
  /** Nothing is under way to the store any more when this is over. */
  readonly around: <A, E, R>(turn: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

type Piece = Part["pieces"][number]

/** A text that grows, and how much of it is stored. A call that is not known yet is told of before it has arguments. */
interface Source {
  readonly piece: (from: number, text: string) => Piece
  readonly read: () => string
  stored: number
}

/** The end of what can be stored of a text: half of a character waits for the other half. */
const endOf = (text: string, end: number): number => {
  const last = text.charCodeAt(end - 1)
  return end === text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : boundaryBefore(text, end)
}

/** The draft of a turn of the outermost run, if its journal takes parts. `said` is what was said of it. */
export const draftOf = (live: Live, said: { readonly text: string; readonly reasoning: string }): Draft | undefined => {
  const { parent, recorder } = live
  const part = parent === undefined ? recorder?.thread.part : undefined
  if (part === undefined || recorder === undefined) return undefined
  const model = live.run.model?.modelId ?? ""
  const calls = new Map<string, { raw: string }>()
  let turn = ""
  let sources: Array<Source> = []
  let writer: Fiber.Fiber<void> | undefined
  let isStoring = false
  let isOver = false

  const restart = (): void => {
    turn = live.makeId()
    calls.clear()
    sources = [
      { piece: (from, text) => ({ _tag: "Reasoning", from, text }), read: () => said.reasoning, stored: 0 },
      { piece: (from, text) => ({ _tag: "Text", from, text }), read: () => said.text, stored: 0 }
    ]
  }
  restart()

  /** The next part, and what is done when it is stored; `undefined` when there is nothing new. */
  const next = (): { readonly part: Part; readonly stored: () => void } | undefined => {
    const pieces: Array<Piece> = []
    const stored: Array<() => void> = []
    let room = most
    for (const source of sources) {
      const text = source.read()
      const from = Math.max(0, source.stored)
      const end = endOf(text, Math.min(text.length, from + room))
      if (end <= source.stored) continue
      room -= end - from
      pieces.push(source.piece(from, text.slice(from, end)))
      stored.push(() => {
        source.stored = end
      })
    }
    return pieces.length === 0
      ? undefined
      : { part: { _tag: "Part", turn, model, pieces }, stored: () => stored.forEach((done) => done()) }
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
          const message = `What the model says is not stored before it is done: ${exit.failure.message}`
          offer(live, { _tag: "Warning", code: "parts-not-stored", message })
          isWarned = true
        }
        // Whoever else writes to the thread has ended this run; the end of the turn will say so.
        if (exit.failure.reason._tag !== "Unavailable") return
        break
      }
      if (isOver) return
    }
  })

  return {
    calling: (id, name, delta) => {
      const known = calls.get(id)
      if (known !== undefined) {
        known.raw += delta
        return
      }
      const call = { raw: delta }
      calls.set(id, call)
      sources.push({
        piece: (from, text) => ({ _tag: "Call", id, name, from, text }),
        read: () => call.raw,
        stored: -1
      })
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
