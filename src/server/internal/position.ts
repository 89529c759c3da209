/** Places in the events of a thread, as texts that readers keep. */
import * as Hash from "effect/Hash"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "../../core/AgentEvent.ts"

/** A place in the events of a thread. Readers keep the last one, and give it back to go on behind it. */
export const Position = Schema.String.pipe(Schema.brand("effect-deepagents/Position"))
export type Position = typeof Position.Type

/**
 * A piece of a stream. `Reset` makes all frames void behind the last `CheckpointSaved` of the root run, or
 * everything at all (`beginning`): it comes again, or never was.
 */
export type Frame =
  | { readonly _tag: "Event"; readonly position: Position; readonly event: AgentEvent }
  | { readonly _tag: "Reset"; readonly position: Position; readonly to: "checkpoint" | "beginning" }

/**
 * The parts of a position: the entries that were stored (`step`), a mark of the last one of them, the log and the number
 * of its frames that were told, and whether the end of the last run was told.
 */
export interface Place {
  readonly step: number
  readonly leaf: string
  readonly epoch: string
  readonly told: number
  readonly isOver: boolean
}

/** The epoch of places that only the store knows. */
export const storeEpoch = "s"

export const beginning: Place = { step: 0, leaf: "0", epoch: storeEpoch, told: 0, isOver: false }

/** The place before the first input. */
export const start: Place = { ...beginning, isOver: true }

/** Marks an entry, so that another branch of the thread is recognised. */
export const markOf = (id: string | null): string => (id === null ? "0" : (Hash.string(id) >>> 0).toString(36))

/** Writes a place. */
export const write = ({ epoch, isOver, leaf, step, told }: Place): Position =>
  Position.make(`${step}.${leaf}.${epoch}.${told}${isOver ? "e" : ""}`)

const form = /^(\d{1,12})\.([0-9a-z]{1,8})\.([0-9a-z]{1,12})\.(\d{1,12})(e?)$/u

/** Reads a place; `undefined` for any other text. */
export const parse = (text: string): Place | undefined => {
  const [, step = "", leaf = "", epoch = "", told = "", end = ""] = form.exec(text) ?? []
  return step === "" ? undefined : { step: Number(step), leaf, epoch, told: Number(told), isOver: end === "e" }
}
