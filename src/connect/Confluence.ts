/**
 * Confluence: finding pages, reading and writing them.
 *
 * The scopes of an OAuth token: `search:confluence`, `read:page:confluence`, `read:space:confluence`, and
 * `write:page:confluence` for changes.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type SiteOptions, show } from "./internal/connectors/atlassian.ts"
import { at, limitField, makeClient, makeTools, optionalText, plainOf, text } from "./internal/connectors/client.ts"

export type { SiteOptions as Options }

/** Spaces and people are found as well, which have no content. */
const Result = Schema.Struct({
  content: Schema.optionalKey(
    Schema.Struct({
      id: Schema.optionalKey(Schema.String),
      type: Schema.String,
      title: Schema.optionalKey(Schema.String)
    })
  ),
  title: Schema.optionalKey(Schema.String),
  entityType: Schema.optionalKey(Schema.String),
  excerpt: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  lastModified: Schema.optionalKey(Schema.String)
})

const Links = Schema.optionalKey(Schema.Struct({ next: Schema.optionalKey(Schema.String) }))

const listOf = <S extends Schema.Constraint>(item: S) => Schema.Struct({ results: Schema.Array(item), _links: Links })

const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Wire = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  spaceId: Schema.optionalKey(Schema.String),
  version: maybe(Schema.Struct({ number: Schema.Finite })),
  body: maybe(Schema.Struct({ storage: maybe(Schema.Struct({ value: Schema.String })) }))
})

const Space = Schema.Struct({ id: Schema.String, key: Schema.String, name: Schema.String })

/** A page, with its text. `version` is what a change of it must name. */
export interface Page {
  readonly id: string
  readonly title: string
  readonly spaceId: string
  readonly version: number
  readonly text: string
}

const pageOf = ({ body, id, spaceId = "", title, version }: typeof Wire.Type): Page => ({
  id,
  title,
  spaceId,
  version: version?.number ?? 1,
  text: plainOf(body?.storage?.value ?? "")
})

/** A page of a list, and the cursor that stands in the address of the next one. */
const itemsOf = <A>({
  _links,
  results
}: {
  readonly results: ReadonlyArray<A>
  readonly _links?: typeof Links.Type
}) => ({
  items: results,
  next: URL.parse(_links?.next ?? "", "http://localhost")?.searchParams.get("cursor")
})

/** A text without the marks of what was searched for. */
const unmarked = (found: string): string => found.replaceAll(/@@@(?:end)?hl@@@/g, "")

const escaped = (body: string): string => body.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const storageOf = (body: string) => ({
  representation: "storage",
  value: body
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== "")
    .map((line) => `<p>${escaped(line)}</p>`)
    .join("")
})

/** Makes a client of Confluence for one site. */
export const make = <R = never>({ baseUrl, connection }: SiteOptions<R>) => {
  const http = makeClient({ service: "Confluence", connection, show, baseUrl, root: "/wiki" })
  return {
    /** Pages by CQL. */
    search: (cql: string) =>
      http.list("search", "/rest/api/search", listOf(Result), "cursor", { cql, limit: 50 }, itemsOf).pipe(
        Stream.map(({ content, entityType = "", excerpt = "", lastModified = "", title = "", url = "" }) => ({
          id: content?.id ?? "",
          kind: content?.type ?? entityType,
          title: unmarked(content?.title ?? title),
          excerpt: unmarked(plainOf(excerpt, 500)),
          url,
          lastModified
        }))
      ),
    spaces: () => http.list("list spaces", "/api/v2/spaces", listOf(Space), "cursor", { limit: 100 }, itemsOf),
    page: (id: string) =>
      Effect.map(http.get("read a page", at`/api/v2/pages/${id}`, Wire, { "body-format": "storage" }), pageOf),
    createPage: (page: {
      readonly spaceId: string
      readonly title: string
      readonly text: string
      readonly parentId?: string | undefined
    }) =>
      Effect.map(
        http.post("create a page", "/api/v2/pages", Wire, {
          spaceId: page.spaceId,
          status: "current",
          title: page.title,
          ...(page.parentId === undefined ? {} : { parentId: page.parentId }),
          body: storageOf(page.text)
        }),
        pageOf
      ),
    /** Replaces the text of a page; fails if it is not of this version any more. */
    updatePage: (page: {
      readonly id: string
      readonly version: number
      readonly title: string
      readonly text: string
    }) =>
      Effect.map(
        http.request("change a page", "PUT", at`/api/v2/pages/${page.id}`, Wire, {
          body: {
            id: page.id,
            status: "current",
            title: page.title,
            body: storageOf(page.text),
            version: { number: page.version + 1 }
          }
        }),
        pageOf
      )
  }
}

/** Makes the tools of Confluence. */
export const tools = <R = never>(options: SiteOptions<R>) => {
  const confluence = make(options)
  const { listing, reading, writing } = makeTools("Confluence")
  const id = text("As confluence_search gave it")
  const body = text("Plain text, a paragraph on each line")
  return [
    listing(
      "confluence_search",
      "Finds pages in Confluence.",
      { cql: text('CQL, such as text ~ "holidays" AND type = page'), limit: limitField },
      ({ cql }) => confluence.search(cql)
    ),
    listing("confluence_list_spaces", "Lists the spaces of Confluence.", { limit: limitField }, () =>
      confluence.spaces()
    ),
    reading("confluence_read_page", "Reads a page of Confluence.", { id }, (args) => confluence.page(args.id)),
    writing(
      "confluence_create_page",
      "Makes a page in Confluence.",
      {
        spaceId: text("As confluence_list_spaces gave it"),
        title: Schema.String,
        text: body,
        parentId: optionalText("The page above it")
      },
      confluence.createPage
    ),
    writing(
      "confluence_update_page",
      "Replaces the text of a page of Confluence.",
      {
        id,
        version: Schema.Int.annotate({ description: "As confluence_read_page gave it" }),
        title: Schema.String,
        text: body
      },
      confluence.updatePage,
      { destructive: true }
    )
  ] as const
}
