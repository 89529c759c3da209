/** Takes secrets out of texts that strangers wrote, in the forms in which they may say them. */
import * as Base64 from "effect/encoding/Base64"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Hex from "effect/encoding/Hex"
import { encodePart } from "./percent.ts"

/** Secrets by the names that are shown in their place. */
export type SecretNames = ReadonlyMap<string, string>

const showName = (name: string) => `[secret ${name}]`

/** A value as it stands in a string of JSON. */
export const inJson = (value: string): string => JSON.stringify(value).slice(1, -1)

/** A value as it stands in a field of a form. */
export const inForm = (value: string): string => new URLSearchParams([["", value]]).toString().slice(1)

/** A value as it stands in JSON whose writer escapes these characters, too. */
const escaping = (json: string, characters: RegExp): string =>
  json.replaceAll(characters, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** A value as it stands in a page, by the writer's way of saying quotes. */
const inPage = (value: string, quotes: { readonly [quote: string]: string }): string =>
  value
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll(/["']/g, (quote) => quotes[quote] ?? quote)

/** Fewer characters of base64 also stand in texts that have nothing to do with the value. */
const fewestOfBase64 = 8

/** A value within a longer text in base64, as in `Basic` authorisation: the digits that only its own bytes decide. */
const withinBase64 = (value: Uint8Array): ReadonlyArray<string> =>
  [0, 1, 2].flatMap((offset) => {
    const bytes = new Uint8Array(offset + value.length)
    bytes.set(value, offset)
    const end = Math.floor((bytes.length * 8) / 6)
    const form = Base64.encode(bytes).slice(Math.ceil((offset * 8) / 6), end)
    return form.length < fewestOfBase64 ? [] : [form, form.replaceAll("+", "-").replaceAll("/", "_")]
  })

/** The forms in which an answer may repeat a value, in any case. */
const forms = (value: string): ReadonlyArray<string> => {
  const percent = encodePart(value)
  // RFC 3986 has no sign stand for itself.
  const strict = percent.replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`)
  const json = inJson(value)
  const hex = Hex.encode(value)
  return [
    value,
    [...value].toReversed().join(""),
    percent,
    strict,
    inForm(value),
    hex,
    hex.replaceAll(/../g, "%$&"),
    // A body of JSON that is told in JSON.
    inJson(json),
    // Of itself, in ASCII (Python), and safe to stand in a page (Go); with a slash as PHP writes it.
    ...[json, escaping(json, /[^\x20-\x7e]/g), escaping(json, /[<>&\u2028\u2029]/g)].flatMap((form) => [
      form,
      form.replaceAll("/", "\\/")
    ]),
    ...["'", "&#39;", "&#x27;", "&#039;", "&apos;"].flatMap((single) =>
      ['"', "&quot;", "&#34;"].map((double) => inPage(value, { "'": single, '"': double }))
    ),
    Base64.encode(value),
    Base64Url.encode(value),
    ...withinBase64(new TextEncoder().encode(value))
  ]
}

/**
 * Makes a function that takes secrets out of a text: the longest form first, of which another one may be a part. `as` is
 * the way in which the text was made of what it says, if that is not the text itself.
 */
export const masker = (
  used: SecretNames,
  as: (form: string) => string = (form) => form
): ((text: string) => string) => {
  const names = new Map<string, string>()
  for (const [name, value] of used) {
    if (value === "") continue
    for (const form of forms(value)) {
      const key = as(form).toLowerCase()
      if (!names.has(key)) names.set(key, name)
    }
  }
  const [first] = names.values()
  if (first === undefined) return (text) => text
  const all = [...names.keys()].toSorted((left, right) => right.length - left.length)
  const pattern = new RegExp(all.map((form) => form.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|"), "gi")
  return (text) => text.replaceAll(pattern, (match) => showName(names.get(match.toLowerCase()) ?? first))
}

/** Takes secrets out of one text. */
export const mask = (text: string, used: SecretNames, as?: (form: string) => string): string => masker(used, as)(text)

/** A text that was cut off, without its end: the beginning of a secret could be there, which is not known for one. */
export const withoutEnd = (text: string, used: SecretNames): string => {
  const longest = Math.max(0, ...[...used.values()].flatMap((value) => forms(value).map((form) => form.length)))
  return text.slice(0, Math.max(0, text.length - longest))
}
