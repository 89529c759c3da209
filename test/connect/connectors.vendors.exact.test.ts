/**
 * HubSpot, Jira and Confluence beside other clients of theirs: each request is the same in method, path, query, body and
 * credential, and its answer reads the same. Those clients hold the answers against the types of the services.
 */
import { readFileSync } from "node:fs"
import { brotliDecompressSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import { AssociationTypes, Client as HubSpotClient } from "@hubspot/api-client"
import { Ajv } from "ajv"
import { createV1Client, createV2Client } from "confluence.js"
import { Effect, Redacted } from "effect"
import { Confluence, Connection, HubSpot, Jira } from "effect-deepagents/connect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { createCloudClient } from "jira.js"
import { json, serve } from "../web/pages.ts"
import { caller, type Ids } from "./caller.ts"

interface Asked {
  readonly method: string
  readonly path: string
  readonly query: ReadonlyArray<readonly [string, string]>
  readonly authorization: string | null
  readonly type: string | undefined
  readonly body: unknown
}

const meaning = async (request: Request): Promise<Asked> => {
  const url = new URL(request.url)
  const body = await request.text()
  return {
    method: request.method,
    // HubSpot's client has an older path for owners, with a slash at its end; HubSpot's description has none.
    path: decodeURIComponent(url.pathname).replace(/\/$/, ""),
    query: [...url.searchParams].toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)),
    authorization: request.headers.get("authorization"),
    type: body === "" ? undefined : request.headers.get("content-type")?.split(";")[0],
    body: body === "" ? undefined : JSON.parse(body)
  }
}

/** Operations of Jira, as Atlassian describes them. */
const described = JSON.parse(
  brotliDecompressSync(readFileSync(new URL("fixtures/jira.json.br", import.meta.url))).toString()
) as {
  readonly paths: {
    readonly [path: string]: {
      readonly [method: string]: {
        readonly parameters: ReadonlyArray<{ readonly name: string; readonly in: string }>
        readonly requestBody?: object
      }
    }
  }
}

const formats = { "date-time": true, int32: true, int64: true, uri: true } as const
const ajv = new Ajv({ strict: false, formats }).addSchema(described, "jira")

/** The parts of a request that its operation does not describe. */
const undescribed = ({ body, method, path, query }: Asked): ReadonlyArray<string> => {
  const template = path.replace(/\/ENG-\d+/, "/{issueIdOrKey}")
  const operation = described.paths[template]?.[method.toLowerCase()]
  if (operation === undefined) return [`${method} ${path}`]
  const names = new Set(operation.parameters.flatMap((one) => (one.in === "query" ? [one.name] : [])))
  const extra = query.flatMap(([name]) => (names.has(name) ? [] : [`${template}?${name}`]))
  if (operation.requestBody === undefined) return body === undefined ? extra : [...extra, `${template}: a body`]
  const pointer = ["paths", template, method.toLowerCase(), "requestBody", "content", "application/json", "schema"]
  const parts = pointer.map((part) => encodeURIComponent(part.replaceAll("/", "~1")))
  const validate = ajv.compile({ $ref: `jira#/${parts.join("/")}` })
  return validate(body) ? extra : [...extra, ajv.errorsText(validate.errors)]
}

/** A service that keeps its requests. */
const served = Effect.fnUntraced(function* (answer: (asked: Asked) => unknown) {
  const seen: Array<Asked> = []
  const origin = yield* serve(async (request) => {
    const asked = await meaning(request)
    seen.push(asked)
    const body = answer(asked)
    if (body === undefined) return new Response(null, { status: 204 })
    // HubSpot's client takes a thing that is made with status 201 only.
    return json(body, { status: asked.method === "POST" && !asked.path.endsWith("/search") ? 201 : 200 })
  })
  return { origin, seen }
})

const at = "2026-01-05T09:00:00.000Z"

describe("connectors, to the letter of the vendors", () => {
  it.effect("HubSpot", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.parse(at))
      const item = (id: string) => ({
        id,
        properties: { email: "ada@x.test", phone: null },
        createdAt: at,
        updatedAt: at,
        archived: false
      })
      const owner = {
        id: "7",
        email: "eve@x.test",
        firstName: "Eve",
        lastName: "",
        type: "PERSON",
        createdAt: at,
        updatedAt: at,
        archived: false
      }
      const { origin, seen } = yield* served(({ body, method, path, query }) => {
        const isList =
          path.endsWith("/search") || (method === "GET" && /\/(?:owners|contacts|companies|deals|tickets)$/.test(path))
        if (!isList) return item("1")
        const after = path.endsWith("/search") ? (body as { after?: string }).after : new Map(query).get("after")
        const results = [path.endsWith("/owners") ? owner : item(after === undefined ? "1" : "2")]
        return {
          ...(path.endsWith("/search") ? { total: 2 } : {}),
          results,
          ...(after === undefined ? { paging: { next: { after: "a b&c", link: "https://x.test/" } } } : {})
        }
      })
      const ours = caller(
        HubSpot.tools({ connection: Connection.fixed("HubSpot", Redacted.make("t0ken")), baseUrl: origin })
      )
      const kinds = ["contacts", "companies", "deals", "tickets"] as const
      const properties = { amount: "1000", dealname: "Größe & <b>" }
      const read: Array<unknown> = []
      for (const kind of kinds) {
        read.push((yield* ours<Ids>("hubspot_list", { kind })).map(({ id }) => id))
        read.push((yield* ours<Ids>("hubspot_search", { kind, query: "Ada Müller" })).map(({ id }) => id))
        read.push((yield* ours<{ properties: unknown }>("hubspot_get", { kind, id: "1 /2" })).properties)
        read.push((yield* ours<{ id: string }>("hubspot_create", { kind, properties })).id)
        read.push((yield* ours<{ id: string }>("hubspot_update", { kind, id: "1 /2", properties })).id)
        read.push((yield* ours<{ id: string }>("hubspot_add_note", { kind, id: "1", body: "Called & agreed" })).id)
      }
      read.push(
        (yield* ours<ReadonlyArray<{ id: string; email?: string; firstName?: string }>>("hubspot_list_owners")).map(
          ({ email, firstName, id }) => [id, email, firstName]
        )
      )
      const asked = seen.splice(0)

      const client = new HubSpotClient({ accessToken: "t0ken", basePath: origin, limiterOptions: { maxConcurrent: 9 } })
      const shown = {
        contacts: [
          "email",
          "firstname",
          "lastname",
          "phone",
          "company",
          "jobtitle",
          "lifecyclestage",
          "hubspot_owner_id"
        ],
        companies: ["name", "domain", "industry", "city", "country", "phone", "hubspot_owner_id"],
        deals: ["dealname", "amount", "dealstage", "pipeline", "closedate", "hubspot_owner_id"],
        tickets: ["subject", "content", "hs_pipeline_stage", "hs_ticket_priority", "hubspot_owner_id"]
      }
      const noteTo = {
        contacts: AssociationTypes.noteToContact,
        companies: AssociationTypes.noteToCompany,
        deals: AssociationTypes.noteToDeal,
        tickets: AssociationTypes.noteToTicket
      }
      const theirs = yield* Effect.promise(async () => {
        const found: Array<unknown> = []
        for (const kind of kinds) {
          const api = client.crm[kind]
          const pages = [await api.basicApi.getPage(100, undefined, shown[kind])]
          pages.push(await api.basicApi.getPage(100, pages[0]?.paging?.next?.after, shown[kind]))
          found.push(pages.flatMap(({ results }) => results.map(({ id }) => id)))
          const query = { query: "Ada Müller", limit: 100, properties: shown[kind] }
          const first = await api.searchApi.doSearch(query)
          const second = await api.searchApi.doSearch({ ...query, after: first.paging?.next?.after ?? "" })
          found.push([first, second].flatMap(({ results }) => results.map(({ id }) => id)))
          found.push((await api.basicApi.getById("1 /2", shown[kind])).properties)
          found.push((await api.basicApi.create({ properties })).id)
          found.push((await api.basicApi.update("1 /2", { properties })).id)
          const note = {
            properties: { hs_note_body: "Called & agreed", hs_timestamp: at },
            associations: [
              {
                to: { id: "1" },
                types: [{ associationCategory: "HUBSPOT_DEFINED" as never, associationTypeId: noteTo[kind] }]
              }
            ]
          }
          found.push((await client.crm.objects.notes.basicApi.create(note)).id)
        }
        const owners = [await client.crm.owners.ownersApi.getPage(undefined, undefined, 100)]
        owners.push(await client.crm.owners.ownersApi.getPage(undefined, owners[0]?.paging?.next?.after, 100))
        found.push(owners.flatMap(({ results }) => results.map(({ email, firstName, id }) => [id, email, firstName])))
        return found
      })
      expect(asked).toEqual(seen)
      expect(read).toEqual(theirs)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("Jira", () =>
    Effect.gen(function* () {
      const document = (...lines: ReadonlyArray<string>) => ({
        type: "doc" as const,
        version: 1,
        content: lines.map((text) => ({ type: "paragraph", content: [{ type: "text", text }] }))
      })
      const issue = (key: string) => ({
        id: "10001",
        key,
        self: "https://x.atlassian.net/rest/api/3/issue/10001",
        fields: {
          summary: "Größe & <b>",
          status: { name: "To Do" },
          issuetype: { name: "Bug" },
          priority: null,
          assignee: null,
          reporter: { accountId: "5b10a", displayName: "Ada" },
          updated: at,
          description: document("one", "two")
        }
      })
      const { origin, seen } = yield* served(({ method, path, query }) => {
        if (path.endsWith("/search/jql")) {
          const isSecond = new Map(query).has("nextPageToken")
          return {
            issues: [issue(isSecond ? "ENG-2" : "ENG-1")],
            isLast: isSecond,
            nextPageToken: isSecond ? null : "a b&c="
          }
        }
        if (path.endsWith("/comment")) return { id: "10010", body: document("done") }
        if (path.endsWith("/issue"))
          return { id: "10001", key: "ENG-1", self: "https://x.atlassian.net/rest/api/3/issue/10001" }
        if (path.endsWith("/transitions") && method === "GET") {
          return { transitions: [{ id: "31", name: "Finish", to: { id: "3", name: "Done" } }] }
        }
        return method === "GET" ? issue("ENG-1") : undefined
      })
      const ours = caller(
        Jira.tools({ connection: Connection.fixed("Jira", Redacted.make("ada@x.test:t0ken:ü")), baseUrl: origin })
      )
      const key = "ENG-1"
      const jql = 'project = ENG AND text ~ "a&b"'
      const made = { project: "ENG", summary: "Größe & <b>", type: "Bug", description: "one\r\n\r\ntwo" }
      const read = [
        (yield* ours<ReadonlyArray<{ key: string; summary: string }>>("jira_search", { jql })).map(
          ({ key, summary }) => [key, summary]
        ),
        (yield* ours<{ reporter: string }>("jira_get_issue", { key })).reporter,
        (yield* ours<{ key: string }>("jira_create_issue", made)).key,
        (yield* ours<ReadonlyArray<{ id: string; name: string; to?: { name: string } }>>("jira_list_transitions", {
          key
        })).map(({ id, name, to }) => [id, name, to?.name]),
        (yield* ours<{ id: string }>("jira_add_comment", { key, body: "done" })).id
      ]
      yield* ours("jira_transition_issue", { key, transitionId: "31" })
      yield* ours("jira_assign_issue", { key, accountId: "5b10a" })
      yield* ours("jira_assign_issue", { key })
      const asked = seen.splice(0)

      const client = createCloudClient({
        host: origin,
        auth: { type: "basic", email: "ada@x.test", apiToken: "t0ken:ü" },
        onSchemaMismatch: "throw"
      })
      const fields = ["summary", "status", "issuetype", "priority", "assignee", "reporter", "updated", "description"]
      const theirs = yield* Effect.promise(async () => {
        const query = { jql, fields, maxResults: 50 }
        const first = await client.issueSearch.searchAndReconsileIssuesUsingJql(query)
        const nextPageToken = first.nextPageToken ?? ""
        const second = await client.issueSearch.searchAndReconsileIssuesUsingJql({ ...query, nextPageToken })
        const found: Array<unknown> = [
          [first, second].flatMap(({ issues = [] }) => issues.map(({ fields: one, key }) => [key, one?.["summary"]])),
          (await client.issues.getIssue({ issueIdOrKey: "ENG-1", fields })).fields?.["reporter"].displayName,
          (
            await client.issues.createIssue({
              fields: {
                project: { key: "ENG" },
                summary: "Größe & <b>",
                issuetype: { name: "Bug" },
                description: document("one", "two")
              }
            })
          ).key,
          (await client.issues.getTransitions({ issueIdOrKey: "ENG-1" })).transitions?.map(({ id, name, to }) => [
            id,
            name,
            to?.name
          ]),
          (await client.issueComments.addComment({ issueIdOrKey: "ENG-1", body: document("done") })).id
        ]
        await client.issues.doTransition({ issueIdOrKey: "ENG-1", transition: { id: "31" } })
        await client.issues.assignIssue({ issueIdOrKey: "ENG-1", accountId: "5b10a" })
        // Its description says null for nobody, which their type leaves out.
        await client.issues.assignIssue({ issueIdOrKey: "ENG-1", accountId: null as never })
        return found
      })
      expect(asked).toEqual(seen)
      expect(read).toEqual(theirs)
      // The account of nobody is null, by the words of the description, and by its schema a string.
      expect(asked.slice(0, -1).flatMap(undescribed)).toEqual([])
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("Confluence", () =>
    Effect.gen(function* () {
      const page = {
        id: "77",
        status: "current",
        title: "Plan & <b>",
        spaceId: "5",
        parentId: null,
        createdAt: at,
        version: { number: 3, createdAt: at, message: "" },
        body: { storage: { representation: "storage", value: "<p>one</p><p>two &amp; three</p>" } }
      }
      const makeFound = (title: string) => ({
        content: { id: "77", type: "page", status: "current", title },
        title: `@@@hl@@@${title}@@@endhl@@@`,
        excerpt: "of @@@hl@@@holidays@@@endhl@@@",
        url: "/spaces/ENG/pages/77",
        breadcrumbs: [],
        entityType: "content",
        iconCssClass: "aui-icon",
        lastModified: at
      })
      // A space is found as well, and has no content.
      const { content: _, ...space } = { ...makeFound("Engineering"), entityType: "space", url: "/spaces/ENG" }
      const { origin, seen } = yield* served(({ method, path, query }) => {
        const isSecond = new Map(query).has("cursor")
        const next = (of: string) => (isSecond ? {} : { next: `/wiki${of}?limit=1&cursor=a+b%26c%3D` })
        if (path.endsWith("/rest/api/search")) {
          const rest = { start: 0, limit: 50, size: 1, totalSize: 2, cqlQuery: "", searchDuration: 1 }
          return { ...rest, results: [isSecond ? space : makeFound("Plan")], _links: next("/rest/api/search") }
        }
        if (path.endsWith("/spaces")) {
          return {
            results: [{ id: isSecond ? "6" : "5", key: "ENG", name: "Engineering", type: "global" }],
            _links: next("/api/v2/spaces")
          }
        }
        return method === "PUT" ? { ...page, version: { number: 4 }, body: null } : page
      })
      const ours = caller(
        Confluence.tools({
          connection: Connection.fixed("Confluence", Redacted.make("ada@x.test:t0ken")),
          baseUrl: `${origin}/`
        })
      )
      type Found = Readonly<Record<"excerpt" | "kind" | "title" | "url", string>>
      const cql = 'text ~ "holi & days"'
      const read = [
        (yield* ours<ReadonlyArray<Found>>("confluence_search", { cql })).map(({ excerpt, kind, title, url }) => [
          title,
          kind,
          excerpt,
          url
        ]),
        (yield* ours<ReadonlyArray<{ id: string; key: string }>>("confluence_list_spaces")).map(({ id, key }) => [
          id,
          key
        ]),
        [
          (yield* ours<{ text: string }>("confluence_read_page", { id: "77" })).text,
          (yield* ours<{ version: number }>("confluence_create_page", {
            spaceId: "5",
            title: "Plan & <b>",
            text: "one\ntwo & <three>",
            parentId: "70"
          })).version
        ],
        (yield* ours<{ version: number }>("confluence_update_page", {
          id: "77",
          version: 3,
          title: "Plan & <b>",
          text: "one"
        })).version
      ]
      const asked = seen.splice(0)

      const config = {
        host: origin,
        auth: { type: "basic", email: "ada@x.test", apiToken: "t0ken" },
        onSchemaMismatch: "throw"
      } as const
      const [v1, v2] = [createV1Client(config), createV2Client(config)]
      const cursorOf = (next: string | undefined) => new URL(next ?? "", origin).searchParams.get("cursor") ?? ""
      const theirs = yield* Effect.promise(async () => {
        const first = await v1.search.searchByCQL({ cql, limit: 50 })
        const second = await v1.search.searchByCQL({ cql, limit: 50, cursor: cursorOf(first._links.next) })
        const [one, two] = [first.results[0], second.results[0]]
        const some = await v2.space.getSpaces({ limit: 100 })
        const more = await v2.space.getSpaces({ limit: 100, cursor: cursorOf(some._links?.next) })
        const got = await v2.page.getPageById({ id: 77, bodyFormat: "storage" })
        const made = await v2.page.createPage({
          body: {
            spaceId: "5",
            status: "current",
            title: "Plan & <b>",
            parentId: "70",
            body: { representation: "storage", value: "<p>one</p><p>two &amp; &lt;three&gt;</p>" }
          }
        })
        const changed = await v2.page.updatePage({
          id: 77,
          body: {
            id: "77",
            status: "current",
            title: "Plan & <b>",
            body: { representation: "storage", value: "<p>one</p>" },
            version: { number: 4 }
          }
        })
        // Ours gives plain words: no search marks, no markup.
        return [
          [
            [one?.content?.title, one?.content?.type, "of holidays", one?.url],
            ["Engineering", two?.entityType, "of holidays", two?.url]
          ],
          [some, more].flatMap(({ results = [] }) => results.map(({ id, key }) => [id, key])),
          [
            got.body?.storage?.value?.replace("</p><p>", "\n").replaceAll(/<.?p>/g, "").replace("&amp;", "&"),
            made.version?.number
          ],
          changed.version?.number
        ]
      })
      expect(asked).toEqual(seen)
      expect(read).toEqual(theirs)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
