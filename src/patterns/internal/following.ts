/** Reads the lines of a file that grows, with the place behind each. */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Stream from "effect/Stream"
import { joinBytes } from "../../support/store/joinBytes.ts"

/** A line, and the position behind it. A source without positions leaves it out. */
export interface Line {
  readonly text: string
  readonly position?: string | undefined
}

/** A place in a file: its inode, so that a file that was put in its place is read from the beginning, and an offset. */
interface Place {
  readonly inode: number
  readonly offset: number
}

const newline = 0x0a

/** The most bytes that are read at once. A longer line comes in pieces. */
const mostBytes = 65_536

const say = ({ inode, offset }: Place): string => `${inode}:${offset}`

const parse = (position: string | undefined): Place | undefined => {
  const [inode, offset] = (position ?? "").split(":").map(Number)
  return Number.isSafeInteger(inode) && Number.isSafeInteger(offset)
    ? { inode: inode ?? 0, offset: offset ?? 0 }
    : undefined
}

/** The whole lines of bytes that begin at a place. A line without an end waits for it, unless it fills the bytes. */
const linesIn = (bytes: Uint8Array, { inode, offset }: Place): ReadonlyArray<Line> => {
  const decoder = new TextDecoder()
  const lines: Array<Line> = []
  let from = 0
  while (from < bytes.length) {
    const at = bytes.indexOf(newline, from)
    if (at < 0 && (from > 0 || bytes.length < mostBytes)) break
    const end = at < 0 ? bytes.length : at + 1
    const text = decoder.decode(bytes.subarray(from, at < 0 ? end : at)).replace(/\r$/, "")
    lines.push({ text, position: say({ inode, offset: offset + end }) })
    from = end
  }
  return lines
}

/** Gives another value for a file that is not there: between two looks, it may be moved. */
const orMissing = <A, B>(effect: Effect.Effect<A, PlatformError>, missing: B): Effect.Effect<A | B, PlatformError> =>
  Effect.catchReason(effect, "PlatformError", "NotFound", () => Effect.succeed(missing))

/** Follows a file. A file that is not there yet is waited for. */
export const followFile = (
  files: FileSystem.FileSystem,
  path: string,
  after: string | undefined
): Stream.Stream<Line, PlatformError> =>
  Stream.paginate(
    parse(after),
    Effect.fnUntraced(function* (place) {
      const info = yield* orMissing(files.stat(path), undefined)
      const inode = info === undefined ? 0 : Number(Option.getOrElse(info.ino, () => 0))
      const size = Number(info?.size ?? 0)
      const isSame = place !== undefined && place.inode === inode && place.offset <= size
      const from: Place = { inode, offset: isSame ? place.offset : 0 }
      const bytes =
        size > from.offset
          ? joinBytes(
              yield* orMissing(
                Stream.runCollect(files.stream(path, { offset: from.offset, bytesToRead: mostBytes })),
                []
              )
            )
          : new Uint8Array()
      const lines = linesIn(bytes, from)
      if (lines.length === 0) yield* Effect.sleep("1 second")
      const next = info === undefined ? place : (parse(lines.at(-1)?.position) ?? from)
      return [lines, Option.some(next)] as const
    })
  )
