/**
 * The mark of a folder whose threads were moved: a file that names the place. New threads are refused while it is there;
 * each thread has a mark of its own in its file, which is in an order with its changes.
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

/** The mark of a folder. */
export const makeMark = ({ folder, fs, path }: Place) => {
  const file = path.join(folder, "moved.json")

  const read: Effect.Effect<string | undefined, Fault> = faulty(
    Effect.map(unless("NotFound")(fs.readFileString(file)), (text) =>
      text === undefined
        ? undefined
        : Option.match(decode(text), { onNone: () => "another place", onSome: ({ to }) => to })
    )
  )

  /** Writes the mark, unless there is one. Gives the place that the mark names. */
  const write = (to: string): Effect.Effect<string, Fault> =>
    Effect.gen(function* () {
      const whole = path.join(folder, `moved.${makeId()}`)
      yield* faulty(fs.writeFileString(whole, encode({ to }), { flag: "wx", mode: 0o600 }))
      yield* faulty(unless("AlreadyExists")(fs.link(whole, file)))
      yield* Effect.ignore(fs.remove(whole))
      yield* syncFolder(fs, folder)
      return (yield* read) ?? to
    })

  const remove: Effect.Effect<void, Fault> = faulty(Effect.asVoid(unless("NotFound")(fs.remove(file))))

  return { read, write, remove }
}
