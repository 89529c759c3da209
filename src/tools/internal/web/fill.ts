/**
 * Secrets on their way out of a request, and out of what comes back.
 */
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Redacted from "effect/Redacted"
import { decodePart, encodePart } from "../../../support/percent.ts"
import { Secrets } from "../../Secrets.ts"
import * as addresses from "../network/addresses.ts"
import { matchesHost } from "../network/rules.ts"

const mark = /\{\{\s*secret\s*:\s*([A-Za-z0-9_.-]{1,100})\s*\}\}/gi

/** The names of the secrets that a text asks for. */
const namesIn = (text: string): ReadonlyArray<string> => [...text.matchAll(mark)].map(([, name = ""]) => name)

/** Values that may be seen on the way back, and what is shown in their place. */
export type Used = ReadonlyMap<string, string>

const shown = (name: string) => `[secret ${name}]`

/** A value as it stands in a string of JSON. */
const inJson = (value: string): string => JSON.stringify(value).slice(1, -1)

/** A value as it stands in a field of a form. */
const inForm = (value: string): string => new URLSearchParams([["", value]]).toString().slice(1)

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

const lowerCase = (escaped: string): string => escaped.replaceAll(/%[\dA-F]{2}/g, (code) => code.toLowerCase())

/** The forms in which an answer may say a value. */
const forms = (value: string): ReadonlyArray<string> => {
  const percent = encodePart(value)
  // RFC 3986 has no sign stand for itself.
  const strict = percent.replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
  const escaped = [percent, strict, inForm(value)]
  const json = inJson(value)
  return [
    value,
    ...escaped,
    ...escaped.map(lowerCase),
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
    Base64Url.encode(value)
  ]
}

/**
 * Takes secrets out of a text: the longest first, of which another one may be a part. `as` is the way in which the text
 * was made of what it says, if that is not the text itself.
 */
export const mask = (text: string, used: Used, as: (form: string) => string = (form) => form): string =>
  [...used]
    .flatMap(([name, value]) =>
      value === "" ? [] : [...new Set(forms(value).map(as))].map((form) => ({ name, form }))
    )
    .toSorted((left, right) => right.form.length - left.form.length)
    .reduce((masked, { form, name }) => masked.replaceAll(form, shown(name)), text)

/** A text that was cut off, without its end: the beginning of a secret could be there, which is not known for one. */
export const withoutEnd = (text: string, used: Used): string => {
  const longest = Math.max(0, ...[...used.values()].flatMap((value) => forms(value).map((form) => form.length)))
  return text.slice(0, Math.max(0, text.length - longest))
}

/** Nobody on the way can read what is sent: it is encrypted, or goes to this machine or the network around it. */
const isConfidential = (url: URL): boolean => {
  if (url.protocol === "https:") return true
  const literal = addresses.parse(url.hostname)
  return literal === undefined ? addresses.isPrivateName(url.hostname) : addresses.isPrivate(literal)
}

/** Looks up the secrets that some texts ask for. Fails with a sentence about one that is not there, or not for this host. */
export const lookUp = (texts: ReadonlyArray<string>, url: URL): Effect.Effect<Used, string, Secrets> =>
  Effect.gen(function* () {
    const asked = [...new Set(texts.flatMap(namesIn))]
    const used = new Map<string, string>()
    if (asked.length === 0) return used
    const secrets = yield* Secrets
    for (const name of asked) {
      const secret = yield* secrets.get(name)
      if (secret === undefined) {
        const names = yield* secrets.names
        return yield* Effect.fail(
          `there is no secret "${name}"; there ${names.length === 0 ? "are none" : `is ${names.join(", ")}`}`
        )
      }
      if (!matchesHost(secret.hosts, url)) {
        return yield* Effect.fail(`the secret "${name}" is for ${secret.hosts.join(", ")}, not for ${url.host}`)
      }
      if (!isConfidential(url)) return yield* Effect.fail(`the secret "${name}" is sent by https only`)
      used.set(name, Redacted.value(secret.value))
    }
    return used
  })

/** The secrets that a host knows: it may say one that a request did not ask for. */
export const knownTo = (url: URL): Effect.Effect<Used, never, Secrets> =>
  Effect.gen(function* () {
    const secrets = yield* Secrets
    const known = new Map<string, string>()
    for (const name of yield* secrets.names) {
      const secret = yield* secrets.get(name)
      if (secret !== undefined && matchesHost(secret.hosts, url)) known.set(name, Redacted.value(secret.value))
    }
    return known
  })

/** Fills secrets in. */
export const fill = (text: string, used: Used): string =>
  text.replaceAll(mark, (whole, name: string) => used.get(name) ?? whole)

/** Fills secrets into headers, and says which have one now: these may go to no other origin, whatever they are called. */
export const fillHeaders = (
  headers: ReadonlyArray<readonly [name: string, value: string]>,
  used: Used
): { readonly filled: ReadonlyArray<readonly [string, string]>; readonly tied: ReadonlySet<string> } => {
  const filled = headers.map(([name, value]) => [name, fill(value, used)] as const)
  const tied = filled.flatMap(([name, value], index) => (value === headers[index]?.[1] ? [] : [name.toLowerCase()]))
  return { filled, tied: new Set(tied) }
}

const isForm = (type: string): boolean => /^application\/x-www-form-urlencoded\b/i.test(type.trim())

/** Reports whether a body of a type is text in which values are escaped. */
export const isEscaped = (type: string): boolean => isForm(type) || /^[^;]*[/+]json\b/i.test(type)

const plainField = (field: string): string => decodePart(field.replaceAll("+", " "))

/** The texts of a body that may ask for secrets: what writes a form escapes the marks as well. */
export const textsOf = (body: string, type: string): ReadonlyArray<string> =>
  isForm(type) ? body.split("&").map(plainField) : [body]

/** Fills secrets into a body, as its type has it: a quote would end a string of JSON, an `&` a field of a form. */
export const fillBody = (body: string, type: string, used: Used): string => {
  if (!isForm(type)) {
    return fill(body, isEscaped(type) ? new Map([...used].map(([name, value]) => [name, inJson(value)])) : used)
  }
  return body
    .split("&")
    .map((field) => {
      const at = field.indexOf("=") + 1
      const said = plainField(field.slice(at))
      const made = fill(said, used)
      return made === said ? field : field.slice(0, at) + inForm(made)
    })
    .join("&")
}
