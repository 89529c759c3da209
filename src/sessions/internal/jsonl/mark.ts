/**
 * The mark of a folder whose threads were moved: a file that names the new place. It refuses new threads. Each thread has
 * its own mark in its file, which is ordered with its changes.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { makeId } from "../../../core/Message.ts"
import { syncFolder, unless } from "../../../support/store/appendLog.ts"
import type { Fault } from "../tables.ts"
import { faulty, type Place } from "./log.ts"

const Mark = Schema.fromJsonString(Schema.Struct({ to: Schema.String }))
const decode = Schema.decodeUnknownOption(Mark)
const encode = Schema.encodeSync(Mark)

const fileOf = ({ folder, path }: Place): string => path.join(folder, "moved.json")

/** Reads the place that the mark names. */
export const readMark = (place: Place): Effect.Effect<string | undefined, Fault> =>
  faulty(
    Effect.map(unless("NotFound")(place.fs.readFileString(fileOf(place))), (text) =>
      text === undefined
        ? undefined
        : Option.match(decode(text), { onNone: () => "another place", onSome: ({ to }) => to })
    )
  )

/** Writes the mark, unless one exists. Gives the place that the mark names. */
export const writeMark = Effect.fnUntraced(function* (place: Place, to: string): Effect.fn.Return<string, Fault> {
  const { folder, fs, path } = place
  const whole = path.join(folder, `moved.${makeId()}`)
  yield* faulty(fs.writeFileString(whole, encode({ to }), { flag: "wx", mode: 0o600 }))
  yield* faulty(unless("AlreadyExists")(fs.link(whole, fileOf(place))))
  yield* Effect.ignore(fs.remove(whole))
  yield* syncFolder(fs, folder)
  return (yield* readMark(place)) ?? to
})

export const removeMark = (place: Place): Effect.Effect<void, Fault> =>
  faulty(Effect.asVoid(unless("NotFound")(place.fs.remove(fileOf(place)))))
