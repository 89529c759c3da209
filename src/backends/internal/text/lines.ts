/**
 * Splits text into lines, and cuts windows that fit into a model's context.
 *
 * A line ends with `\n`, `\r\n` or a lone `\r`; a last line needs no ending, and an ending begins no further line. So
 * `""` has no line, and `"a"` and `"a\n"` have one. A byte order mark at the beginning of a file is no part of its
 * text.
 *
 * A text at hand goes through {@link windowOf}; a file that comes in chunks goes through a {@link WindowReader}, which
 * holds no more of it than the window and a chunk. Both give the same.
 */
import type { Window } from "../../../core/Backend.ts"
import { boundaryBefore } from "../../../support/text/text.ts"
import { makeSniffer } from "../files/mime.ts"
import { boundsOf, makeCollector, type TextWindow } from "../search/collector.ts"
import { type Counter, countEndings, cr, lf } from "./endings.ts"

export { boundsOf, defaultLimit, maxWindowBytes, type TextWindow } from "../search/collector.ts"

const byteOrderMark = "\uFEFF"

/** The bytes of one step of decoding. A window reads at most this much too far. */
const pieceLength = 64 * 1024

/** The answer of a file: a window of its text, or its first bytes if it is not text. */
export type ReadWindow =
  | { readonly kind: "text"; readonly window: TextWindow; readonly size: number }
  | { readonly kind: "binary"; readonly head: Uint8Array }

/**
 * Reads a window of a file chunk by chunk, in order. `push` says whether more is needed: it is not, once the file is
 * known to be binary. `end` is called once, after the last chunk. `size` is how many bytes were pushed.
 */
export interface WindowReader {
  readonly push: (chunk: Uint8Array) => boolean
  readonly end: () => ReadWindow
}

export const makeWindowReader = (window?: Window): WindowReader => {
  const bounds = boundsOf(window)
  const collector = makeCollector(bounds)
  const sniffer = makeSniffer()
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  const counter: Counter = { endings: 0, crlf: 0, afterCr: false }
  let size = 0
  let last = lf
  /** Tells whether the window has begun, and whether a byte of it was seen. */
  let inside = bounds.offset === 1
  let begun = false

  const collect = (bytes: Uint8Array, more: boolean) => {
    const text = decoder.decode(bytes, { stream: more })
    if (text === "") return
    // Only the first character of the file can be a byte order mark.
    const isMark = !begun && bounds.offset === 1 && text.startsWith(byteOrderMark)
    begun = true
    collector.take(isMark ? text.slice(1) : text)
  }
  const take = (piece: Uint8Array) => {
    let from = 0
    if (!inside) {
      from = countEndings(counter, piece, 0, bounds.offset - 1)
      if (counter.endings < bounds.offset - 1) return
      // The `\n` of a `\r\n` may be in the next piece: it belongs to the line before.
      if (counter.afterCr) {
        if (from === piece.length) return
        if (piece[from] === lf) from = countEndings(counter, piece.subarray(0, from + 1), from, Infinity)
      }
      inside = true
    }
    if (!collector.isFull()) collect(piece.subarray(from), true)
    countEndings(counter, piece, from, Infinity)
  }

  return {
    push: (chunk) => {
      if (chunk.length === 0) return true
      size += chunk.length
      last = chunk[chunk.length - 1] ?? lf
      if (!sniffer.push(chunk)) return false
      for (let i = 0; i < chunk.length; i += pieceLength) take(chunk.subarray(i, i + pieceLength))
      return true
    },
    end: () => {
      const { head, isText } = sniffer.end()
      if (!isText) return { kind: "binary", head }
      if (inside && !collector.isFull()) collect(new Uint8Array(0), false)
      const onlyMark = size === 3 && last === 0xbf && head[0] === 0xef && head[1] === 0xbb
      const total = counter.endings + (last === lf || last === cr || onlyMark ? 0 : 1)
      const crlf = counter.endings > 0 && counter.crlf === counter.endings
      return { kind: "text", window: collector.end(total, crlf), size }
    }
  }
}

const encoder = new TextEncoder()

/** Encodes a text piece by piece, to save memory. */
const encode = function* (text: string): Generator<Uint8Array> {
  let from = 0
  while (from < text.length) {
    const to = boundaryBefore(text, Math.min(text.length, from + pieceLength))
    yield encoder.encode(text.slice(from, to))
    from = to
  }
}

/** A window of a file that is at hand, as its text or its bytes. */
export const windowOf = (content: string | Uint8Array, window?: Window): ReadWindow => {
  const reader = makeWindowReader(window)
  for (const chunk of typeof content === "string" ? encode(content) : [content]) {
    if (!reader.push(chunk)) break
  }
  return reader.end()
}
