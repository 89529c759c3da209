/** Texts of models, tools, files and people, made harmless for a terminal. */
import { visible } from "./untrusted.ts"

/** Escape sequences as terminals read them: CSI, strings up to their end (on their line), and the short ones. */
const sequences =
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u009c\n]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]?/g

/** A text without escape sequences, control characters, and characters that hide or turn text. */
export const clean = (text: string): string => visible(text.replaceAll(sequences, ""))

/** The same on one line. */
export const cleanLine = (text: string): string => clean(text).replaceAll(/\s+/g, " ").trim()

/** Characters that an approver must see, though a terminal hides or moves them. */
const odd = /(?![\n\t])(?:[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\u00a0|\u034f|\u115f|\u1160|[\u2000-\u200a]|\u3164|\uffa0)/gu

/** Writes invisible characters out, as `‹U+202E›`, for texts that a person approves. */
export const escapeUnseen = (text: string): string =>
  text.replaceAll(odd, (one) => `‹U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`)
