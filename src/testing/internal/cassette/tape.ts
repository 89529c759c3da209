/** Reads, plays and appends to cassettes. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Service, TurnPart } from "../../../core/ChatModel.ts"
import { ModelError } from "../../../core/ModelError.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Fingerprint } from "./fingerprint.ts"
import * as Format from "./format.ts"
import * as Redact from "./redact.ts"

/** Makes the error for a problem of a cassette. */
export const problem = (detail: string, cause?: unknown): ModelError =>
  new ModelError({
    provider: "cassette",
    reason: { _tag: "InvalidRequest" },
    detail,
    cause
  })

const factsOf = (model: Service): Format.ModelLine => ({
  type: "model",
  v: 1,
  provider: model.provider,
  modelId: model.modelId,
  supportsVision: model.supportsVision,
  ...defined({
    contextWindowTokens: model.contextWindowTokens,
    structuredOutput: model.structuredOutput,
    prices: model.prices
  })
})

/** Reads a cassette. */
export const readTape = (file: string): Effect.Effect<Format.CassetteContents, ModelError, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const text = yield* Effect.mapError(fs.readFileString(file), (cause) =>
      problem(`${file} can't be read; record it first with Cassette.record`, cause)
    )
    return yield* Effect.mapError(Format.parse(text), (wrong) =>
      problem(`${file} is not a cassette: ${wrong}. Record it anew with Cassette.record`)
    )
  })

/** Makes a function that finds recordings: the n-th for the n-th of identical requests. */
export const finder = (recorded: Format.CassetteContents) => {
  const byKey = new Map<string, Array<Format.TurnLine>>()
  for (const turn of recorded.turns) {
    const turns = byKey.get(turn.key)
    if (turns === undefined) byKey.set(turn.key, [turn])
    else turns.push(turn)
  }
  const counts = new Map<string, number>()
  return (key: string) => {
    const index = counts.get(key) ?? 0
    counts.set(key, index + 1)
    const turns = byKey.get(key) ?? []
    return { turn: turns[index], recordings: turns.length }
  }
}

/** Makes a function that appends complete turns. It writes each value once. */
export const writer = (file: string, knownHashes: Iterable<string>, redact: Redact.Redact) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const lock = yield* Semaphore.make(1)
    const hashes = new Set(knownHashes)
    return Effect.fnUntraced(function* (print: Fingerprint, parts: ReadonlyArray<TurnPart>) {
      const fresh = [...print.values].filter(([hash]) => !hashes.has(hash))
      const lines: ReadonlyArray<Format.Line> = [
        ...fresh.map(([hash, value]) => ({ type: "value" as const, hash, value })),
        { type: "turn", key: print.key, request: print.address, parts: Redact.turn(parts, redact) }
      ]
      yield* fs.writeFileString(file, Format.render(lines), { flag: "a" }).pipe(
        Effect.uninterruptible,
        Effect.mapError((cause) => problem(`a turn could not be recorded to ${file}`, cause))
      )
      for (const [hash] of fresh) hashes.add(hash)
    }, lock.withPermits(1))
  })

type Write = Effect.Success<ReturnType<typeof writer>>

/** Records a turn unless it fails or is interrupted. */
export const recording = (
  turn: Stream.Stream<TurnPart, ModelError>,
  print: Fingerprint,
  write: Write
): Stream.Stream<TurnPart, ModelError> =>
  Stream.suspend(() => {
    const all: Array<TurnPart> = []
    return Stream.mapArrayEffect(turn, (parts) => {
      all.push(...parts)
      return parts.at(-1)?._tag === "TurnDone" ? Effect.as(write(print, all), parts) : Effect.succeed(parts)
    })
  })

/** Begins a cassette. */
export const create = (file: string, model: Service) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    Effect.mapError(fs.writeFileString(file, Format.render([factsOf(model)])), (cause) =>
      problem(`${file} can't be written; does its folder exist?`, cause)
    )
  )

/** Prepares a cassette for appending: creates it if missing, and removes the rest of an unfinished append. */
export const prepare = (file: string, model: Service) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const unreadable = (cause: unknown) => problem(`${file} can't be read`, cause)
    if (!(yield* Effect.mapError(fs.exists(file), unreadable))) return yield* create(file, model)
    const text = yield* Effect.mapError(fs.readFileString(file), unreadable)
    const length = Format.wholeLength(text)
    if (length === 0) return yield* create(file, model)
    if (length < text.length) {
      const bytes = new TextEncoder().encode(text.slice(0, length)).length
      yield* Effect.mapError(fs.truncate(file, bytes), (cause) => problem(`${file} can't be repaired`, cause))
    }
  })
