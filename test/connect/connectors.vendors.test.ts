/** The vendors' own clients ask the same server the same as ours do, and both understand its answers. */
import { describe, expect, it } from "@effect/vitest"
import { calendar_v3 } from "@googleapis/calendar"
import { drive_v3 } from "@googleapis/drive"
import { gmail_v1 } from "@googleapis/gmail"
import { LinearClient } from "@linear/sdk"
import { Client as NotionClient } from "@notionhq/client"
import { Octokit } from "@octokit/rest"
import { LogLevel, WebClient } from "@slack/web-api"
import { Effect, Redacted } from "effect"
import {
  Connection,
  GitHub,
  Gmail,
  GoogleCalendar,
  GoogleDrive,
  Linear,
  Notion,
  Slack
} from "effect-deepagents/connect"
import { FetchHttpClient } from "effect/http"
import { json, serve } from "../web/pages.ts"
import { caller, type Ids } from "./caller.ts"

/** The meaning of a request in any encoding: Slack's client writes forms where ours writes JSON or a query. */
const meaning = async (request: Request) => {
  const url = new URL(request.url)
  const body = await request.text()
  const isForm = request.headers.get("content-type")?.includes("urlencoded") === true
  const fields: unknown = body === "" ? {} : isForm ? Object.fromEntries(new URLSearchParams(body)) : JSON.parse(body)
  const all: Record<string, unknown> = { ...Object.fromEntries(url.searchParams), ...(fields as object) }
  return { path: decodeURIComponent(url.pathname), fields: all }
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
      const ours = caller(Slack.tools({ connection, baseUrl: `${origin}/api` }))
      const ids = (yield* ours<Ids>("slack_list_channels")).map(({ id }) => id)
      const posted = yield* ours<{ ts: string }>("slack_post_message", {
        channel: "C1",
        text: "Grüße & <b>",
        thread_ts: "1.0"
      })
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
      const ours = caller(Notion.tools({ connection, baseUrl: origin }))
      const found = yield* ours<Ids>("notion_search", { query: "plan" })
      yield* ours("notion_create_page", { parentId: "p1", title: "New", text: "one\ntwo" })
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
      const ours = caller(GitHub.tools({ connection, baseUrl: origin }))
      const repository = "o/r"
      const made = yield* ours<{ number: number }>("github_create_issue", { repository, title: "Bug", body: "Steps" })
      yield* ours("github_update_issue", { repository, number: 1, state: "closed" })
      yield* ours("github_comment", { repository, number: 1, body: "done" })
      yield* ours("github_get_issue", { repository, number: 1 })
      yield* ours("github_get_pull_request", { repository, number: 1 })
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

  it.live("Google", () =>
    Effect.gen(function* () {
      const event = { id: "e1", summary: "Review" }
      const file = { id: "f1", name: "Plan", mimeType: "application/vnd.google-apps.document" }
      const { authorizations, origin, seen } = yield* served((path) => {
        if (path.endsWith("/messages")) return { messages: [{ id: "m1", threadId: "t1" }] }
        if (path.endsWith("/messages/m1") || path.endsWith("/send")) return { id: "m1", threadId: "t1" }
        if (path.endsWith("/freeBusy")) return { calendars: { "bob@x.test": { busy: [] } } }
        if (path.endsWith("/files")) return { files: [file] }
        return path.includes("/files/") ? file : path.endsWith("/events") ? { items: [event], ...event } : event
      })
      const options = { connection, baseUrl: origin }
      const [ourMail, ourCalendar, ourDrive] = [
        caller(Gmail.tools(options)),
        caller(GoogleCalendar.tools(options)),
        caller(GoogleDrive.tools(options))
      ]
      const found = yield* ourMail<Ids>("gmail_search", { query: "from:ada" })
      const sent = yield* ourMail<{ id: string }>("gmail_send_message", {
        to: ["bob@x.test"],
        subject: "Grüße",
        text: "Hallo"
      })
      const [from, to] = ["2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"]
      const events = yield* ourCalendar<Ids>("google_calendar_list_events", { from, to })
      yield* ourCalendar("google_calendar_find_busy", { from, to, calendars: ["bob@x.test"] })
      yield* ourCalendar("google_calendar_create_event", {
        summary: "Review",
        start: from,
        end: to,
        attendees: ["bob@x.test"]
      })
      yield* ourCalendar("google_calendar_delete_event", { id: "e1" })
      const files = yield* ourDrive<Ids>("google_drive_search_files", { words: "O'Hara" })
      yield* ourDrive("google_drive_read_file", { id: "f1" })
      const asked = seen.splice(0)
      const raw = String(asked.find(({ path }) => path.endsWith("/send"))?.fields["raw"])
      const theirs = { rootUrl: `${origin}/`, headers: { authorization: "Bearer t0ken" } }
      const [mail, calendar, drive] = [
        new gmail_v1.Gmail(theirs),
        new calendar_v3.Calendar(theirs),
        new drive_v3.Drive(theirs)
      ]
      const fields = "id,name,mimeType,modifiedTime,webViewLink,size,owners(emailAddress)"
      const them = yield* Effect.promise(async () => {
        const messages = await mail.users.messages.list({ userId: "me", q: "from:ada", maxResults: 100 })
        const metadataHeaders = ["From", "To", "Subject", "Date"]
        await mail.users.messages.get({ userId: "me", id: "m1", format: "metadata", metadataHeaders })
        const posted = await mail.users.messages.send({ userId: "me", requestBody: { raw } })
        const query = { singleEvents: true, orderBy: "startTime", maxResults: 100 }
        const list = await calendar.events.list({ calendarId: "primary", timeMin: from, timeMax: to, ...query })
        await calendar.freebusy.query({ requestBody: { timeMin: from, timeMax: to, items: [{ id: "bob@x.test" }] } })
        await calendar.events.insert({
          calendarId: "primary",
          sendUpdates: "all",
          requestBody: {
            summary: "Review",
            start: { dateTime: from },
            end: { dateTime: to },
            attendees: [{ email: "bob@x.test" }]
          }
        })
        await calendar.events.delete({ calendarId: "primary", eventId: "e1", sendUpdates: "all" })
        const words = String.raw`'O\'Hara'`
        const listed = await drive.files.list({
          q: `(name contains ${words} or fullText contains ${words}) and trashed = false`,
          fields: `nextPageToken,files(${fields})`,
          pageSize: 100,
          supportsAllDrives: true,
          includeItemsFromAllDrives: true
        })
        await drive.files.get({ fileId: "f1", fields, supportsAllDrives: true })
        await drive.files.export({ fileId: "f1", mimeType: "text/markdown" })
        return { messages, posted, list, listed }
      })
      expect(found.map(({ id }) => id)).toEqual(them.messages.data.messages?.map(({ id }) => id))
      expect(sent.id).toBe(them.posted.data.id)
      expect(events.map(({ id }) => id)).toEqual(them.list.data.items?.map(({ id }) => id))
      expect(files.map(({ id }) => id)).toEqual(them.listed.data.files?.map(({ id }) => id))
      expect(asked).toEqual(seen)
      expect(new Set(authorizations)).toEqual(new Set(["Bearer t0ken"]))
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("Linear", () =>
    Effect.gen(function* () {
      const issue = { id: "i1", identifier: "ENG-1", title: "New", url: "https://linear.app/i1" }
      const { authorizations, origin, seen } = yield* served((_, { query }) => {
        const done = { success: true, lastSyncId: 1, issue }
        const team = { id: "t1", name: "Engineering", key: "ENG" }
        const page = { nodes: [team], pageInfo: { hasNextPage: false, hasPreviousPage: false, endCursor: null } }
        return /issueCreate|issueUpdate/.test(String(query))
          ? { data: { done, issueCreate: done, issueUpdate: done } }
          : { data: { page, teams: page } }
      })
      const ours = caller(Linear.tools({ connection, baseUrl: origin }))
      const teams = yield* ours<ReadonlyArray<{ id: string; name: string }>>("linear_list_teams")
      yield* ours("linear_create_issue", { teamId: "t1", title: "New", priority: 1 })
      yield* ours("linear_update_issue", { id: "i1", stateId: "s1" })
      const asked = seen.splice(0)
      const theirs = new LinearClient({ apiKey: "t0ken", apiUrl: `${origin}/graphql` })
      const theirTeams = yield* Effect.promise(async () => {
        const found = await theirs.teams()
        await theirs.createIssue({ teamId: "t1", title: "New", priority: 1 })
        await theirs.updateIssue("i1", { stateId: "s1" })
        return found.nodes
      })
      expect(teams.map(({ id, name }) => [id, name])).toEqual(theirTeams.map(({ id, name }) => [id, name]))
      // Their queries ask for more fields of the same.
      const variables = (all: typeof seen) => all.slice(1).map(({ fields, path }) => [path, fields.variables])
      expect(variables(asked)).toEqual(variables(seen))
      expect(new Set(authorizations)).toEqual(new Set(["t0ken"]))
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
