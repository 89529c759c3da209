/** Parses the XML parts of documents. */
import * as Effect from "effect/Effect"
import * as Xml from "effect/encoding/Xml"
import * as Stream from "effect/Stream"
import type { DocumentError, Piece } from "../../core/Document.ts"
import type { Fail } from "./failure.ts"
import { memoryLimit } from "./limits.ts"
import type { Writer } from "./writer.ts"
import type { Archive } from "./zip.ts"

/** Handles the events of a parser. Names of elements have no prefix. */
export interface Handler {
  readonly open: (name: string, attributes: Attributes) => void
  readonly text: (text: string) => void
  readonly close: (name: string) => void
}

/** Reads an attribute by its name without prefix. The name `:id` matches `id` only behind a prefix. */
export type Attributes = (name: string) => string | undefined

/** Handles the start and the end of one element. */
interface Element {
  readonly open?: (attributes: Attributes) => void
  readonly close?: () => void
}

/** Handlers by the names of elements. A function handles the start of its element. */
export interface Elements {
  readonly [name: string]: Element | ((attributes: Attributes) => void)
}

/** Makes a handler of a table of elements. It ignores other elements. */
export const handleElements = (elements: Elements, text: (text: string) => void = () => undefined): Handler => {
  const table = new Map(
    Object.entries(elements).map(([name, element]): [string, Element] => [
      name,
      typeof element === "function" ? { open: element } : element
    ])
  )
  return {
    open: (name, attributes) => table.get(name)?.open?.(attributes),
    text,
    close: (name) => table.get(name)?.close?.()
  }
}

const localName = (name: string): string => name.slice(name.indexOf(":") + 1)

/** Documents choose their own prefixes, so attributes are found without them. */
const attributesOf =
  (attributes: Readonly<Record<string, string>>): Attributes =>
  (name) => {
    for (const key in attributes) {
      const isMatch = name.startsWith(":") ? key.endsWith(name) : localName(key) === name
      if (isMatch && !key.startsWith("xmlns")) return attributes[key]
    }
    return undefined
  }

/** Hides some elements, and their content, from a handler. */
export const skipElements = (isSkipped: (name: string) => boolean, handler: Handler): Handler => {
  let depth = 0
  return {
    open: (name, attributes) => {
      if (depth > 0 || isSkipped(name)) depth++
      else handler.open(name, attributes)
    },
    text: (text) => {
      if (depth === 0) handler.text(text)
    },
    close: (name) => {
      if (depth > 0) depth--
      else handler.close(name)
    }
  }
}

const feedEvent = (handler: Handler, event: Xml.Event): void => {
  switch (event._tag) {
    case "StartElement":
      return handler.open(localName(event.name), attributesOf(event.attributes))
    case "EndElement":
      return handler.close(localName(event.name))
    case "Text":
      return handler.text(event.text)
    case "Declaration":
    case "Doctype":
    case "Comment":
    case "ProcessingInstruction":
      return
  }
}

/** Maximum bytes of one token of the parser. */
const maxTokenSize = 4 * 1024 * 1024

const streamEvents = (archive: Archive, path: string, fail: Fail): Stream.Stream<Xml.Event, DocumentError> =>
  archive.has(path)
    ? archive.bytes(path).pipe(
        Stream.pipeThroughChannel(Xml.decode({ maxTokenSize })),
        Stream.mapError((error) =>
          Xml.isXmlError(error)
            ? fail(error.kind === "Limit" ? "TooLarge" : "Damaged", `${path}: ${error.message}`, error)
            : error
        )
      )
    : Stream.empty

/** Streams the pieces that a handler writes for a part of an archive. The writer stays open. */
export const streamPart = (
  archive: Archive,
  path: string,
  fail: Fail,
  writer: Writer,
  handler: Handler
): Stream.Stream<Piece, DocumentError> =>
  streamEvents(archive, path, fail).pipe(
    Stream.mapAccumArray(
      () => undefined,
      (none, batch) => {
        for (const event of batch) feedEvent(handler, event)
        return [none, writer.take()] as const
      }
    )
  )

/** Reads a small part to its end. It fails with `TooLarge` when the part exceeds the memory limit of the archive. */
export const readPart = (
  archive: Archive,
  path: string,
  fail: Fail,
  handler: Handler
): Effect.Effect<void, DocumentError> => {
  const limit = memoryLimit(archive.size)
  let size = 0
  return Stream.runForEachArray(streamEvents(archive, path, fail), (batch) => {
    for (const event of batch) {
      size += sizeOf(event)
      feedEvent(handler, event)
    }
    return size > limit ? Effect.fail(fail("TooLarge", `${path} has more than is held at once`)) : Effect.void
  })
}

/** Estimates the memory that an event may occupy. */
const sizeOf = (event: Xml.Event): number => {
  if (event._tag === "Text") return event.text.length
  if (event._tag !== "StartElement") return 0
  let sum = 16
  for (const key in event.attributes) sum += (event.attributes[key]?.length ?? 0) + 16
  return sum
}
