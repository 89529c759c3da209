/** Removes the secrets of a server's configuration from the server's texts. */
import { PlatformError } from "effect/PlatformError"
import * as Redacted from "effect/Redacted"
import { isObject } from "../../core/Json.ts"
import { reveal } from "../../support/store/redacted.ts"
import { masker } from "../../support/text/mask.ts"
import type { Secret, Server } from "../McpConfig.ts"
import { McpError } from "../McpError.ts"
import { wordsOf } from "./errors.ts"

/** The secrets of one server. */
export interface Secrets {
  /** Adds a value that became known later, such as a token. */
  readonly add: (name: string, value: string) => void
  /** Masks a text. */
  readonly mask: (text: string) => string
  /** Masks all texts of a message, in place. */
  readonly maskMessage: <A extends object>(message: A) => A
  /** Masks an error and its cause. */
  readonly seal: (error: McpError) => McpError
}

/** Shorter values stand in texts by chance. */
const shortest = 8

/** Paths, addresses without a secret, and types of media: files of settings keep these beside secrets. */
const harmless = /^(?:~|\.{0,2}[\\/]|[a-z]:[\\/]|https?:\/\/[^@?]*$|(?:application|audio|image|text|video)\/)/i

/** Reports whether a value may be a secret: it is long enough, no path, and more than one plain word. */
const isSecret = (value: string): boolean =>
  value.length >= shortest && !harmless.test(value) && !/^[a-z]+$/i.test(value)

/** A value, and its parts that are secrets by themselves: a token behind the word `Bearer`, a password in an address. */
const partsOf = (value: string): ReadonlyArray<string> => {
  const { password = "" } = URL.parse(value) ?? {}
  return [value, ...value.split(/\s+/u), password].filter(isSecret)
}

const redactedOf = (values: { readonly [name: string]: Secret | undefined } = {}): Array<readonly [string, string]> =>
  Object.entries(values).flatMap(([name, value]) =>
    Redacted.isRedacted(value) ? [[name, Redacted.value(value)] as const] : []
  )

/** The query of every address is secret, and the path of a `Redacted` one. */
const ofAddress = (url: Secret): Array<readonly [string, string]> => {
  const parsed = URL.parse(reveal(url))
  if (parsed === null) return []
  const path = Redacted.isRedacted(url) ? parsed.pathname.split("/") : []
  return [...parsed.searchParams.values(), ...path].map((value) => ["url", value] as const)
}

const configured = (config: Server): ReadonlyArray<readonly [string, string]> =>
  config.type === "stdio"
    ? redactedOf(config.env)
    : [
        ...redactedOf(config.headers),
        ...ofAddress(config.url),
        ...redactedOf({ clientSecret: config.oauth?.clientSecret, privateKey: config.oauth?.privateKey })
      ]

/** Masks texts and keys in place, however deep they lie. */
const maskAll = (root: object, mask: (text: string) => string): void => {
  const todo: Array<unknown> = [root]
  while (todo.length > 0) {
    const next = todo.pop()
    if (Array.isArray(next)) {
      for (const [index, value] of next.entries()) {
        if (typeof value === "string") next[index] = mask(value)
        else todo.push(value)
      }
    } else if (isObject(next)) maskFields(next, mask, todo)
  }
}

const maskFields = (fields: Record<string, unknown>, mask: (text: string) => string, todo: Array<unknown>): void => {
  for (const [key, value] of Object.entries(fields)) {
    const masked = typeof value === "string" ? mask(value) : value
    const name = mask(key)
    if (name !== key) Reflect.deleteProperty(fields, key)
    if (name !== key || masked !== value) Object.defineProperty(fields, name, { ...plain, value: masked })
    if (typeof masked !== "string") todo.push(masked)
  }
}

/** A field named `__proto__` is one like all others. */
const plain = { configurable: true, enumerable: true, writable: true } as const

/** Collects the secrets of a configuration. */
export const make = (config: Server): Secrets => {
  const secrets = new Map<string, string>()
  let mask: ((text: string) => string) | undefined
  const add = (name: string, value: string): void => {
    for (const part of partsOf(value)) {
      if ([...secrets.values()].includes(part)) continue
      secrets.set(secrets.has(name) ? `${name} ${secrets.size}` : name, part)
      mask = masker(secrets)
    }
  }
  for (const [name, value] of configured(config)) add(name, value)
  const masked = (text: string): string => mask?.(text) ?? text
  return {
    add,
    mask: masked,
    maskMessage: (message) => {
      if (mask !== undefined) maskAll(message, mask)
      return message
    },
    seal: (error) => {
      if (mask === undefined) return error
      const { cause, code, reason, server } = error
      // The cause holds requests, with their headers and addresses.
      const hidden = cause === undefined || cause instanceof PlatformError ? cause : new Error(masked(wordsOf(cause)))
      return new McpError({
        server,
        reason,
        message: masked(error.message),
        ...(code === undefined ? {} : { code }),
        ...(hidden === undefined ? {} : { cause: hidden })
      })
    }
  }
}
