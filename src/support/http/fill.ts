/** Secrets on their way out, in a request. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { inForm, inJson, type Used } from "../text/mask.ts"
import { decodePart } from "../text/percent.ts"
import * as addresses from "./addresses.ts"
import { matchesHost } from "./rules.ts"

/** Finds secrets by name, as the service `Secrets` does. */
export interface SecretSource {
  readonly get: (
    name: string
  ) => Effect.Effect<{ readonly value: Redacted.Redacted; readonly hosts: ReadonlyArray<string> } | undefined>
  readonly names: Effect.Effect<ReadonlyArray<string>>
}

const mark = /\{\{\s*secret\s*:\s*([A-Za-z0-9_.-]{1,100})\s*\}\}/gi

/** The names of the secrets that a text asks for. */
const namesIn = (text: string): ReadonlyArray<string> => [...text.matchAll(mark)].map(([, name = ""]) => name)

/** Nobody on the way can read what is sent: it is encrypted, or goes to this machine or the network around it. */
const isConfidential = (url: URL): boolean => {
  if (url.protocol === "https:") return true
  const literal = addresses.parse(url.hostname)
  return literal === undefined ? addresses.isPrivateName(url.hostname) : addresses.isPrivate(literal)
}

/** Looks up the secrets that some texts ask for. Fails with a sentence about one that is not there, or not for this host. */
export const lookUp = (secrets: SecretSource, texts: ReadonlyArray<string>, url: URL): Effect.Effect<Used, string> =>
  Effect.gen(function* () {
    const asked = [...new Set(texts.flatMap(namesIn))]
    const used = new Map<string, string>()
    if (asked.length === 0) return used
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
export const knownTo = (secrets: SecretSource, url: URL): Effect.Effect<Used> =>
  Effect.gen(function* () {
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
