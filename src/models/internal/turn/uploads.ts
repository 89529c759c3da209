/**
 * Uploads large images and files once, by the hash of their content, and sends the provider's id in their place. An id
 * that the provider does not have any more is renewed, once a request.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import type { KeyValueStore } from "effect/persistence/KeyValueStore"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { ModelRequest, ModelSession, Service } from "../../../core/ChatModel.ts"
import type { Block, FileBlock, ImageBlock } from "../../../core/Content.ts"
import type { Message } from "../../../core/Message.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import { sha256 } from "../../../support/store/hash.ts"
import { inlineOf } from "./inline.ts"

/** The options of a layer that uploads large inputs. */
export interface Uploads {
  /** The bytes from which an image or a file is uploaded. Default: 1,048,576. */
  readonly above?: number | undefined
  /** Keeps the ids of uploaded files for other processes. Default: the memory of the layer. */
  readonly store?: KeyValueStore | undefined
}

/** A file to be uploaded. */
export interface Upload {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly mimeType: string
  readonly name: string
  readonly isImage: boolean
}

const Uploaded = Schema.Struct({ id: Schema.String, until: Schema.optionalKey(Schema.Finite) })

/** The id of a file at the provider, and the time (milliseconds) at which the provider deletes it. */
export type UploadedFile = typeof Uploaded.Type

/** The opener of sessions. */
export type Session = Service["makeSession"]

type Turn = ReturnType<ModelSession["nextTurn"]>

/** The parts of a provider. */
export interface UploadParts {
  readonly provider: string
  readonly model: string
  readonly options: Uploads
  /** Reports whether the API takes an id in the place of this block. */
  readonly takes: (block: ImageBlock | FileBlock) => boolean
  readonly upload: (file: Upload) => Effect.Effect<UploadedFile, ModelError>
}

const megabyte = 1024 * 1024

/** A file that is deleted soon is uploaded anew, so that a long turn still finds it. */
const margin = 600_000

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Uploaded))
const encode = Schema.encodeEffect(Schema.fromJsonString(Uploaded))

/** Words of providers for a file that is gone. */
const gonePattern =
  /no such file|\bfile.{0,160}(?:not found|not exist|expired|deleted|no longer)|(?:not found|not exist|no such|expired).{0,80}\bfile/i

const isGone = ({ detail = "", reason }: ModelError): boolean =>
  (reason._tag === "InvalidRequest" || reason._tag === "Permission" || reason._tag === "Unknown") &&
  gonePattern.test(detail)

/** The ids of files, by the hash of their content. */
const makeIds = ({ model, options: { store }, provider }: UploadParts) => {
  const memory = new Map<string, string>()
  const keyOf = (hash: string): string => `model-file/${provider}/${hash}`
  const warn = (cause: unknown): Effect.Effect<undefined> =>
    Effect.as(
      Effect.logWarning(`the store of uploaded files of ${provider}/${model} failed: ${String(cause)}`),
      undefined
    )
  return {
    find: Effect.fnUntraced(function* (hash: string) {
      const key = keyOf(hash)
      const text = memory.get(key) ?? (store === undefined ? undefined : yield* Effect.catch(store.get(key), warn))
      if (text === undefined) return undefined
      const upload = yield* Effect.orElseSucceed(decode(text), () => undefined)
      if (upload?.until !== undefined && upload.until - margin < (yield* Clock.currentTimeMillis)) return undefined
      memory.set(key, text)
      return upload?.id
    }),
    keep: Effect.fnUntraced(function* (hash: string, uploaded: UploadedFile) {
      const text = yield* Effect.orDie(encode(uploaded))
      memory.set(keyOf(hash), text)
      if (store !== undefined) yield* Effect.catch(store.set(keyOf(hash), text), warn)
    }),
    forget: Effect.fnUntraced(function* (hash: string) {
      memory.delete(keyOf(hash))
      if (store !== undefined) yield* Effect.catch(store.remove(keyOf(hash)), warn)
    })
  }
}

/** Makes the part of a session that uploads. */
export const makeUploads = (uploading: UploadParts) => {
  const { above = megabyte } = uploading.options
  const ids = makeIds(uploading)
  const locks = new Map<string, Semaphore.Semaphore>()
  /** The hashes of the blocks of a message that were replaced, and the message that is sent. */
  let cache = new WeakMap<Message, { readonly message: Message; readonly hashes: ReadonlyArray<string> }>()

  const idOf = Effect.fnUntraced(function* (hash: string, file: Upload) {
    const storedId = yield* ids.find(hash)
    if (storedId !== undefined) return storedId
    const uploaded = yield* uploading.upload(file)
    yield* ids.keep(hash, uploaded)
    return uploaded.id
  })

  /** Uploads a block. Runs with the same file share one upload. */
  const replace = Effect.fnUntraced(function* (block: ImageBlock | FileBlock, data: string, mimeType: string) {
    const bytes = Base64.decode(data)
    if (Result.isFailure(bytes)) return undefined
    const content = new Uint8Array(bytes.success)
    const hash = yield* sha256(content)
    const lock = locks.get(hash) ?? Semaphore.makeUnsafe(1)
    locks.set(hash, lock)
    const isImage = block.type === "image"
    const extension = /\/([\w]+)/.exec(mimeType)?.[1] ?? "bin"
    const name =
      block.type === "file" && block.name !== undefined ? block.name : `${isImage ? "image" : "file"}.${extension}`
    const fileId = yield* lock.withPermits(1)(idOf(hash, { bytes: content, mimeType, name, isImage }))
    const replaced: Block = { ...block, source: { kind: "fileId", fileId } }
    return { hash, replaced }
  })

  const isLarge = (block: Block): block is ImageBlock | FileBlock => {
    if (block.type !== "image" && block.type !== "file") return false
    const { source } = block
    const length = source.kind === "base64" ? source.data.length : source.kind === "url" ? source.url.length : 0
    if (length * 0.75 < above || inlineOf(block) === undefined) return false
    return uploading.takes(block)
  }

  const sentFor = Effect.fnUntraced(function* (message: Message) {
    const cachedEntry = cache.get(message)
    if (cachedEntry !== undefined) return cachedEntry
    const hashes: Array<string> = []
    const content = yield* Effect.forEach(message.content, (block) => {
      const inline = isLarge(block) ? inlineOf(block) : undefined
      if (inline === undefined || !isLarge(block)) return Effect.succeed(block)
      return Effect.map(replace(block, inline.data, inline.mimeType), (replacement) => {
        if (replacement === undefined) return block
        hashes.push(replacement.hash)
        return replacement.replaced
      })
    })
    const newEntry = { message: hashes.length === 0 ? message : { ...message, content }, hashes }
    cache.set(message, newEntry)
    return newEntry
  })

  const prepare = (messages: ReadonlyArray<Message>) =>
    Effect.forEach(messages, (message) =>
      message.role === "ai" || !message.content.some(isLarge)
        ? Effect.succeed({ message, hashes: [] })
        : sentFor(message)
    )

  const turn = (nextTurn: ModelSession["nextTurn"], request: ModelRequest, isSecond: boolean): Turn =>
    Stream.unwrap(
      Effect.map(prepare(request.messages), (prepared) => {
        const hashes = prepared.flatMap((one) => one.hashes)
        if (hashes.length === 0) return nextTurn(request)
        let isBegun = false
        const parts = Stream.map(nextTurn({ ...request, messages: prepared.map(({ message }) => message) }), (part) => {
          isBegun ||= part._tag !== "Warning"
          return part
        })
        if (isSecond) return parts
        return Stream.catch(parts, (error) => {
          if (isBegun || !isGone(error)) return Stream.fail(error)
          cache = new WeakMap()
          return Stream.unwrap(
            Effect.as(Effect.forEach(new Set(hashes), ids.forget, { discard: true }), turn(nextTurn, request, true))
          )
        })
      })
    )

  return (makeSession: Session): Session =>
    Effect.map(makeSession, ({ nextTurn }) => ({ nextTurn: (request) => turn(nextTurn, request, false) }))
}
