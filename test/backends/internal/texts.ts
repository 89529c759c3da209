/** Texts and chunks for the tests of text rules, and the plainest way to take lines apart. */
import fc from "fast-check"

/** Text of few characters, so that lines, endings and matches collide; some of several bytes. */
export const text = (maxLength = 60): fc.Arbitrary<string> =>
  fc
    .array(
      fc.constantFrom(
        "a",
        "b",
        "ab",
        "A",
        " ",
        "\t",
        "\n",
        "\n",
        "\r\n",
        "\r",
        "é",
        "€",
        "😀",
        "\uFEFF",
        "K",
        "\u2028"
      ),
      { maxLength }
    )
    .map((parts) => parts.join(""))

/** Bytes that are often text, and sometimes have invalid UTF-8 or a NUL. */
export const bytes = (maxLength = 60): fc.Arbitrary<Uint8Array> =>
  fc
    .array(
      fc.oneof(
        { weight: 8, arbitrary: text(6).map((part) => [...new TextEncoder().encode(part)]) },
        { weight: 1, arbitrary: fc.constantFrom([0xff], [0xe2, 0x82], [0xf0, 0x9f], [0x80], [0], [0xef, 0xbb]) }
      ),
      { maxLength: maxLength / 4 }
    )
    .map((parts) => new Uint8Array(parts.flat()))

/** Cuts bytes at any places, the same one more than once too. */
export const chunked = (content: Uint8Array, cuts: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const at = [0, ...cuts.map((cut) => cut % (content.length + 1)), content.length].sort((a, b) => a - b)
  return at.slice(1).map((to, index) => content.slice(at[index], to))
}

/** The lines of a text, by the rule: each ending ends a line, and a last line needs none. No byte order mark. */
export const linesOf = (content: string): ReadonlyArray<string> => {
  const lines = content.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/)
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines
}

export const decode = (content: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(content)
