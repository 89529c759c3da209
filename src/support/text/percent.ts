/** Texts as parts of addresses, in percent-encoding: no text, and no address, makes them throw. */
import * as Result from "effect/Result"

/** A text as a part of an address. Half a character, which no address can have, becomes U+FFFD. */
export const encodePart = (text: string): string => encodeURIComponent(text.toWellFormed())

/** The text of a part of an address; the part itself where it is not encoded so. */
export const decodePart = (part: string): string =>
  Result.getOrElse(
    Result.try(() => decodeURIComponent(part)),
    () => part
  )
