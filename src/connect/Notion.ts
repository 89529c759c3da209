/**
 * Notion: finding pages, reading them as text, writing new ones.
 *
 * The pages must be shared with the integration whose token it is.
 */
import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { at, limitField, makeClient, makeTools, type Options, text } from "./internal/connectors/client.ts"
import { ServiceError } from "./ServiceError.ts"

export type { Options }

const Rich = Schema.Array(Schema.Struct({ plain_text: Schema.String }))

const Titled = Schema.Struct({ type: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Rich) })

const Wire = Schema.Struct({
  object: Schema.String,
  id: Schema.String,
  url: Schema.optionalKey(Schema.String),
  last_edited_time: Schema.optionalKey(Schema.String),
  title: Schema.optionalKey(Rich),
  // Properties of other types have a `title` of another form, or none.
  properties: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})

const Block = Schema.Record(Schema.String, Schema.Unknown)

const listOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({
    results: Schema.Array(item),
    has_more: Schema.Boolean,
    next_cursor: Schema.NullOr(Schema.String)
  })

/** A page of a list, its items as they are read here. */
const pageOf =
  <A, B>(itemOf: (item: A) => B) =>
  (page: { readonly results: ReadonlyArray<A>; readonly has_more: boolean; readonly next_cursor: string | null }) => ({
    items: page.results.map(itemOf),
    next: page.has_more ? page.next_cursor : undefined
  })

/** A page or a database. */
export interface Found {
  readonly id: string
  readonly kind: string
  readonly title: string
  readonly url: string
  readonly editedAt: string
}

const isTitled = Schema.is(Titled)
const isRow = Schema.is(Schema.Struct({ cells: Schema.Array(Rich) }))
const isRich = Schema.is(Schema.Struct({ rich_text: Rich }))

const wordsOf = (rich: typeof Rich.Type = []): string => rich.map(({ plain_text }) => plain_text).join("")

const foundOf = ({ id, last_edited_time = "", object, properties = {}, title, url = "" }: typeof Wire.Type): Found => {
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
  return isRich(own) ? `${Object.hasOwn(marks, type) ? (marks[type] ?? "") : ""}${wordsOf(own.rich_text)}` : ""
}

/** Blocks that lie deeper in others are left out. */
const mostDepth = 4

/** The most blocks that one request may bring. */
const mostBlocks = 100

/** A text has 2,000 characters at most. */
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

/** Makes a client of Notion for one integration. */
export const make = <R = never>({ baseUrl = "https://api.notion.com", connection }: Options<R>) => {
  const headers = { "notion-version": "2022-06-28" }
  const http = makeClient({ service: "Notion", connection, baseUrl, root: "/v1", headers })
  const linesOf = (id: string, depth: number): Stream.Stream<string, ServiceError, HttpClient | R> =>
    http
      .list(
        "read a page",
        at`/blocks/${id}/children`,
        listOf(Block),
        "start_cursor",
        { page_size: 100 },
        pageOf((block) => block)
      )
      .pipe(
        Stream.flatMap((block) => {
          const { has_children, id: own, type } = block
          const line = Stream.succeed(`${"  ".repeat(depth)}${lineOf(block)}`)
          // A page in a page is one of its own.
          const goesOn = has_children === true && typeof own === "string" && depth < mostDepth && type !== "child_page"
          return goesOn ? Stream.concat(line, linesOf(own, depth + 1)) : line
        })
      )
  return {
    /** Pages and databases by words of their title, those that were changed last first. */
    search: (query: string) =>
      http.paged("search", (cursor: string | undefined) =>
        Effect.map(
          http.post(
            "search",
            "/search",
            listOf(Wire),
            {
              query,
              sort: { direction: "descending", timestamp: "last_edited_time" },
              page_size: 100,
              ...(cursor === undefined ? {} : { start_cursor: cursor })
            },
            { isReading: true }
          ),
          pageOf(foundOf)
        )
      ),
    page: (id: string) => Effect.map(http.get("read a page", at`/pages/${id}`, Wire), foundOf),
    /** The blocks of a page, each a line of Markdown; those in another one are indented. */
    lines: (id: string) => linesOf(id, 0),
    /** Makes a page below another one; each line of the text is a paragraph. */
    createPage: (parentId: string, title: string, body: string) =>
      Effect.gen(function* () {
        const blocks = paragraphs(body)
        const page = yield* http.post("create a page", "/pages", Wire, {
          parent: { page_id: parentId },
          properties: { title: { title: [{ type: "text", text: { content: title.slice(0, 2_000) } }] } },
          children: blocks.slice(0, mostBlocks)
        })
        for (let from = mostBlocks; from < blocks.length; from += mostBlocks) {
          const children = blocks.slice(from, from + mostBlocks)
          yield* Effect.mapError(
            http.raw("write a page", "PATCH", at`/blocks/${page.id}/children`, { body: { children } }),
            ({ problem, ...error }) =>
              new ServiceError({
                ...error,
                problem: `the page ${page.id} is there with its first ${from} paragraphs, and the rest is not: ${problem}`
              })
          )
        }
        return foundOf(page)
      })
  }
}

/** Makes the tools of Notion. */
export const tools = <R = never>(options: Options<R>) => {
  const notion = make(options)
  const { listing, reading, writing } = makeTools("Notion")
  const id = text("As notion_search gave it")
  return [
    listing(
      "notion_search",
      "Finds pages and databases in Notion by their titles.",
      { query: Schema.String, limit: limitField },
      ({ query }) => notion.search(query)
    ),
    reading("notion_read_page", "Reads a page of Notion.", { id }, (args) =>
      Effect.map(
        Effect.all([notion.page(args.id), Stream.runCollect(Stream.take(notion.lines(args.id), 1_000))]),
        ([page, lines]) => ({ ...page, text: lines.join("\n") })
      )
    ),
    writing(
      "notion_create_page",
      "Makes a page in Notion, below another one.",
      { parentId: id, title: Schema.String, text: text("A paragraph on each line") },
      (args) => notion.createPage(args.parentId, args.title, args.text)
    )
  ] as const
}
