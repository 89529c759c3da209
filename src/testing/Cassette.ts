/**
 * Records the answers of a real model to a file, and replays them: such tests are fast, free and reproducible.
 *
 * A request is identified by the provider's input: system prompt, tools, messages, tool choice, output schema and
 * parameters. Changing ids do not count. The n-th of several identical requests gets the n-th recording; give work that
 * runs at once a {@link Scope} of its own, so that its requests don't share recordings. An unrecorded request fails with a
 * `ModelError` that names the file and the difference.
 *
 * Texts that look like keys (API keys, bearer tokens, passwords in URLs …) are never written, in requests or turns; a
 * replayed turn has `[redacted]` in their place. `redact` removes more, including text that differs in every run
 * (dates, temporary folders). It must be idempotent.
 *
 * ```ts
 * import { Layer } from "effect"
 * import type { ChatModel } from "effect-deepagents"
 * import { Cassette } from "effect-deepagents/testing"
 *
 * declare const live: Layer.Layer<ChatModel.ChatModel>
 * declare const recording: boolean
 *
 * const file = "test/cassettes/support.jsonl"
 * const model = recording ? Cassette.record(file).pipe(Layer.provide(live)) : Cassette.replay(file)
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Scopes from "effect/Scope"
import * as Stream from "effect/Stream"
import { ChatModel, type ModelRequest, type ModelSession } from "../core/ChatModel.ts"
import type { ModelError } from "../core/ModelError.ts"
import { describeNearest } from "./internal/cassette/difference.ts"
import * as Fingerprint from "./internal/cassette/fingerprint.ts"
import * as Redact from "./internal/cassette/redact.ts"
import * as Tape from "./internal/cassette/tape.ts"

/** `redact` changes every text before it is compared or written. Record and replay need the same function. */
export interface Options {
  /** Changes texts before they are written, to keep secrets out of the file. Default: unchanged. */
  readonly redact?: ((text: string) => string) | undefined
}

/**
 * Names a part of the recordings, such as one trial of an evaluation. Requests find recordings of their scope only.
 * Default: the empty name.
 */
export const Scope = Context.Reference<string>("effect-deepagents/testing/Cassette/Scope", { defaultValue: () => "" })

/** Makes a model session that plays a turn for the fingerprint of each request. */
const makeSession = (
  redact: Redact.Redact,
  play: (
    print: Fingerprint.Fingerprint,
    request: ModelRequest
  ) => Effect.Effect<ReturnType<ModelSession["nextTurn"]>, ModelError>
): ModelSession => ({
  nextTurn: (request) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const print = yield* Fingerprint.make(Redact.request(request, redact), yield* Scope)
        return yield* play(print, request)
      })
    )
})

/**
 * Records the turns of the model in context. Building the layer overwrites the file; its folder must exist. Use
 * {@link auto} with `Agent.provide`, which builds the layer for each run. Only complete turns are recorded.
 */
export const record = (
  file: string,
  options?: Options
): Layer.Layer<ChatModel, ModelError, ChatModel | FileSystem.FileSystem> =>
  Layer.effect(
    ChatModel,
    Effect.gen(function* () {
      const model = yield* ChatModel
      const redact = Redact.withBuiltIn(options?.redact)
      yield* Tape.create(file, model)
      const write = yield* Tape.writer(file, [], redact)
      return {
        ...model,
        makeSession: Effect.map(model.makeSession, (session) =>
          makeSession(redact, (print, request) =>
            Effect.succeed(Tape.recording(session.nextTurn(request), print, write))
          )
        )
      }
    })
  )

/**
 * Replays a file without a model. It has the properties of the recorded model (id, context window, prices …). Building it
 * fails if the file is unreadable or invalid.
 */
export const replay = (file: string, options?: Options): Layer.Layer<ChatModel, ModelError, FileSystem.FileSystem> =>
  Layer.effect(
    ChatModel,
    Effect.gen(function* () {
      const recorded = yield* Tape.readTape(file)
      const find = Tape.finder(recorded)
      const session = makeSession(Redact.withBuiltIn(options?.redact), (print) => {
        const { recordings, turn } = find(print.key)
        if (turn !== undefined) return Effect.succeed(Stream.fromArray(turn.parts))
        const why =
          recordings === 0
            ? `has no recording of this request; ${describeNearest(recorded, print)}`
            : `has ${recordings} recording${recordings === 1 ? "" : "s"} of this request, which was made once more`
        return Effect.fail(Tape.problem(`${file} ${why}. If that is meant, record it anew with Cassette.record`))
      })
      const { type: _type, v: _v, ...facts } = recorded.model
      return { contextWindowTokens: undefined, ...facts, makeSession: Effect.succeed(session) }
    })
  )

/**
 * Replays recorded turns, and requests and records missing ones. It opens a session of the model at the first request.
 * Building it fails if the file belongs to another model.
 */
export const auto = (
  file: string,
  options?: Options
): Layer.Layer<ChatModel, ModelError, ChatModel | FileSystem.FileSystem> =>
  Layer.effect(
    ChatModel,
    Effect.gen(function* () {
      const model = yield* ChatModel
      const redact = Redact.withBuiltIn(options?.redact)
      yield* Tape.prepare(file, model)
      const recorded = yield* Tape.readTape(file)
      if (recorded.model.modelId !== model.modelId || recorded.model.provider !== model.provider) {
        const names = `${recorded.model.provider}/${recorded.model.modelId}, not of ${model.provider}/${model.modelId}`
        return yield* Effect.fail(Tape.problem(`${file} is of ${names}. Record it anew with Cassette.record`))
      }
      const find = Tape.finder(recorded)
      const write = yield* Tape.writer(file, recorded.values.keys(), redact)
      return {
        ...model,
        makeSession: Effect.gen(function* () {
          const scope = yield* Effect.scope
          let opened: ModelSession | undefined
          const open = Effect.suspend(() =>
            Effect.map(
              opened === undefined ? Scopes.provide(model.makeSession, scope) : Effect.succeed(opened),
              (session) => (opened = session)
            )
          )
          return makeSession(redact, (print, request) => {
            const { turn } = find(print.key)
            return turn === undefined
              ? Effect.map(open, (live) => Tape.recording(live.nextTurn(request), print, write))
              : Effect.succeed(Stream.fromArray(turn.parts))
          })
        })
      }
    })
  )
