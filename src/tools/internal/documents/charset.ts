/** Texts of bytes, in the encoding that they are in: by a mark, by what was said of them, or by how they look. */
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

/** A page's words on its own encoding, in its first bytes. */
const declared = /<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w-]+)/i

const given = /charset\s*=\s*"?([\w-]+)/i

const sniffed = 2_048

const decoderOf = (label: string) => Option.getOrUndefined(Option.liftThrowable(() => new TextDecoder(label))())

/** True if bytes are UTF-8, as far as their beginning says. */
const isUtf8 = (bytes: Uint8Array): boolean =>
  Option.isSome(
    Option.liftThrowable(() =>
      new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, 65_536), { stream: true })
    )()
  )

/** The decoder of a text. Nobody says that a text is Windows-1252: what is no UTF-8, and says nothing, is that. */
const decoderFor = (bytes: Uint8Array, mimeType: string | undefined) => {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le")
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be")
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return new TextDecoder("utf-8")
  const said = given.exec(mimeType ?? "")?.[1]
  const own = declared.exec(new TextDecoder("latin1").decode(bytes.subarray(0, sniffed)))
  const label = said ?? own?.[1] ?? own?.[2]
  const named = label === undefined ? undefined : decoderOf(label)
  return named ?? new TextDecoder(isUtf8(bytes) ? "utf-8" : "windows-1252")
}

const sliceLength = 65_536

/** The text of some bytes, piece by piece. */
export const textOf = (bytes: Uint8Array, mimeType: string | undefined): Stream.Stream<string> =>
  Stream.suspend(() => {
    const decoder = decoderFor(bytes, mimeType)
    const texts = function* (): Generator<string> {
      for (let at = 0; at < bytes.length; at += sliceLength) {
        yield decoder.decode(bytes.subarray(at, at + sliceLength), { stream: true })
      }
      yield decoder.decode()
    }
    return Stream.fromIterable(texts(), { chunkSize: 1 })
  })
