/**
 * Secrets on their way out of a request, and out of what comes back.
 */
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Redacted from "effect/Redacted"
import { encodePart } from "../../../support/percent.ts"
import { Secrets } from "../../Secrets.ts"
import * as addresses from "../network/addresses.ts"
import { matchesHost } from "../network/rules.ts"

const mark = /\{\{\s*secret:([A-Za-z0-9_.-]{1,100})\s*\}\}/g

/** The names of the secrets that a text asks for. */
const namesIn = (text: string): ReadonlyArray<string> => [...text.matchAll(mark)].map(([, name = ""]) => name)

/** Values that may be seen on the way back, and what is shown in their place. */
export type Used = ReadonlyMap<string, string>

const shown = (name: string) => `[secret ${name}]`

/** A value as it stands in a string of JSON. */
export const inJson = (value: string): string => JSON.stringify(value).slice(1, -1)

const entities: { readonly [character: string]: string } = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }

/** The forms in which an answer may say a value. */
const forms = (value: string): ReadonlyArray<string> => {
  const percent = [encodePart(value), new URLSearchParams([["", value]]).toString().slice(1)]
  return [
    value,
    ...percent,
    ...percent.map((form) => form.replaceAll(/%[\dA-F]{2}/g, (code) => code.toLowerCase())),
    inJson(value),
    // As PHP writes it.
    inJson(value).replaceAll("/", "\\/"),
    value.replaceAll(/[&<>"]/g, (character) => entities[character] ?? character),
    Base64.encode(value),
    Base64Url.encode(value)
  ]
}

/** Takes secrets out of a text: the longest first, of which another one may be a part. */
export const mask = (text: string, used: Used): string =>
  [...used]
    .flatMap(([name, value]) => (value === "" ? [] : [...new Set(forms(value))].map((form) => ({ name, form }))))
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
