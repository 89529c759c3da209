/**
 * Confluence: finding pages, reading and writing them.
 *
 * The scopes of an OAuth token: `search:confluence`, `read:page:confluence`, `read:space:confluence`, and
 * `write:page:confluence` for changes.
 */
import * as Schema from "effect/Schema"
import { readOptions } from "../core/schema/invalid.ts"
import { check } from "../support/options/check.ts"
import { type SiteOptions, show } from "./internal/connectors/atlassian.ts"
import { at, limitField, makeConnector, optionalText, plainOf, text } from "./internal/connectors/client.ts"
import * as shapes from "./internal/shapes.ts"

/** A result of a search. Spaces and people have no content. */
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

const pageOf = ({ body, id: key, spaceId = "", title, version }: typeof Wire.Type) => ({
  id: key,
  title,
  spaceId,
  version: version?.number ?? 1,
  text: plainOf(body?.storage?.value ?? "")
})

/** Makes a page of a list. The cursor is part of the address of the next page. */
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

/** Removes the highlight marks of a search result. */
const removeMarks = (excerpt: string): string => excerpt.replaceAll(/@@@(?:end)?hl@@@/g, "")

const foundOf = (result: typeof Result.Type) => {
  const { content, entityType = "", excerpt = "", lastModified = "", title = "", url = "" } = result
  return {
    id: content?.id ?? "",
    kind: content?.type ?? entityType,
    title: removeMarks(content?.title ?? title),
    excerpt: removeMarks(plainOf(excerpt, 500)),
    url,
    lastModified
  }
}

const escapeText = (body: string): string =>
  body.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const storageOf = (body: string) => ({
  representation: "storage",
  value: body
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== "")
    .map((line) => `<p>${escapeText(line)}</p>`)
    .join("")
})

const id = text("As confluence_search gave it")
const body = text("Plain text, a paragraph on each line")

const checkTools = check(shapes.confluenceTools)

/** Makes the tools of Confluence. */
export const tools = <R = never>(options: SiteOptions<R>) => {
  const [{ baseUrl, connection }, problem] = readOptions(checkTools, options)
  const { change, list, read } = makeConnector({
    problem,
    service: "Confluence",
    connection,
    show,
    baseUrl,
    root: "/wiki"
  })
  return [
    list({
      name: "confluence_search",
      about: "Finds pages in Confluence.",
      parameters: { cql: text('CQL, such as text ~ "holidays" AND type = page'), limit: limitField },
      ask: ({ cql }, cursor) => ({ path: "/rest/api/search", query: { cql, limit: 50, cursor } }),
      answer: listOf(Result),
      page: (result) => ({ ...itemsOf(result), items: result.results.map(foundOf) })
    }),
    list({
      name: "confluence_list_spaces",
      about: "Lists the spaces of Confluence.",
      parameters: { limit: limitField },
      ask: (_, cursor) => ({ path: "/api/v2/spaces", query: { limit: 100, cursor } }),
      answer: listOf(Space),
      page: itemsOf
    }),
    read({
      name: "confluence_read_page",
      about: "Reads a page of Confluence.",
      parameters: { id },
      ask: (args) => ({ path: at`/api/v2/pages/${args.id}`, query: { "body-format": "storage" } }),
      answer: Wire,
      show: pageOf
    }),
    change({
      name: "confluence_create_page",
      about: "Makes a page in Confluence.",
      parameters: {
        spaceId: text("As confluence_list_spaces gave it"),
        title: Schema.String,
        text: body,
        parentId: optionalText("The page above it")
      },
      ask: ({ text: content, ...page }) => ({
        method: "POST",
        path: "/api/v2/pages",
        body: { ...page, status: "current", body: storageOf(content) }
      }),
      answer: Wire,
      show: pageOf
    }),
    change({
      name: "confluence_update_page",
      about: "Replaces the text of a page of Confluence.",
      parameters: {
        id,
        version: Schema.Int.annotate({ description: "As confluence_read_page gave it" }),
        title: Schema.String,
        text: body
      },
      ask: ({ text: content, version, ...page }) => ({
        method: "PUT",
        path: at`/api/v2/pages/${page.id}`,
        body: { ...page, status: "current", body: storageOf(content), version: { number: version + 1 } }
      }),
      answer: Wire,
      show: pageOf,
      annotations: { destructive: true }
    })
  ] as const
}
