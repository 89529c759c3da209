/** Fills secrets into requests. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { inForm, inJson, type SecretNames } from "../text/mask.ts"
import { decodePart } from "../text/percent.ts"
import * as addresses from "./addresses.ts"
import { matchesHost } from "./rules.ts"

/** The service `Secrets`. */
export interface SecretSource {
  readonly get: (
    name: string
  ) => Effect.Effect<{ readonly value: Redacted.Redacted; readonly hosts: ReadonlyArray<string> } | undefined>
  readonly names: Effect.Effect<ReadonlyArray<string>>
}

const mark = /\{\{\s*secret\s*:\s*([A-Za-z0-9_.-]{1,100})\s*\}\}/gi

/** Lists the secrets that a text names. */
const namesIn = (text: string): ReadonlyArray<string> => [...text.matchAll(mark)].map(([, name = ""]) => name)

/** Reports whether requests to a URL are encrypted, or stay on this machine or in a local network. */
const isConfidential = (url: URL): boolean => {
  if (url.protocol === "https:") return true
  const literal = addresses.parse(url.hostname)
  return literal === undefined ? addresses.isPrivateName(url.hostname) : addresses.isPrivate(literal)
}

/** Looks up the secrets that some texts name. Fails with a sentence about a missing secret, or one for another host. */
export const lookUp = (
  secrets: SecretSource,
  texts: ReadonlyArray<string>,
  url: URL
): Effect.Effect<SecretNames, string> =>
  Effect.gen(function* () {
    const secretNames = [...new Set(texts.flatMap(namesIn))]
    const used = new Map<string, string>()
    if (secretNames.length === 0) return used
    for (const name of secretNames) {
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

/** Lists the secrets for a host. Its response may contain a secret that this request did not use. */
export const knownTo = (secrets: SecretSource, url: URL): Effect.Effect<SecretNames> =>
  Effect.gen(function* () {
    const values = new Map<string, string>()
    for (const name of yield* secrets.names) {
      const secret = yield* secrets.get(name)
      if (secret !== undefined && matchesHost(secret.hosts, url)) values.set(name, Redacted.value(secret.value))
    }
    return values
  })

/** Replaces the marks of a text by secrets. */
export const fill = (text: string, used: SecretNames): string =>
  text.replaceAll(mark, (whole, name: string) => used.get(name) ?? whole)

/** Fills secrets into headers. `tied` names the headers that hold one now, and may go to no other origin. */
export const fillHeaders = (
  headers: ReadonlyArray<readonly [name: string, value: string]>,
  used: SecretNames
): { readonly filled: ReadonlyArray<readonly [string, string]>; readonly tied: ReadonlySet<string> } => {
  const filled = headers.map(([name, value]) => [name, fill(value, used)] as const)
  const tied = filled.flatMap(([name, value], index) => (value === headers[index]?.[1] ? [] : [name.toLowerCase()]))
  return { filled, tied: new Set(tied) }
}

const isForm = (type: string): boolean => /^application\/x-www-form-urlencoded\b/i.test(type.trim())

/** Reports whether a body of a type is text in which values are escaped. */
export const isEscaped = (type: string): boolean => isForm(type) || /^[^;]*[/+]json\b/i.test(type)

const plainField = (field: string): string => decodePart(field.replaceAll("+", " "))

/** Lists the texts of a body that may name secrets. Forms are decoded, because encoders escape the marks too. */
export const textsOf = (body: string, type: string): ReadonlyArray<string> =>
  isForm(type) ? body.split("&").map(plainField) : [body]

/** Fills secrets into a body, escaped for its type: a quote would end a JSON string, an `&` a form field. */
export const fillBody = (body: string, type: string, used: SecretNames): string => {
  if (!isForm(type)) {
    return fill(body, isEscaped(type) ? new Map([...used].map(([name, value]) => [name, inJson(value)])) : used)
  }
  return body
    .split("&")
    .map((field) => {
      const at = field.indexOf("=") + 1
      const value = plainField(field.slice(at))
      const newValue = fill(value, used)
      return newValue === value ? field : field.slice(0, at) + inForm(newValue)
    })
    .join("&")
}
