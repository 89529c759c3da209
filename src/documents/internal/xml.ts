/** XML of the parts of documents: events as they come, and small parts as a whole. */
import * as Effect from "effect/Effect"
import * as Xml from "effect/encoding/Xml"
import * as Stream from "effect/Stream"
import type { DocumentError, Piece } from "../../core/Document.ts"
import type { Fail } from "./failure.ts"
import { held } from "./limits.ts"
import type { Writer } from "./writer.ts"
import type { Archive } from "./zip.ts"

/** Handlers of a format for elements and texts; names are without their prefix. */
export interface Handler {
  readonly open: (name: string, attributes: Attributes) => void
  readonly text: (text: string) => void
  readonly close: (name: string) => void
}

/** The attributes of an element, by their names without prefixes; `:id` is one that has a prefix, whichever. */
export type Attributes = (name: string) => string | undefined

const local = (name: string): string => name.slice(name.indexOf(":") + 1)

/** Prefixes are the writer's own: the name behind one is what counts. */
const attributesOf =
  (given: Readonly<Record<string, string>>): Attributes =>
  (name) => {
    for (const key in given) {
      const isNamed = name.startsWith(":") ? key.endsWith(name) : local(key) === name
      if (isNamed && !key.startsWith("xmlns")) return given[key]
    }
    return undefined
  }

/** Leaves elements with these names out, with all that is in them. */
export const without = (names: ReadonlySet<string>, handler: Handler): Handler => {
  let depth = 0
  return {
    open: (name, attributes) => {
      if (depth > 0 || names.has(name)) depth++
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

const feed = (handler: Handler, event: Xml.Event): void => {
  switch (event._tag) {
    case "StartElement":
      return handler.open(local(event.name), attributesOf(event.attributes))
    case "EndElement":
      return handler.close(local(event.name))
    case "Text":
      return handler.text(event.text)
    case "Declaration":
    case "Doctype":
    case "Comment":
    case "ProcessingInstruction":
      return
  }
}

/** No document has tokens this long; memory for one is bounded by it. */
const maxTokenSize = 4 * 1024 * 1024

const events = (archive: Archive, path: string, fail: Fail): Stream.Stream<Xml.Event, DocumentError> =>
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

/** The pieces that a handler writes of a part of an archive. The writer is ended with it, unless it goes on. */
export const pieces = (
  archive: Archive,
  path: string,
  fail: Fail,
  writer: Writer,
  handler: Handler
): Stream.Stream<Piece, DocumentError> =>
  events(archive, path, fail).pipe(
    Stream.mapAccumArray(
      () => undefined,
      (none, batch) => {
        for (const event of batch) feed(handler, event)
        return [none, writer.take()] as const
      }
    )
  )

/** Reads a small part as a whole: what its handler keeps must be bounded by what the archive weighs. */
export const whole = (
  archive: Archive,
  path: string,
  fail: Fail,
  handler: Handler
): Effect.Effect<void, DocumentError> => {
  const limit = held(archive.size)
  let kept = 0
  const counts = (event: Xml.Event): number =>
    event._tag === "Text" ? event.text.length : event._tag === "StartElement" ? weightOf(event) : 0
  return Stream.runForEachArray(events(archive, path, fail), (batch) => {
    for (const event of batch) {
      kept += counts(event)
      feed(handler, event)
    }
    return kept > limit ? Effect.fail(fail("TooLarge", `${path} has more than is held at once`)) : Effect.void
  })
}

const weightOf = ({ attributes }: Xml.StartElement): number => {
  let sum = 16
  for (const key in attributes) sum += (attributes[key]?.length ?? 0) + 16
  return sum
}
