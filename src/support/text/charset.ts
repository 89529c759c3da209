/** Decodes texts of bytes by their encoding: a mark, a declaration, or the bytes' pattern. */
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

/** A page's declaration of its encoding, in its first bytes. */
const declared = /<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w-]+)/i

const charsetParameter = /charset\s*=\s*"?([\w-]+)/i

const sniffed = 2_048

const decoderOf = (label: string) => Option.getOrUndefined(Option.liftThrowable(() => new TextDecoder(label))())

/** Reports whether the beginning of bytes is valid in an encoding. */
const fits = (bytes: Uint8Array, label: string): boolean =>
  Option.isSome(
    Option.liftThrowable(() =>
      new TextDecoder(label, { fatal: true }).decode(bytes.subarray(0, 65_536), { stream: true })
    )()
  )

/** Reports whether all bytes are ASCII. (A loop: `some` takes ten times as long for a page.) */
const isAscii = (bytes: Uint8Array): boolean => {
  for (let at = 0; at < bytes.length; at++) if ((bytes[at] ?? 0) > 0x7f) return false
  return true
}

const isWide = (label: string): boolean => decoderOf(label)?.encoding.startsWith("utf-16") === true

/** The encoding of unmarked two-byte text that is mostly ASCII: every other byte is zero. */
const wideOf = (bytes: Uint8Array): string | undefined => {
  const head = bytes.subarray(0, 1_024)
  const zeros = [0, 0]
  for (const [at, byte] of head.entries()) if (byte === 0) zeros[at % 2] = (zeros[at % 2] ?? 0) + 1
  const [even = 0, odd = 0] = zeros
  const many = head.length * 0.4
  return head.length < 8
    ? undefined
    : odd > many && even === 0
      ? "utf-16le"
      : even > many && odd === 0
        ? "utf-16be"
        : undefined
}

/**
 * The decoder of a text. A declaration counts if the bytes agree: many pages are UTF-8 and declare another encoding.
 * Windows-1252 is rarely declared: undeclared text that is no UTF-8 is decoded as such.
 */
export const decoderFor = (bytes: Uint8Array, mimeType: string | undefined): InstanceType<typeof TextDecoder> => {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le")
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be")
  const wide = wideOf(bytes)
  if (wide !== undefined) return new TextDecoder(wide)
  const charset = charsetParameter.exec(mimeType ?? "")?.[1]
  // ASCII letters in two bytes each: every text has some.
  if (charset !== undefined && isWide(charset) && bytes.subarray(0, 4_096).includes(0)) return new TextDecoder(charset)
  const isUtf8 = fits(bytes, "utf-8")
  if (isUtf8 && !isAscii(bytes)) return new TextDecoder()
  const own = declared.exec(new TextDecoder("latin1").decode(bytes.subarray(0, sniffed)))
  // A page that is readable so far does not have two-byte characters.
  const labels = [charset, own?.[1] ?? own?.[2]].filter(
    (label) => label !== undefined && decoderOf(label) !== undefined && !isWide(label)
  )
  const label = labels.find((one) => one !== undefined && fits(bytes, one)) ?? labels[0]
  return new TextDecoder(label ?? (isUtf8 ? "utf-8" : "windows-1252"))
}

const sliceLength = 65_536

/** Decodes bytes piece by piece. */
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

const codePages = new Map([
  [932, "shift_jis"],
  [936, "gbk"],
  [949, "euc-kr"],
  [950, "big5"],
  [65001, "utf-8"],
  [10000, "macintosh"],
  [874, "windows-874"]
])

/** Encodings by the numbers of character sets in Windows fonts. */
export const encodingsOfFonts: ReadonlyMap<number, string> = new Map([
  [128, "shift_jis"],
  [129, "euc-kr"],
  [134, "gbk"],
  [136, "big5"],
  [161, "windows-1253"],
  [162, "windows-1254"],
  [163, "windows-1258"],
  [177, "windows-1255"],
  [178, "windows-1256"],
  [186, "windows-1257"],
  [204, "windows-1251"],
  [222, "windows-874"],
  [238, "windows-1250"]
])

/** The encoding of a code page of Windows. */
export const encodingOfCodePage = (page: number): string =>
  codePages.get(page) ?? (page >= 1250 && page <= 1258 ? `windows-${page}` : "windows-1252")
