/** The vendors' own clients ask the same server the same as ours do, and both understand its answers. */
import { describe, expect, it } from "@effect/vitest"
import { Client as NotionClient } from "@notionhq/client"
import { Octokit } from "@octokit/rest"
import { LogLevel, WebClient } from "@slack/web-api"
import { Effect, Redacted, Stream } from "effect"
import { Connection, GitHub, Notion, Slack } from "effect-deepagents/tools"
import { FetchHttpClient } from "effect/http"
import { json, serve } from "./web.ts"

/** What a request means, whatever its encoding: Slack's client writes forms where ours writes JSON or a query. */
const meaning = async (request: Request) => {
  const url = new URL(request.url)
  const body = await request.text()
  const isForm = request.headers.get("content-type")?.includes("urlencoded") === true
  const fields: unknown = body === "" ? {} : isForm ? Object.fromEntries(new URLSearchParams(body)) : JSON.parse(body)
  return { path: url.pathname, fields: { ...Object.fromEntries(url.searchParams), ...(fields as object) } }
}

const served = Effect.fnUntraced(function* (answer: (path: string, fields: Record<string, unknown>) => unknown) {
  const seen: Array<Awaited<ReturnType<typeof meaning>>> = []
  const authorizations: Array<string | null> = []
  const origin = yield* serve(async (request) => {
    const asked = await meaning(request)
    seen.push(asked)
    authorizations.push(request.headers.get("authorization"))
    return json(answer(asked.path, asked.fields))
  })
  return { origin, seen, authorizations }
})

const connection = Connection.fixed("it", Redacted.make("t0ken"))

describe("connectors, beside the clients of the vendors", () => {
  it.live("Slack", () =>
    Effect.gen(function* () {
      const { authorizations, origin, seen } = yield* served((path, { cursor }) =>
        path.endsWith("conversations.list")
          ? {
              ok: true,
              channels: [{ id: cursor === undefined ? "C1" : "C2", name: "general" }],
              response_metadata: { next_cursor: cursor === undefined ? "next" : "" }
            }
          : { ok: true, channel: "C1", ts: "1.1" }
      )
      const theirs = new WebClient("t0ken", { slackApiUrl: `${origin}/api/`, logLevel: LogLevel.ERROR })
      const ours = Slack.make({ connection, baseUrl: `${origin}/api` })
      const ids = (yield* Stream.runCollect(ours.channels())).map(({ id }) => id)
      const posted = yield* ours.post("C1", "Grüße & <b>", "1.0")
      const asked = seen.splice(0)
      const theirIds: Array<string | undefined> = []
      yield* Effect.promise(async () => {
        for await (const page of theirs.paginate("conversations.list", { exclude_archived: true, limit: 200 })) {
          const { channels } = page as { channels?: ReadonlyArray<{ id?: string }> }
          theirIds.push(...(channels ?? []).map(({ id }) => id))
        }
      })
      const theirPost = yield* Effect.promise(() =>
        theirs.chat.postMessage({ channel: "C1", text: "Grüße & <b>", thread_ts: "1.0" })
      )
      expect(ids).toEqual(theirIds)
      expect(posted.ts).toBe(theirPost.ts)
      expect(asked).toEqual(seen)
      expect(new Set(authorizations)).toEqual(new Set(["Bearer t0ken"]))
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("Notion", () =>
    Effect.gen(function* () {
      const title = [{ type: "text", text: { content: "Plan" }, plain_text: "Plan" }]
      const page = {
        object: "page",
        id: "p1",
        url: "https://notion.so/p1",
        properties: { Name: { type: "title", title } }
      }
      const { origin, seen } = yield* served((path) =>
        path.endsWith("search") ? { object: "list", results: [page], has_more: false, next_cursor: null } : page
      )
      const theirs = new NotionClient({ auth: "t0ken", baseUrl: origin, notionVersion: "2022-06-28" })
      const ours = Notion.make({ connection, baseUrl: origin })
      const found = yield* Stream.runCollect(ours.search("plan"))
      yield* ours.createPage("p1", "New", "one\ntwo")
      const asked = seen.splice(0)
      const theirFound = yield* Effect.promise(() =>
        theirs.search({
          query: "plan",
          sort: { direction: "descending", timestamp: "last_edited_time" },
          page_size: 100
        })
      )
      const paragraph = (content: string) => ({
        object: "block" as const,
        type: "paragraph" as const,
        paragraph: { rich_text: [{ type: "text" as const, text: { content } }] }
      })
      yield* Effect.promise(() =>
        theirs.pages.create({
          parent: { page_id: "p1" },
          properties: { title: { title: [{ type: "text", text: { content: "New" } }] } },
          children: [paragraph("one"), paragraph("two")]
        })
      )
      expect(found.map(({ id }) => id)).toEqual(theirFound.results.map(({ id }) => id))
      expect(asked).toEqual(seen)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("GitHub", () =>
    Effect.gen(function* () {
      const issue = { number: 1, title: "Bug", state: "open", html_url: "https://github.com/o/r/issues/1" }
      const { origin, seen } = yield* served((path) =>
        path.endsWith("/issues") || path.endsWith("/search/issues") ? issue : { ...issue, id: 5 }
      )
      const theirs = new Octokit({ auth: "t0ken", baseUrl: origin })
      const ours = GitHub.make({ connection, baseUrl: origin })
      const made = yield* ours.createIssue("o/r", { title: "Bug", body: "Steps" })
      yield* ours.updateIssue("o/r", 1, { state: "closed" })
      yield* ours.comment("o/r", 1, "done")
      yield* ours.issue("o/r", 1)
      yield* ours.pull("o/r", 1)
      const asked = seen.splice(0)
      const where = { owner: "o", repo: "r" }
      const theirMade = yield* Effect.promise(async () => {
        const created = await theirs.rest.issues.create({ ...where, title: "Bug", body: "Steps" })
        await theirs.rest.issues.update({ ...where, issue_number: 1, state: "closed" })
        await theirs.rest.issues.createComment({ ...where, issue_number: 1, body: "done" })
        await theirs.rest.issues.get({ ...where, issue_number: 1 })
        await theirs.rest.pulls.get({ ...where, pull_number: 1 })
        return created
      })
      expect(made.number).toBe(theirMade.data.number)
      expect(asked).toEqual(seen)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
