/**
 * Data that a provider needs back verbatim: `metadata` and `options` of `effect/ai`, and our `providerData`.
 *
 * A provider of `effect/ai` names its metadata by its own key. All of it is kept under one key of `providerData`. Our
 * own models' data travels through `effect/ai` under a key that its providers ignore.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Block } from "../../../../core/Content.ts"
import { isObject, JsonObject } from "../../../../core/Json.ts"
import { wellFormedObject } from "../../../internal/turn/wellFormed.ts"

/** The key of `providerData` under which the metadata of `effect/ai` is. */
export const provider = "effect-ai"

/** The key of an `effect/ai` part's metadata under which `providerData` of ours is. */
const ownKey = "effect-deepagents"

/** The key for what else of a turn of ours has no place in parts. */
const turnKey = "effect-deepagents/turn"

/** The fields of a JSON object. */
export type Fields = { readonly [key: string]: Schema.Json }

/** Metadata or options of a part: an object for each provider that has something to say. */
export type Metadata = { readonly [provider: string]: Schema.Json | null }

const fieldsOf = (value: Schema.Json | undefined): Fields => (isObject(value) ? value : {})

/** Reports whether an object has no keys. */
export const isEmpty = (value: object): boolean => Object.keys(value).length === 0

/** `providerData` as options or metadata of an `effect/ai` part. */
export const optionsOf = (providerData: JsonObject | undefined): Metadata => {
  if (providerData === undefined) return {}
  const { [provider]: theirs, ...rest } = wellFormedObject(providerData)
  const options = fieldsOf(theirs)
  return isEmpty(rest) ? options : { ...options, [ownKey]: rest }
}

/** Wraps options or metadata of an `effect/ai` part as a `providerData` field, if there are any. */
export const providerDataOf = (options: Metadata): { readonly providerData?: JsonObject } => {
  const { [turnKey]: _, [ownKey]: own, ...theirs } = options
  const providerData = { ...fieldsOf(own), ...(isEmpty(theirs) ? {} : { [provider]: theirs }) }
  return isEmpty(providerData) ? {} : { providerData }
}

const Carried = Schema.Struct({
  message: Schema.optionalKey(JsonObject),
  blocks: Schema.optionalKey(Schema.Array(Block))
})

/**
 * Data of a turn on one of its parts: the message's `providerData`, and the blocks that were streamed as one part,
 * since a stream does not mark their ends.
 */
export type CarriedData = typeof Carried.Type

/** Metadata that carries this, if it is anything. */
export const carry = (carried: CarriedData): Metadata => (isEmpty(carried) ? {} : { [turnKey]: encodeCarried(carried) })

const encodeCarried = Schema.encodeSync(Carried)

const decodeCarried = Schema.decodeUnknownOption(Carried)

/** Reads the data in a part's options or metadata. */
export const carriedBy = (options: Metadata): CarriedData =>
  options[turnKey] === undefined ? {} : Option.getOrElse(decodeCarried(options[turnKey]), () => ({}))

/** Merges metadata of several pieces. The later piece wins, key by key and provider by provider. */
export const mergeMetadata = (left: Metadata, right: Metadata): Metadata => {
  if (isEmpty(right)) return left
  const merged: { [provider: string]: Schema.Json | null } = { ...left }
  for (const [key, value] of Object.entries(right)) {
    const before = merged[key]
    merged[key] = isObject(before) && isObject(value) ? { ...fieldsOf(before), ...fieldsOf(value) } : value
  }
  return merged
}

const isJson = Schema.is(Schema.Json)

/** Keeps a JSON value, and drops any other. */
export const toJson = (value: unknown): Schema.Json => (isJson(value) ? value : null)
