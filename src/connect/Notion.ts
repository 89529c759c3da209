/**
 * Notion: finding pages, reading them as text, writing new ones.
 *
 * Share the pages with the integration that owns the token.
 */
import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { readOptions } from "../core/schema/invalid.ts"
import { valueAt } from "../support/json/valueAt.ts"
import { check } from "../support/options/check.ts"
import { at, limitField, makeConnector, type Options, text } from "./internal/connectors/client.ts"
import * as shapes from "./internal/shapes.ts"
import { ServiceError } from "./ServiceError.ts"

const Rich = Schema.Array(Schema.Struct({ plain_text: Schema.String }))

const Titled = Schema.Struct({ type: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Rich) })

const Wire = Schema.Struct({
  object: Schema.String,
  id: Schema.String,
  url: Schema.optionalKey(Schema.String),
  last_edited_time: Schema.optionalKey(Schema.String),
  title: Schema.optionalKey(Rich),
  // The `title` of other property types has another form.
  properties: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})

const Block = Schema.Record(Schema.String, Schema.Unknown)

const listOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({
    results: Schema.Array(item),
    has_more: Schema.Boolean,
    next_cursor: Schema.NullOr(Schema.String)
  })

const pageOf =
  <A, B>(itemOf: (item: A) => B) =>
  (page: { readonly results: ReadonlyArray<A>; readonly has_more: boolean; readonly next_cursor: string | null }) => ({
    items: page.results.map(itemOf),
    next: page.has_more ? page.next_cursor : undefined
  })

const isTitled = Schema.is(Titled)
const isRow = Schema.is(Schema.Struct({ cells: Schema.Array(Rich) }))
const isRich = Schema.is(Schema.Struct({ rich_text: Rich }))

const wordsOf = (rich: typeof Rich.Type = []): string => rich.map(({ plain_text }) => plain_text).join("")

const foundOf = ({ id, last_edited_time = "", object, properties = {}, title, url = "" }: typeof Wire.Type) => {
  const named = Object.values(properties).find((one) => isTitled(one) && one.type === "title")
  return {
    id,
    kind: object,
    title: wordsOf(title ?? (isTitled(named) ? named.title : undefined)),
    url,
    editedAt: last_edited_time
  }
}

const marks: { readonly [type: string]: string } = {
  heading_1: "# ",
  heading_2: "## ",
  heading_3: "### ",
  bulleted_list_item: "- ",
  numbered_list_item: "1. ",
  to_do: "- [ ] ",
  quote: "> "
}

const lineOf = (block: typeof Block.Type): string => {
  const type = typeof block["type"] === "string" ? block["type"] : ""
  const own = Object.hasOwn(block, type) ? block[type] : undefined
  if (isRow(own)) return own.cells.map(wordsOf).join(" | ")
  return isRich(own) ? `${valueAt(marks, type) ?? ""}${wordsOf(own.rich_text)}` : ""
}

/** Deeper blocks are left out. */
const mostDepth = 4

/** The largest number of blocks in one request. */
const mostBlocks = 100

/** Makes paragraphs of at most 2,000 characters. */
const paragraphs = (body: string) =>
  body
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== "")
    .flatMap((line) => line.match(/[^]{1,2000}/gu) ?? [])
    .map((content) => ({
      object: "block",
      type: "paragraph",
      paragraph: { rich_text: [{ type: "text", text: { content } }] }
    }))

const id = text("As notion_search gave it")

const checkTools = check(shapes.notionTools)

/** Makes the tools of Notion. */
export const tools = <R = never>(options: Options<R>) => {
  const [{ baseUrl = "https://api.notion.com", connection }, problem] = readOptions(checkTools, options)
  const headers = { "notion-version": "2022-06-28" }
  const { changeBy, list, readBy, request, sendRaw, stream } = makeConnector({
    problem,
    service: "Notion",
    connection,
    baseUrl,
    root: "/v1",
    headers
  })
  /** Streams the blocks of a page as lines of Markdown, indented by their depth. */
  const linesOf = (key: string, depth: number): Stream.Stream<string, ServiceError, HttpClient | R> =>
    stream(
      "read a page",
      listOf(Block),
      (start_cursor: string | undefined) => ({
        path: at`/blocks/${key}/children`,
        query: { page_size: 100, start_cursor }
      }),
      pageOf((block) => block)
    ).pipe(
      Stream.flatMap((block) => {
        const { has_children, id: own, type } = block
        const line = Stream.succeed(`${"  ".repeat(depth)}${lineOf(block)}`)
        // The content of a page inside of a page belongs to that page.
        const goesOn = has_children === true && typeof own === "string" && depth < mostDepth && type !== "child_page"
        return goesOn ? Stream.concat(line, linesOf(own, depth + 1)) : line
      })
    )
  return [
    list({
      name: "notion_search",
      about: "Finds pages and databases in Notion by their titles.",
      parameters: { query: Schema.String, limit: limitField },
      ask: ({ query }, cursor) => ({
        method: "POST",
        path: "/search",
        body: {
          query,
          sort: { direction: "descending", timestamp: "last_edited_time" },
          page_size: 100,
          ...(cursor === undefined ? {} : { start_cursor: cursor })
        },
        isReading: true
      }),
      answer: listOf(Wire),
      page: pageOf(foundOf)
    }),
    readBy({
      name: "notion_read_page",
      about: "Reads a page of Notion.",
      parameters: { id },
      work: (args) =>
        Effect.map(
          Effect.all([
            request("read a page", Wire, { path: at`/pages/${args.id}` }),
            Stream.runCollect(Stream.take(linesOf(args.id, 0), 1_000))
          ]),
          ([page, lines]) => ({ ...foundOf(page), text: lines.join("\n") })
        )
    }),
    changeBy({
      name: "notion_create_page",
      about: "Makes a page in Notion, below another one.",
      parameters: { parentId: id, title: Schema.String, text: text("A paragraph on each line") },
      work: ({ parentId, text: body, title }) =>
        Effect.gen(function* () {
          const blocks = paragraphs(body)
          const page = yield* request("create a page", Wire, {
            method: "POST",
            path: "/pages",
            body: {
              parent: { page_id: parentId },
              properties: { title: { title: [{ type: "text", text: { content: title.slice(0, 2_000) } }] } },
              children: blocks.slice(0, mostBlocks)
            }
          })
          for (let from = mostBlocks; from < blocks.length; from += mostBlocks) {
            const children = blocks.slice(from, from + mostBlocks)
            yield* Effect.mapError(
              sendRaw("write a page", { method: "PATCH", path: at`/blocks/${page.id}/children`, body: { children } }),
              ({ problem, ...error }) =>
                new ServiceError({
                  ...error,
                  problem: `the page ${page.id} is there with its first ${from} paragraphs, and the rest is not: ${problem}`
                })
            )
          }
          return foundOf(page)
        })
    })
  ] as const
}
