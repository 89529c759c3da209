/**
 * Typed state of a run, in named slots that middleware and tools bring along.
 *
 * A slot is a value: code that has it can read and write its place in any run. Slots add up, and two of one name are
 * refused; a sub-agent starts with fresh ones, except those that are `shared`, which the whole tree of agents works on
 * together under a merge law.
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { AgentState, Tool, ToolContext } from "effect-deepagents"
 *
 * const visited = AgentState.slot("visited", { schema: Schema.Array(Schema.String), initial: [] })
 *
 * const visit = Tool.make("visit", {
 *   description: "Remembers that a page was visited",
 *   parameters: { url: Schema.String },
 *   execute: Effect.fnUntraced(function*({ url }) {
 *     const { state } = yield* ToolContext.ToolContext
 *     yield* state.update(visited, (urls) => [...urls, url])
 *     return "noted"
 *   })
 * })
 * ```
 */
import type * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { at, brief, problems } from "../support/text/issues.ts"
import type { Json } from "./Json.ts"
import { InvalidEncoding } from "./schema/encoding.ts"

/**
 * A named, typed place in the state. Every run starts with `initial`. A shared slot has `merge`: `set` writes
 * `merge(current, incoming)`, so that parallel agents never overwrite each other. It must be associative, and keep
 * `current` for values that it already holds.
 */
export interface Slot<in out A> {
  readonly name: string
  /** Tells two slots of one name apart. */
  readonly origin: object
  readonly initial: A
  readonly merge: ((current: A, incoming: A) => A) | undefined
  /** Makes the value that is taken when the signature of the thread does not hold, for a slot that gates read. */
  readonly ifTampered: (() => Json) | undefined
  readonly encode: (value: A) => Json
  readonly decode: (json: unknown) => Result.Result<A, InvalidEncoding>
}

/** A slot of any type. */
export type AnySlot = Pick<Slot<never>, "name" | "origin" | "ifTampered"> & {
  readonly decode: (json: unknown) => Result.Result<unknown, InvalidEncoding>
}

/** The schema of a slot, its first value, and, if it is shared, the merge of values that meet. */
export interface SlotOptions<A, I> {
  /** The schema of the value. It must encode to JSON. */
  readonly schema: Schema.Codec<A, I>
  /** The value at the start of a run. */
  readonly initial: NoInfer<A>
  /** Shares the slot with all agents of a tree. Default: each agent has its own value. */
  readonly shared?:
    | {
        /** Merges a written value into the current one. It must be associative. */
        readonly merge: (current: NoInfer<A>, incoming: NoInfer<A>) => NoInfer<A>
      }
    | undefined
  /**
   * Marks a slot that gates decide by, with its safe value. With a `SigningKey` in the context of a run, the slot (and
   * slots below its name and a `/`) is signed in the thread; if the signature does not hold, it has this value.
   */
  readonly ifTampered?: NoInfer<A> | undefined
}

/** Makes a slot. Its schema must encode to JSON. */
export const slot = <A, I>(name: string, options: SlotOptions<A, I>): Slot<A> => family(name, options)("")

/**
 * Makes a family of slots, one per key, for many values of one kind that change one at a time (a file each). `names` of
 * the {@link Store} lists the existing keys.
 */
export const family = <A, I>(name: string, options: SlotOptions<A, I>): ((key: string) => Slot<A>) => {
  const codec = Schema.toCodecJson(options.schema)
  const encode = Schema.encodeSync(codec)
  const decode = Schema.decodeUnknownResult(codec)
  const { ifTampered } = options
  const safe = ifTampered === undefined ? undefined : () => encode(ifTampered)
  return (key) => ({
    name: name + key,
    ifTampered: safe,
    origin: options,
    initial: options.initial,
    merge: options.shared?.merge,
    encode,
    decode: (json) =>
      Result.mapError(decode(json), (error) => {
        const first = problems(error.issue)[0]
        return new InvalidEncoding({
          what: "state",
          path: [name + key, first?.path ?? ""].filter((part) => part !== "").join("."),
          found: brief(at(json, first?.keys ?? [])),
          expected: first?.expected ?? "a valid value"
        })
      })
  })
}

/** A change to one slot, to be applied later (by a tool's output). */
export type Update = (store: Store) => Effect.Effect<void>

/** The update that sets a slot. */
export const assign: {
  <A>(value: A): (target: Slot<A>) => Update
  <A>(target: Slot<A>, value: A): Update
} = dual(
  2,
  <A>(target: Slot<A>, value: A): Update =>
    (store) =>
      store.set(target, value)
)

/** The update that changes a slot by a function of its value. */
export const change: {
  <A>(f: (current: A) => A): (target: Slot<A>) => Update
  <A>(target: Slot<A>, f: (current: A) => A): Update
} = dual(
  2,
  <A>(target: Slot<A>, f: (current: A) => A): Update =>
    (store) =>
      store.update(target, f)
)

/**
 * The live state of one run. `update` reads and writes in one step, so parallel tools can't lose each other's changes.
 * Every write emits a `StateChanged` event.
 */
export interface Store {
  readonly get: <A>(slot: Slot<A>) => Effect.Effect<A>
  readonly set: <A>(slot: Slot<A>, value: A) => Effect.Effect<void>
  readonly update: <A>(slot: Slot<A>, f: (current: A) => A) => Effect.Effect<void>
  /** The names of the slots that were written, or came with the state, and begin so: for families of slots. */
  readonly names: (prefix: string) => Effect.Effect<ReadonlyArray<string>>
  /** Counts the writes in the whole tree of agents: to see whether there was one. */
  readonly writes: Effect.Effect<number>
  /** One object for the whole tree of agents: a key for in-memory data about its shared slots. */
  readonly shared: object
}

/** The state of a run at one moment, as plain JSON by slot name. Checkpoints hold it. */
export type Snapshot = { readonly [slot: string]: Json }

/** Reads a slot from a snapshot; a slot that was never written has its initial value. */
export const read: {
  <A>(target: Slot<A>): (snapshot: Snapshot) => Result.Result<A, InvalidEncoding>
  <A>(snapshot: Snapshot, target: Slot<A>): Result.Result<A, InvalidEncoding>
} = dual(2, <A>(snapshot: Snapshot, target: Slot<A>): Result.Result<A, InvalidEncoding> => {
  const json = snapshot[target.name]
  return json === undefined ? Result.succeed(target.initial) : target.decode(json)
})
