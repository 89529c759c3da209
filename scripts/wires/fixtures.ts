/** Recorded answers of models in the files of a folder: streams, whole answers, cassettes. */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { parseAllDocuments } from "yaml"

export type Api = "responses" | "chat" | "anthropic" | "gemini"

type Body = { readonly [key: string]: unknown }

/** An answer: its events, in their order, or the one object of an answer that is no stream. */
export interface Fixture {
  readonly name: string
  readonly api: Api
  readonly events: ReadonlyArray<Body>
  readonly isStream: boolean
}

/** Larger files are no recordings of one conversation. */
const largest = 40_000_000

const isBody = (value: unknown): value is Body => typeof value === "object" && value !== null && !Array.isArray(value)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const bodiesOf = (value: unknown): ReadonlyArray<Body> => (Array.isArray(value) ? value : [value]).filter(isBody)

const eventsOf = (text: string): ReadonlyArray<Body> =>
  text.split(/\r\n\r\n|\n\n|\r\r/).flatMap((block) => {
    const data = block.split(/\r\n|\n|\r/).flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trim()] : []))
    return bodiesOf(parsed(data.join("\n")))
  })

/** Finds the API by the shape of an event. `undefined` for anything else. */
const apiOf = (event: Body): Api | undefined => {
  const type = typeof event["type"] === "string" ? event["type"] : ""
  if (type.startsWith("response.") || event["object"] === "response") return "responses"
  if (Array.isArray(event["choices"]) && event["object"] !== "text_completion") return "chat"
  if (type === "message_start" || (type === "message" && Array.isArray(event["content"]))) return "anthropic"
  return "candidates" in event || "promptFeedback" in event ? "gemini" : undefined
}

/** Events of one kind that is no stream of text: pictures, embeddings and files have other shapes. */
const isWhole = ({ object, type }: Body, api: Api): boolean =>
  (api === "responses" && object === "response") ||
  (api === "chat" && object === "chat.completion") ||
  (api === "anthropic" && type === "message")

/** Cuts the events of several answers apart. */
const answersIn = (name: string, events: ReadonlyArray<Body>): ReadonlyArray<Fixture> => {
  const groups: Array<{ readonly api: Api; readonly isStream: boolean; readonly events: Array<Body> }> = []
  for (const event of events) {
    const api = apiOf(event)
    const last = groups.at(-1)
    const begins = event["type"] === "response.created" || event["type"] === "message_start"
    const whole = api !== undefined && isWhole(event, api)
    if (api !== undefined && (last === undefined || last.api !== api || begins || whole || !last.isStream)) {
      groups.push({ api, isStream: !whole, events: [event] })
    } else last?.events.push(event)
  }
  return groups.map((group, index) => ({ ...group, name: index === 0 ? name : `${name} #${index + 1}` }))
}

const textOf = (value: unknown): string | undefined => {
  if (typeof value === "string") return value
  return isBody(value) ? textOf(value["string"] ?? value["text"] ?? value["body"]) : undefined
}

/** The answers of a cassette: `interactions`, each with a `response` whose body is a text or parsed. */
const cassette = (name: string, document: unknown): ReadonlyArray<Fixture> => {
  const interactions = isBody(document) ? document["interactions"] : undefined
  if (!Array.isArray(interactions)) return []
  return interactions.filter(isBody).flatMap(({ response }, index) => {
    if (!isBody(response)) return []
    const text = textOf(response["body"])
    const body = response["parsed_body"] ?? (text === undefined ? response["body"] : parsed(text))
    const events = body === undefined && text !== undefined ? eventsOf(text) : bodiesOf(body)
    return answersIn(`${name} ${index + 1}`, events)
  })
}

const read = (name: string, text: string): ReadonlyArray<Fixture> => {
  if (/\.ya?ml$/.test(name)) {
    return parseAllDocuments(text).flatMap((document) =>
      "errors" in document && document.errors.length > 0 ? [] : cassette(name, document.toJS())
    )
  }
  if (/^(?:event|data|:)/m.test(text) && !/^\s*[[{]/.test(text)) return answersIn(name, eventsOf(text))
  const whole = parsed(text)
  if (whole !== undefined) {
    const recorded = cassette(name, whole)
    return recorded.length > 0 ? recorded : answersIn(name, bodiesOf(whole))
  }
  return answersIn(
    name,
    text.split("\n").flatMap((line) => bodiesOf(parsed(line)))
  )
}

/** A picture of one pixel, in the place of pictures that a recording shortened: `"result": "UklG...nA2uzI="`. */
const pixel = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"

const restorePictures = (text: string): string =>
  text.replaceAll(/("result":\s*")[A-Za-z0-9+/]*[.]{3}[A-Za-z0-9+/=]*(?=")/g, `$1${pixel}`)

/** Reads all recordings of a folder. Other files have none. */
export const readFixtures = (folder: string): ReadonlyArray<Fixture> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(?:json|jsonl|ndjson|txt|sse|ya?ml)$/.test(name))
    .sort()
    .flatMap((name) => {
      const path = join(folder, name)
      const { size } = statSync(path)
      return size > largest ? [] : read(name, restorePictures(readFileSync(path, "utf8")))
    })
