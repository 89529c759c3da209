/** Contents of files, as just-bash gives and takes them. */

type Options = { readonly encoding?: string | null | undefined } | string | undefined

const encodingOf = (options: Options): string => {
  const name = typeof options === "string" ? options : options?.encoding
  return name ?? "utf8"
}

const isBytes = (encoding: string): boolean => encoding === "binary" || encoding === "latin1" || encoding === "ascii"

const fromUnits = (text: string): Uint8Array => Uint8Array.from(text, (char) => char.charCodeAt(0) & 0xff)

const toUnits = (bytes: Uint8Array): string => {
  const parts: Array<string> = []
  for (let from = 0; from < bytes.length; from += 0x8000) {
    parts.push(String.fromCharCode(...bytes.subarray(from, from + 0x8000)))
  }
  return parts.join("")
}

/** The bytes of a content. A text in the encoding `binary` has a byte in each character. */
export const encode = (content: string | Uint8Array, options: Options): Uint8Array => {
  if (typeof content !== "string") return content
  const encoding = encodingOf(options)
  if (isBytes(encoding)) return fromUnits(content)
  if (encoding === "base64") return fromUnits(atob(content))
  if (encoding === "hex") {
    return Uint8Array.from(content.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  }
  return new TextEncoder().encode(content)
}

/** The text of bytes. */
export const decode = (bytes: Uint8Array, options: Options): string => {
  const encoding = encodingOf(options)
  if (isBytes(encoding)) return toUnits(bytes)
  if (encoding === "base64") return btoa(toUnits(bytes))
  if (encoding === "hex") return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)
}

/** The output of a command: text, or bytes in the form of text. */
export const outputText = (text: string, kind: "bytes" | "text" | undefined): string =>
  kind === "bytes" ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(fromUnits(text)) : text
